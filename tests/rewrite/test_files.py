# SPDX-License-Identifier: Apache-2.0
"""Columns and rows that are not wanted are not read, and elements are the same as without that."""

from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.formats.parquet import Parquet
from distinput.ops.reader import Reader
from distinput.plan.node import Node, walk
from distinput.rewrite.rules import rewrite
from distinput.run.run import Run
from tests.depth import cases
from tests.rewrite.running import fires, ops_after

X, F, S, Z = (pc.field(name) for name in "xfsz")
ROWS = 60


def written(folder: Path, rows: int) -> list[str]:
    """Two files of as many rows, in row groups of ten."""
    made = []
    for number in range(2):
        x = np.arange(rows) + rows * number
        table = pa.table(
            {
                "x": x,
                "f": pa.array([None if i % 11 == 3 else np.nan if i % 7 == 0 else i / 4 for i in x.tolist()]),
                "s": [f"n{i:03d}" for i in x.tolist()],
                "z": pa.array([None if i % 9 == 0 else i for i in x.tolist()]),
                "v": [[i] * (i % 3) for i in x.tolist()],
            }
        )
        made.append(str(folder / f"{number}.parquet"))
        pq.write_table(table, made[-1], row_group_size=10)
    return made


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    return written(tmp_path_factory.mktemp("pushed"), ROWS)


@pytest.fixture(scope="module")
def short_files(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    """For laws that begin anew at each row."""
    return written(tmp_path_factory.mktemp("short"), cases(17, ROWS))


def whole(files: list[str]) -> Dataset[Any]:
    return di.data.ParquetDataset(files, nulls={"z": -1})


def read(dataset: Dataset[Any]) -> list[int]:
    """The row groups that are read, as numbers of their first rows."""
    found = []
    running, _ = rewrite(dataset.node)
    for step in walk(running):
        if isinstance(step, Reader):
            for path in (f.decode() for f in Dataset(step.input)):
                found += [int(block.row(0)["x"]) for block, _ in step.format.read(path)]
    return found


NUMBER = st.integers(-3, 130)
TERMS = st.one_of(
    st.tuples(st.just("x"), st.sampled_from("<>=!"), NUMBER),
    st.tuples(st.just("f"), st.sampled_from("<>=!"), st.integers(0, 30).map(lambda n: n + 0.25)),
    st.tuples(st.just("z"), st.sampled_from("<>=!"), NUMBER),
    st.tuples(st.just("s"), st.sampled_from("<>=!"), NUMBER.map(lambda n: f"n{n:03d}")),
)


def condition(term: tuple[str, str, Any]) -> Any:
    name, how, value = term
    field = pc.field(name)
    return {"<": field < value, ">": field > value, "=": field == value, "!": field != value}[how]


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TERMS, TERMS, st.sampled_from(["and", "or", "not"]), st.sampled_from([None, ["x"], ["s", "f"], ["v", "x"]]))
def test_nothing_changes(files: list[str], one: Any, other: Any, how: str, columns: list[str] | None) -> None:
    a, b = condition(one), condition(other)
    dataset = whole(files).filter({"and": a & b, "or": a | b, "not": a & ~b}[how])
    dataset = dataset.select(columns) if columns else dataset
    plain = [block for block, _ in _streamed(dataset.node)]
    assert str(dataset.to_list()) == str(plain)


def _streamed(node: Any) -> Any:
    """The elements of a tree as it was described, without any rule."""
    from distinput.run.run import Run
    from distinput.values.nest import map_leaves

    with Run() as run:
        for block, after in node.open(node.start(0), run):
            for element in block.elements() if block.size else ():
                yield (
                    map_leaves(lambda leaf: leaf if isinstance(leaf, bytes) else leaf.tolist(), element, lists=False),
                    after,
                )


def test_row_groups_that_cannot_match_are_not_read(files: list[str]) -> None:
    assert read(whole(files).filter(X >= 95)) == [90, 100, 110]
    assert read(whole(files).filter((X < 5) | (S == "n077"))) == [0, 70]
    assert read(whole(files).filter(F < 1.0)) == [0]
    assert len(read(whole(files).filter(F != 1.0))) == 12  # true for NaN
    assert len(read(whole(files).filter(Z > 500))) == 12  # a null is -1 here, as far as statistics tell anything else
    assert read(whole(files).filter((Z > 500) & (X < 3))) == [0]


def test_columns_that_stay_and_those_of_the_condition_are_read(files: list[str]) -> None:
    dataset = whole(files).filter(X > 100).select(["s"])
    running, fired = rewrite(dataset.node)
    (reader,) = [step for step in walk(running) if isinstance(step, Reader)]
    assert isinstance(reader.format, Parquet)
    assert reader.format.columns == ("s", "x")
    assert set(fired) == {"filter_in_files", "select_before_filter", "select_in_files"}
    assert dataset.to_list()[:1] == [{"s": b"n101"}]


def test_a_selection_becomes_part_of_the_reader(files: list[str]) -> None:
    assert ops_after(whole(files).select(["x", "v"]), "select_in_files") == ["slices", "parquet"]
    assert not fires(di.data.Dataset.from_tensor_slices({"x": [1], "y": [2]}).select(["x"]), "select_in_files")


@pytest.mark.parametrize("condition", [False, True])
def test_a_selection_goes_below_what_changes_the_order(files: list[str], condition: bool) -> None:
    below = whole(files).filter(X > 20) if condition else whole(files)
    dataset = below.shuffle(16, seed=3).prefetch(2).shuffle(5, seed=4).select(["s", "x"])
    running, fired = rewrite(dataset.node)
    (reader,) = [step for step in walk(running) if isinstance(step, Reader)]
    assert reader.format.columns == ("s", "x")  # type: ignore[attr-defined]
    assert fired.count("select_before_order") == 3
    plain = [element for element, _ in _streamed(dataset.node)]
    assert str(dataset.to_list()) == str(plain)


