# SPDX-License-Identifier: Apache-2.0
"""The suite for datasets: what is right passes, and each way to be wrong is caught under the name of its law."""

import os
import random
import threading
from dataclasses import dataclass
from functools import cached_property, partial
from multiprocessing import parent_process
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
from hypothesis import given, settings

import distinput as di
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Dense
from distinput.columns.rows import Stream
from distinput.columns.state import State
from distinput.ops.map import Map
from distinput.plan.node import UNKNOWN, Needs, Node
from distinput.run.run import Run
from distinput.testing import check_dataset, check_restart, check_rewrites, check_spec
from distinput.testing.dataset import LAWS
from distinput.testing.laws import check_nothing_left, check_positions
from distinput.testing.pipelines import OPS, Pipeline, pipelines
from distinput.values.nest import LEAF
from distinput.values.spec import Spec
from tests.depth import sampled

Dataset = di.data.Dataset


@dataclass(frozen=True, eq=False)
class Right(Node):
    """The elements of the input as they are; each wrong op below differs from it in one thing."""

    input: Node

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def cardinality(self) -> int:
        return self.input.cardinality

    def start(self, epoch: int) -> State:
        return {"input": self.input.start(epoch)}

    def start_at(self, row: int, epoch: int) -> State | None:
        at = self.input.start_at(row, epoch)
        return None if at is None else {"input": at}

    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state["input"], run):
            yield block, {"input": after}


class WrongSpec(Right):
    @cached_property
    def spec(self) -> Spec:
        return Spec.leaf((), np.float32)


class WrongCardinality(Right):
    @property
    def cardinality(self) -> int:
        return self.input.cardinality + 1


class StateBeforeTheBlock(Right):
    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state["input"], run):
            yield block, state
            state = {"input": after}


class DataInTheState(Right):
    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state["input"], run):
            yield block, {"input": after, "seen": "x" * 200}


class StateThatIsNoJson(Right):
    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state["input"], run):
            yield block, {"input": after, "seen": np.arange(3)}


class ForgetsWhatItHolds(Right):
    """A buffer of one block whose state is that of the input behind it: after a restart the block held is lost."""

    def stream(self, state: State, run: Run) -> Stream:
        held = None
        for block, after in self.input.open(state["input"], run):
            if held is not None:
                yield held, {"input": after}
            held, last = block, {"input": after}
        if held is not None:
            yield held, last


class RemembersAcrossPasses(Right):
    def stream(self, state: State, run: Run) -> Stream:
        passed = self.__dict__["passed"] = self.__dict__.get("passed", 0) + 1
        for block, after in self.input.open(state["input"], run):
            yield add(block, passed), {"input": after}


class DrawsFromTheWorld(Right):
    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state["input"], run):
            yield add(block, random.randrange(1 << 30)), {"input": after}


class OtherPosition(Right):
    def start_at(self, row: int, epoch: int) -> State | None:
        return super().start_at(row + 1, epoch)


class OtherOrderOfFetchedRows(Right):
    random_access: ClassVar[bool] = True  # type: ignore[assignment]

    def fetch(self, rows: Any, epoch: int) -> Block:
        return self.input.fetch(rows[::-1], epoch)


class OtherElementsElsewhere(Right):
    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state["input"], run):
            yield add(block, int(parent_process() is not None)), {"input": after}


class LeavesAThread(Right):
    def stream(self, state: State, run: Run) -> Stream:
        threading.Thread(target=threading.Event().wait, daemon=True).start()  # as long as the process
        yield from super().stream(state, run)


class LeavesAFile(Right):
    def stream(self, state: State, run: Run) -> Stream:
        opened.append(open(os.devnull))  # noqa: SIM115 - that is what is wrong
        yield from super().stream(state, run)


class DropsOneOfEachBlock(Right):
    """Passes every law but one: with the usual blocks it does the same each time."""

    @property
    def cardinality(self) -> int:
        return UNKNOWN

    def start_at(self, row: int, epoch: int) -> None:
        return None

    def stream(self, state: State, run: Run) -> Stream:
        for block, after in self.input.open(state["input"], run):
            if block.size > 1:
                yield block.rows(1, block.size), {"input": after}


