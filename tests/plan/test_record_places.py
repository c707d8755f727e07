# SPDX-License-Identifier: Apache-2.0
"""Which record an element comes from, through ops that say which element of their input theirs are."""

import re
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.plan.node import Provenance, record_in_words


@pytest.fixture
def lines(tmp_path: Path) -> Dataset:
    (tmp_path / "lines.txt").write_text("a\nb\nc\nd\n")
    return di.data.TextLineDataset(str(tmp_path / "lines.txt"))


def place(dataset: Dataset, ahead: int) -> tuple[int, int] | None:
    """The row of the first record of an element of the first pass, and how many it is made of."""
    found = dataset.node.records_at(dataset.node.start(0), ahead)
    return None if found is None else found.runs[0][1:]


def test_an_element_comes_from_the_record_that_all_steps_say(lines: Dataset) -> None:
    changed = lines.map(lambda x: x).skip(1).prefetch(1)
    assert [place(changed, ahead) for ahead in (0, 2)] == [(1, 1), (3, 1)]
    assert place(changed.batch(2), 0) == (1, 2)
    assert place(changed.batch(2), 1) == (3, 1)  # and perhaps others


def test_a_step_with_the_states_of_its_input_asks_that(lines: Dataset) -> None:
    selected = lines.map(lambda x: {"x": x, "y": x}).skip(1).select(["x"])
    assert [place(selected, ahead) for ahead in (0, 2)] == [(1, 1), (3, 1)]
    assert place(selected.map(lambda e: e).batch(2), 0) == (1, 2)
    assert place(selected.map(lambda e: e).batch(2), 1) == (3, 1)


def test_before_and_behind_all_elements_of_a_shuffle_there_are_none(lines: Dataset) -> None:
    for shuffled in (
        lines.shuffle(2, seed=1),
        lines.shuffle(1, seed=1),
        lines.apply(di.data.experimental.assert_cardinality(4)).shuffle(2),
    ):
        assert [place(shuffled, ahead) for ahead in (-1, 4, 5)] == [None] * 3


def test_where_a_step_says_nothing_elements_come_from_nowhere(lines: Dataset) -> None:
    assert place(lines.scan(0, lambda n, x: (n + 1, x)), 0) is None
    assert place(Dataset.range(3), 0) is None


@pytest.mark.parametrize(
    "found, text",
    [
        (None, None),
        (Provenance(()), None),
        (Provenance((("a", 1234, 1),)), "record 1,234 of a"),
        (Provenance((("a", 1, 3),)), "record 1 of a and the 2 after it"),
        (Provenance((("a", 1, 3),), more=True), "record 1 of a and the 2 after it and perhaps others"),
        (Provenance((("a", 9, 1), ("a", 2, 2))), "records 9, 2 and 3 of a"),
        (Provenance((("a", 9, 1), ("b", 2, 1))), "record 9 of a; record 2 of b"),
        (Provenance((("a", 9, 1), ("a", 20, 20))), "records 9, 20, 21, 22, 23, 24, 25, 26 and 13 others of a"),
    ],
)
def test_records_are_told_in_words(found: Provenance | None, text: str | None) -> None:
    assert record_in_words(found) == text


def _numbers_in(note: str) -> list[int]:
    if " and the " in note:
        first, count = re.fullmatch(r"record (\d+) of .* and the (\d+) after it.*", note).groups()  # type: ignore[union-attr]
        return list(range(int(first), int(first) + int(count) + 1))
    rows = re.match(r"records? ([\d, and]+)", note)
    assert rows is not None, note
    text = rows.group(1).rstrip()
    return [
        int(number) for number in re.findall(r"\d+", re.sub(r"and \d+$", "", text) if " others of" in note else text)
    ]


ORDERS = {
    "plain": lambda ds: ds.batch(8),
    "skipped": lambda ds: ds.skip(3).batch(8),
    "shuffled": lambda ds: ds.shuffle(40, seed=1).batch(8),
    "small buffer": lambda ds: ds.shuffle(5, seed=1).batch(4),
    "sharded": lambda ds: ds.shard(3, 1).batch(4),
    "mapped": lambda ds: ds.shuffle(40, seed=1).map(lambda x: x).prefetch(2).batch(8),
    "two batches": lambda ds: ds.shuffle(40, seed=1).batch(2).batch(3),
    "repeated": lambda ds: ds.shuffle(40, seed=1).repeat(2).batch(8),
    "windows": lambda ds: ds.window(3, shift=2, stride=2, drop_remainder=True).flat_map(lambda w: w.batch(3)),
    "across files": lambda ds: ds.batch(16),
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bad", [0, 1, 2])
def test_a_note_names_the_records_of_the_batch_or_says_less(tmp_path: Path, order: str, bad: int) -> None:
    for name, rows in (("a.txt", range(25)), ("b.txt", range(25, 40))):
        (tmp_path / name).write_text("".join(f"{i}\n" for i in rows))
    files = [str(tmp_path / "a.txt"), str(tmp_path / "b.txt")]
    seen: list[list[int]] = []

    def fail(batch: Any) -> Any:
        seen.append([int(x) for x in batch.reshape(-1)])
        if len(seen) == bad + 1:
            raise ValueError("bad")
        return len(batch)

    dataset = ORDERS[order](di.data.TextLineDataset(files)).map(fail, output_signature=di.TensorSpec((), di.int64))
    with pytest.raises(ValueError, match="bad") as error:
        list(dataset)
    notes = [note for note in error.value.__notes__ if note.startswith("record")]
    if not notes:
        assert order not in ("plain", "skipped", "sharded", "across files")
        return
    named = [number + (25 if "b.txt" in part else 0) for part in notes[0].split("; ") for number in _numbers_in(part)]
    wanted = seen[-1]
    if "others" not in notes[0]:
        assert named == wanted, notes
    assert [number for number in wanted if number in named] == named, notes


@pytest.mark.parametrize("order", ["as they are", "shuffle", "global_shuffle"])
@pytest.mark.parametrize("batch", [4, 7])
def test_a_worker_that_reads_its_own_rows_names_the_record_that_broke(order: str, batch: int, tmp_path: Path) -> None:
    for number, (first, stop) in enumerate([(0, 13), (13, 14), (14, 40)]):
        rows = "".join(f"{n}\n" for n in range(first, stop))
        (tmp_path / f"{number}.txt").write_text(rows)
    lines = di.data.TextLineDataset(str(tmp_path / "*.txt"), index=True)
    for bad, file, record in [(3, 0, 3), (13, 1, 0), (39, 2, 25)]:

        def refusing(line: bytes, bad: int = bad) -> int:
            if int(line) == bad:
                raise ValueError("refused")
            return int(line)

        mapped = lines.map(refusing, output_signature=di.TensorSpec([], "int64"))
        ordered = (
            mapped if order == "as they are" else getattr(mapped, order)(*([40] if order == "shuffle" else []), seed=1)
        )
        notes = []
        for index in range(3):
            try:
                list(ordered.batch(batch).shard_batches(3, index).iter_pass(0))
            except ValueError as error:
                notes.append(error.__notes__[-1])
        assert notes, "nobody read it"
        assert all(note.endswith(f"record {record} of {tmp_path / f'{file}.txt'}") for note in notes)