def check_states_lead_on(one: Node, other: Node, expected: list[int], most: int) -> None:
    """What follows a state of one tree, up to so many rows, comes out of the other."""
    rows: list[int] = []
    with Run() as run:
        for block, after in one.open(one.start(0), run):
            rows += [int(row["x"]) for row in block.elements()]
            with Run() as again:
                rest = [int(row["x"]) for found, _ in other.open(after, again) for row in found.elements()]
            assert rows + rest == expected
            if len(rows) > most:
                break


def test_states_of_either_order_lead_on_in_the_other(files: list[str]) -> None:
    dataset = whole(files).shuffle(16, seed=3).select(["x"])
    node, moved = dataset.node, rewrite(dataset.node)[0]
    expected = [row["x"] for row in dataset.to_list()]
    check_states_lead_on(node, moved, expected, 30)
    check_states_lead_on(moved, node, expected, 30)


def test_a_selection_below_a_shuffle_keeps_the_laws(tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    di.io.write_parquet(path, {"x": np.arange(9), "y": np.ones(9)}, row_group_size=3)
    dataset = di.data.ParquetDataset(path).shuffle(4, seed=1).prefetch(1).select(["x"])
    assert ops_after(dataset, "select_before_order")[-2:] == ["shuffle", "prefetch"]


def test_a_selection_stays_where_nothing_is_read_for_it(files: list[str]) -> None:
    slices = di.data.Dataset.from_tensor_slices({"x": [1], "y": [2]})
    assert not fires(slices.shuffle(3).select(["x"]), "select_before_order")
    assert not fires(whole(files).map(lambda row: row).shuffle(3).select(["x"]), "select_before_order")


def test_arrow_files_leave_out_columns(tmp_path: Path) -> None:
    path = str(tmp_path / "a.arrow")
    di.io.write_arrow(path, {"x": np.arange(5), "y": np.ones(5)})
    dataset = di.data.ArrowDataset(path).filter(X > 2).select(["x"])
    assert dataset.to_list() == [{"x": 3}, {"x": 4}]
    assert "filter_in_files" not in dataset.explain()
    assert fires(di.data.ArrowDataset(path).select(["y"]), "select_in_files")


def test_a_state_leads_on_in_the_middle_of_a_file(files: list[str]) -> None:
    dataset = whole(files).filter(X > 50).select(["x"])
    it = iter(dataset)
    first = [next(it)["x"] for _ in range(15)]
    rest = [row["x"] for row in dataset.restore(it.state())]
    assert first + rest == [row["x"] for row in dataset]


def each_file(file: Any) -> Dataset[Any]:
    return di.data.ParquetDataset(file.decode(), nulls={"z": -1})


def shuffled_file(file: Any) -> Dataset[Any]:
    return each_file(file).filter(X > 20).shuffle(7, seed=5)


def in_turn(files: list[str]) -> list[Dataset[Any]]:
    names = di.data.Dataset.from_tensor_slices([file.encode() for file in files])
    return [
        di.data.ParquetDataset(files, num_parallel_reads=2, nulls={"z": -1}),
        names.interleave(each_file, cycle_length=2, block_length=3),
        names.interleave(shuffled_file, cycle_length=2, num_parallel_calls=2),
        names.flat_map(each_file),
        names.flat_map(shuffled_file),
    ]


@pytest.mark.parametrize("kind", range(5))
def test_a_selection_goes_into_the_files_that_a_function_opens(
    files: list[str], kind: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: set[Any] = set()
    portions = Parquet.portions

    def noting(self: Any, *given: Any, **named: Any) -> Any:
        asked.add(self.columns)
        return portions(self, *given, **named)

    monkeypatch.setattr(Parquet, "portions", noting)
    dataset = in_turn(files)[kind].filter(X < 90).shuffle(5, seed=2).select(["s"])
    found = dataset.to_list()
    assert asked == {("s", "x")}
    assert "select_in_made" in dataset.explain()
    assert str(found) == str([element for element, _ in _streamed(dataset.node)])


@pytest.mark.parametrize("kind", range(5))
def test_states_are_those_without_the_selection_inside(files: list[str], kind: int) -> None:
    node = in_turn(files)[kind].select(["x", "v"]).node
    moved = rewrite(node)[0]
    expected = [int(element["x"]) for element, _ in _streamed(node)]
    check_states_lead_on(node, moved, expected, 70)
    check_states_lead_on(moved, node, expected, 70)


@pytest.mark.parametrize("kind", range(5))
def test_a_selection_inside_keeps_the_laws(short_files: list[str], kind: int) -> None:
    assert "select" not in ops_after(in_turn(short_files)[kind].select(["x"]), "select_in_made")


def test_a_filter_stays_outside_of_files_in_turn(files: list[str]) -> None:
    """Without a row group of one file, the turns would be others."""
    dataset = in_turn(files)[0].filter((X < 5) | (X > 70)).select(["x"])
    assert "filter_in_files" not in dataset.explain()
    plain = [int(row["x"]) for row in in_turn(files)[0] if row["x"] < 5 or row["x"] > 70]
    assert [int(row["x"]) for row in dataset] == plain


def test_a_column_that_no_file_has_is_an_error_where_a_function_opens_them(files: list[str]) -> None:
    for dataset in (in_turn(files)[1].select(["q"]), in_turn(files)[3].select(["q"]).ignore_errors()):
        with pytest.raises(InvalidArgumentError, match="select: elements have no component 'q'; they have"):
            dataset.to_list()
