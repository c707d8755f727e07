# SPDX-License-Identifier: Apache-2.0
"""A budget of bytes changes in which pieces inputs are read, and nothing of what comes of them."""

import io
import json
import subprocess
import sys
import tarfile
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.columns.block import Block
from distinput.columns.column import Strings
from distinput.files.source import within as within_room
from distinput.formats.parquet import Parquet
from distinput.run.run import Run
from tests.patience import threads_since

Dataset = di.data.Dataset

ROWS, FILES = 1000, 5


def text(row: int) -> bytes:
    return (b"%d " % row) * (1 + row % 97)


def write_tar(path: str, rows: list[bytes]) -> None:
    with tarfile.open(path, "w") as archive:
        for number, row in enumerate(rows):
            member = tarfile.TarInfo(f"{number:06d}.bin")
            member.size = len(row)
            archive.addfile(member, io.BytesIO(row))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder: Path = tmp_path_factory.mktemp("sources")
    for file in range(FILES):
        rows = [text(row + file) for row in range(ROWS)]
        columns: dict[str, Any] = {"x": np.arange(ROWS) + file, "s": rows}
        di.io.write_parquet(folder / f"{file}.parquet", columns, row_group_size=700)
        with (
            pa.OSFile(str(folder / f"{file}.arrow"), "wb") as sink,
            pa.ipc.new_file(sink, pa.schema([("x", pa.int64()), ("s", pa.binary())])) as writer,
        ):
            writer.write_table(pa.table({"x": columns["x"], "s": pa.array(rows, pa.binary())}), 1000)
        with di.io.TFRecordWriter(folder / f"{file}.tfrecord") as records:
            for row in rows:
                records.write(row)
        lines = [json.dumps({"x": number, "s": row.decode()}) for number, row in enumerate(rows)]
        (folder / f"{file}.jsonl").write_text("\n".join(lines) + "\n")
        (folder / f"{file}.csv").write_text("x,s\n" + "".join(f"{n},{row.decode()}\n" for n, row in enumerate(rows)))
        write_tar(str(folder / f"{file}.tar"), rows[: ROWS // 4])
    return folder


OPENED: dict[str, Callable[[str], Any]] = {
    "parquet": di.data.ParquetDataset,
    "arrow": di.data.ArrowDataset,
    "tfrecord": di.data.TFRecordDataset,
    "jsonl": di.data.JsonLinesDataset,
    "csv": lambda path: di.data.CsvDataset(path, header=True),
    "tar": lambda path: di.data.WebDataset(path, decode=False),
}


def within(budget: int | None) -> di.data.Options:
    options = di.data.Options()
    options.memory_budget = budget
    return options


def mixed(folder: Path, suffix: str, budget: int | None) -> Any:
    sources = [OPENED[suffix](str(folder / f"{file}.{suffix}")) for file in range(FILES)]
    return Dataset.sample_from_datasets(sources, seed=3).with_options(within(budget))


@pytest.mark.parametrize("suffix", OPENED)
def test_a_mixture_within_a_budget_has_the_elements_of_one_without(folder: Path, suffix: str) -> None:
    whole, pieces = [list(mixed(folder, suffix, budget).as_numpy_iterator()) for budget in (1 << 40, 1)]
    assert len(whole) == len(pieces) > 700
    assert all(map(np.array_equal, map(str, whole), map(str, pieces)))


@pytest.mark.parametrize("suffix", OPENED)
def test_a_state_is_restored_within_another_budget(folder: Path, suffix: str) -> None:
    large, small = [mixed(folder, suffix, budget) for budget in (1 << 40, 1)]
    for first, then in ((small, large), (large, small)):
        begun = iter(first)
        for _ in range(333):
            next(begun)
        other = then.restore(begun.state())
        assert [str(next(begun)) for _ in range(500)] == [str(next(other)) for _ in range(500)]


def test_an_interleave_of_many_files_has_the_same_elements_within_a_budget(folder: Path) -> None:
    def read(budget: int | None) -> list[Any]:
        names = [str(folder / f"{file}.parquet") for file in range(FILES)] * 4
        files = Dataset.from_tensor_slices(names)
        made = files.interleave(di.data.ParquetDataset, cycle_length=24, num_parallel_calls=di.data.AUTOTUNE)
        return [int(row["x"]) for row in made.with_options(within(budget))]

    assert read(None) == read(1) == read(1 << 40)


def test_parts_of_files_are_read_within_a_budget(folder: Path) -> None:
    read = di.data.TFRecordDataset([str(folder / f"{file}.tfrecord") for file in range(2)]).with_options(within(1))
    assert len(read.to_list()) == 2 * ROWS


def test_streams_share_the_room_of_their_run() -> None:
    assert Run().sharing(4).asked.room is None
    shares = [Run().sharing(many).asked.room for many in (5, 100)]
    assert None not in shares
    assert shares[0] >= 20 * shares[1]  # type: ignore[operator]
    nested = Run(memory_budget=1 << 20).sharing(2).sharing(8)
    assert nested.asked.room == 1 << 16


def test_a_source_of_a_large_mixture_holds_a_small_part_of_a_row_group(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = 40_000
    random = np.random.default_rng(0)
    columns: dict[str, Any] = {"x": np.arange(rows), "v": random.standard_normal((rows, 64), np.float32)}
    di.io.write_parquet(tmp_path / "a.parquet", columns)
    held: list[int] = []
    made = Parquet._block

    def noted(self: Parquet, path: str, group: int, batch: Any, *others: Any) -> Block:
        held.append(batch.nbytes)
        return made(self, path, group, batch, *others)

    monkeypatch.setattr(Parquet, "_block", noted)
    sources = [di.data.ParquetDataset(str(tmp_path / "a.parquet")) for _ in range(20)]
    mixture = Dataset.sample_from_datasets(sources, seed=1).batch(256).take(40)
    assert sum(len(batch["x"]) for batch in mixture) == 40 * 256
    assert 0 < max(held) < 1 << 20
    held.clear()
    next(iter(sources[0]))
    assert max(held) > 2_000_000


POOL = pa.proxy_memory_pool(pa.default_memory_pool())
"""Knows nothing of the memory that other tests leave to be freed; it stays as long as any memory of it may."""


@pytest.fixture
def own_pool() -> Iterator[None]:
    pool = pa.default_memory_pool()
    pa.set_memory_pool(POOL)
    yield
    pa.set_memory_pool(pool)


@pytest.mark.usefixtures("own_pool")
def test_sources_of_a_large_mixture_hold_little_of_large_pages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Text of which a page has a megabyte, and so has the dictionary: few rows of it are held, and no thread decodes them."""
    files = 60
    sources = [di.data.ParquetDataset(path) for path in alike(tmp_path, files)]
    held: list[weakref.ref[Any]] = []
    copied = Strings.copied

    def noted(self: Strings) -> Strings:
        made = copied(self)
        held.append(weakref.ref(made.data))
        return made

    monkeypatch.setattr(Strings, "copied", noted)
    threads, before, most = threading.enumerate(), pa.total_allocated_bytes(), 0
    for batch in Dataset.sample_from_datasets(sources, seed=1).batch(256).take(600):
        assert len(batch["s"]) == 256
        assert pa.total_allocated_bytes() <= before  # what other tests left may be freed meanwhile
        most = max(most, sum(data.nbytes for part in held if (data := part()) is not None))
        assert threads_since(threads) == []
    assert files * 100_000 < most < files * 350_000  # where slices end follows from the paths


def texts(rows: int) -> dict[str, list[bytes]]:
    """Text that no codec makes shorter."""
    letters = np.random.default_rng(0).integers(97, 123, 800 * rows, np.uint8).tobytes()
    return {"s": [letters[800 * row :][:800] for row in range(rows)]}


def alike(folder: Path, files: int) -> list[str]:
    """The paths of files of these texts."""
    paths = [folder / f"{number}.parquet" for number in range(files)]
    di.io.write_parquet(paths[0], texts(4000))
    for path in paths[1:]:
        path.hardlink_to(paths[0])
    return list(map(str, paths))


def test_what_was_used_of_a_slice_is_not_held(tmp_path: Path) -> None:
    (path,) = alike(tmp_path, 1)
    with within_room(1 << 16), closing(Parquet().portions(path, None, None, 1, 0)) as portions:
        next(portions)
        portion = next(portions)
        parts = portion.decode()
        held = [weakref.ref(part.columns[0].data) for part in parts]
        assert len(held) > 4
        for number, _ in enumerate(portion.blocks(parts)):
            del _
            assert [part() is None for part in held] == [at < number for at in range(len(held))]


def test_slices_of_files_end_at_other_rows(tmp_path: Path) -> None:
    """At any row, about half of the slices of all files together is still to come, also in the last slices."""
    left = np.zeros(4000)
    for path in alike(tmp_path, 60):
        with within_room(1 << 16), closing(Parquet().portions(path, None, None, 1, 0)) as portions:
            rows = [portion.rows for portion in portions]
        assert sum(rows) == 4000
        assert len(rows) > 5
        left += np.concatenate([np.arange(count, 0, -1) / max(rows) for count in rows])
    assert left.max() < 0.65 * 60


def test_readers_of_a_mixture_share_their_threads(folder: Path) -> None:
    before = threading.enumerate()
    sources = [di.data.ParquetDataset(str(folder / f"{n % FILES}.parquet")).repeat() for n in range(100)]
    seen = 0
    for _ in Dataset.sample_from_datasets(sources, seed=1).batch(64).take(300):
        seen = max(seen, len(threads_since(before)))
    assert seen <= 16


def test_a_budget_is_a_number_of_bytes() -> None:
    with pytest.raises(ValueError, match="option 'memory_budget' must be at least 1, got 0"):
        within(0)


def test_rows_of_pages_do_not_load_pandas(tmp_path: Path) -> None:
    """Pyarrow loads it for an array of NumPy, which takes 50 MB and half a second."""
    di.io.write_parquet(str(tmp_path / "a.parquet"), {"x": np.arange(400_000.0)})
    program = (
        "import sys, distinput as di\n"
        "sources = [di.data.ParquetDataset(sys.argv[1]) for _ in range(6)]\n"
        "mixed = di.data.Dataset.sample_from_datasets(sources, seed=1)\n"
        "assert len(mixed.take(100).to_list()) == 100\n"
        "assert 'pandas' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", program, str(tmp_path / "a.parquet")], check=True, timeout=300)