class NeedsMoreThanItSays(Right):
    """The running number of each element is in it: a part of the input is counted anew."""

    needs = Needs.ONE

    def stream(self, state: State, run: Run) -> Stream:
        row = state.get("row", 0)
        for block, after in self.input.open(state["input"], run):
            yield (
                ColumnBlock(LEAF, [Dense(row + np.arange(block.size))], block.size),
                {"input": after, "row": row + block.size},
            )
            row += block.size

    def start_at(self, row: int, epoch: int) -> State | None:
        at = super().start_at(row, epoch)
        return None if at is None else {**at, "row": row}


class IsNotOneForOne(DropsOneOfEachBlock):
    needs = Needs.ONE


class IsSeen(Right):
    transparent = True


class AsksAStateThatIsNotThere(Right):
    def source_of(self, state: State, ahead: int) -> tuple[State, int] | None:
        return state["input"], ahead + state["skip"]


class Raises(Right):
    def start_at(self, row: int, epoch: int) -> State | None:
        raise KeyError("row")


class TakesNoOtherInput(Map):
    """Whoever puts another input below it gets the old one: all workers read the same."""

    def with_inputs(self, inputs: tuple[Node, ...]) -> Node:
        return self


opened: list[Any] = []


def add(block: Block, number: int) -> Block:
    (column,) = block.columns
    return ColumnBlock(LEAF, [Dense(column.whole() + number)], block.size)


def behind_a_range(op: type[Node]) -> Dataset:
    return Dataset.range(9).apply(lambda ds: Dataset(op(ds.node)))


@pytest.mark.parametrize(
    "op, law, says",
    [
        (WrongSpec, "spec", "must fit"),
        (WrongCardinality, "spec", "the cardinality is 10, but there are 9"),
        (StateBeforeTheBlock, "restart", "restart at"),
        (DataInTheState, "restart", "holds data"),
        (StateThatIsNoJson, "restart", "TypeError"),
        (RemembersAcrossPasses, "restart", "expected"),
        (DrawsFromTheWorld, "restart", "expected"),
        (NeedsMoreThanItSays, "facts", "needs of its input ONE: over shard 0 of 2"),
        (IsNotOneForOne, "facts", "of 9 elements it makes 8"),
        (IsSeen, "facts", "says that its states are those of its input"),
        (AsksAStateThatIsNotThere, "facts", "cannot say which record its element -1 comes from"),
        (OtherPosition, "positions", "start_at"),
        (OtherOrderOfFetchedRows, "positions", "fetch"),
        (Raises, "positions", r"KeyError\('row'\) was raised"),
        (ForgetsWhatItHolds, "blocks", "a state of"),
        (DropsOneOfEachBlock, "blocks", "blocks of 1"),
        (OtherElementsElsewhere, "another process", "another process: "),
        (LeavesAThread, "nothing left", "there are still"),
        (LeavesAFile, "nothing left", "there are still"),
    ],
)
def test_an_op_that_is_wrong_is_caught_under_the_name_of_the_law(
    op: type[Node], law: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("distinput.testing.dataset.check_nothing_left", partial(check_nothing_left, seconds=0.3))
    quick = {} if law == "another process" else {"leave_out": ["another process"]}
    with pytest.raises(AssertionError, match=rf"^{law}: .*{says}"):
        check_dataset(partial(behind_a_range, op), **quick)
    while opened:
        opened.pop().close()


def test_an_op_that_only_blocks_of_another_size_show_to_be_wrong_passes_the_other_laws() -> None:
    wrong = behind_a_range(DropsOneOfEachBlock)
    for law in (check_spec, check_restart, check_rewrites, check_positions):
        law(wrong)


def test_an_op_that_is_right_passes_all_laws() -> None:
    assert check_dataset(partial(behind_a_range, Right), list(range(9))) == tuple(LAWS)


def test_other_elements_than_said_are_caught() -> None:
    with pytest.raises(AssertionError, match=r"^same elements: same as a list: element 8"):
        check_dataset(partial(behind_a_range, Right), [*range(8), 9])


def lines_of_three_files(folder: Path) -> Dataset:
    for number in range(3):
        (folder / f"{number}.txt").write_text("".join(f"{number}{line}\n" for line in range(3)))
    return di.data.TextLineDataset(sorted(map(str, folder.iterdir())))


def same(line: bytes) -> bytes:
    return line


def test_files_dealt_to_workers_are_read_once(tmp_path: Path) -> None:
    lines = lines_of_three_files(tmp_path)
    assert "policies" in check_dataset(lambda: lines.map(same), policies=["AUTO", "BALANCED", "DATA", "FILE"])


def test_an_op_that_keeps_its_old_input_breaks_the_policies(tmp_path: Path) -> None:
    lines = lines_of_three_files(tmp_path)
    with pytest.raises(AssertionError, match=r"^policies: policy FILE, 2 workers: missing \[\], too many"):
        check_dataset(lambda: Dataset(TakesNoOtherInput(lines.node, same)), policies=["FILE"], leave_out=["facts"])


def test_what_a_law_says_nothing_about_is_not_said_to_be_checked() -> None:
    windows = check_dataset(lambda: Dataset.range(5).window(2))
    assert {"distributed", "another process", "same elements"}.isdisjoint(windows)
    assert "policies" not in check_dataset(lambda: Dataset.range(5), policies=["FILE"])


@pytest.mark.parametrize("count", [199, 200, 201, 450])
def test_a_pipeline_of_many_elements_keeps_the_laws(count: int) -> None:
    quick = ("spec", "facts", "positions", "shards", "policies")
    others = [law for law in LAWS if law not in quick]
    assert check_dataset(lambda: Dataset.range(count).map(same), leave_out=others) == quick


def test_a_pipeline_without_an_end_keeps_the_laws() -> None:
    endless = Dataset.range(7).repeat()
    assert check_dataset(
        lambda: endless, leave_out=[law for law in LAWS if law not in ("shards", "policies", "facts")]
    ) == (
        "facts",
        "shards",
        "policies",
    )
    assert "facts" not in check_dataset(lambda: Dataset.range(1001), leave_out=[law for law in LAWS if law != "facts"])


def test_elements_behind_the_first_hundreds_are_looked_at(tmp_path: Path) -> None:
    lines = di.data.TextLineDataset([str(write_lines(tmp_path, name, 150)) for name in "abc"])
    with pytest.raises(AssertionError, match=r"^policies: policy FILE, 2 workers: missing \[\], too many"):
        check_dataset(
            lambda: Dataset(TakesNoOtherInput(lines.node, same)),
            policies=["FILE"],
            leave_out=[law for law in LAWS if law != "policies"],
        )
    assert "policies" in check_dataset(
        lambda: lines, policies=["FILE"], leave_out=[law for law in LAWS if law != "policies"]
    )


def write_lines(folder: Path, name: str, count: int) -> Path:
    path = folder / name
    path.write_text("".join([f"{name}{number}\n" for number in range(count)]))
    return path


def test_an_unknown_law_cannot_be_left_out() -> None:
    with pytest.raises(ValueError, match="there is no law 'restarts'; known are same elements, spec, facts"):
        check_dataset(lambda: Dataset.range(5), leave_out=["restarts"])


NAMES = [op.name for op in OPS]
OFTEN = NAMES[::4]
"""Ops that are tried in `make test`, too; tests/laws/test_pipelines.py has the laws of each."""


@pytest.mark.parametrize("op", sampled(OFTEN, sorted({*NAMES} - {*OFTEN})))
def test_our_ops_pass_the_suite(op: str) -> None:
    @settings(max_examples=1)
    @given(pipelines(most_ops=1, last=op))
    def passes(pipeline: Pipeline) -> None:
        elements = pipeline.elements if pipeline.exact else None
        checked = check_dataset(pipeline.build, elements, state_bytes=20_000)
        assert {"spec", "restart", "rewrites", "facts", "positions", "blocks", "shards", "nothing left"} <= set(checked)

    passes()
