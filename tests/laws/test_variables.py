# SPDX-License-Identifier: Apache-2.0
"""Random programs of reads and writes give what a list of numbers, one for each replica, gives.

The model below is written from the rules alone: a number for each copy, and for each policy what a read gives and what a
write does. The same programs run in one process and on several workers.
"""

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from tests.distribute.workers import on_workers

NUMBERS = st.integers(-8, 8).map(float)
METHODS = st.sampled_from(["assign", "assign_add", "assign_sub"])
AGGREGATIONS = ("NONE", "SUM", "MEAN", "ONLY_FIRST_REPLICA")
KINDS = ("mirrored", "on_read", "central", "single")
MOST = 4
PER_REPLICA = st.lists(NUMBERS, min_size=MOST, max_size=MOST)

STATEMENTS = st.one_of(
    st.tuples(st.just("replica"), METHODS, PER_REPLICA),
    st.tuples(st.just("same number"), METHODS, NUMBERS),
    st.tuples(st.just("scope"), METHODS, NUMBERS),
    st.tuples(st.just("outside"), METHODS, NUMBERS),
    st.tuples(st.just("each"), METHODS, PER_REPLICA),
    st.tuples(st.just("update"), METHODS, PER_REPLICA),
    st.tuples(st.just("merge"), METHODS, PER_REPLICA),
    st.tuples(st.just("read"), st.none(), st.none()),
    st.tuples(st.just("saved and restored"), st.none(), st.none()),
)
PROGRAMS = st.lists(STATEMENTS, min_size=1, max_size=8)

Statement = tuple[str, Any, Any]


class Refused(Exception):
    """The rules do not allow a statement."""


def changed(method: str, old: float, new: float) -> float:
    return {"assign": new, "assign_add": old + new, "assign_sub": old - new}[method]


def added(numbers: Sequence[float]) -> float:
    """One after the other, as replicas are added; `sum` of Python 3.12 rounds once, at the end."""
    total = 0.0
    for number in numbers:
        total += number
    return total


@dataclass
class Model:
    """One number for each replica of all workers, or a single one, as one of the workers sees them."""

    kind: str
    aggregation: str
    layout: tuple[int, ...]
    worker: int = 0
    copies: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.copies = [1.0] * (1 if self.single else self.replicas)

    @property
    def single(self) -> bool:
        return self.kind in ("central", "single")

    @property
    def replicas(self) -> int:
        return sum(self.layout)

    def first(self, worker: int) -> int:
        """The first replica of a worker."""
        return sum(self.layout[:worker])

    @property
    def own(self) -> slice:
        """The replicas of this worker."""
        return slice(self.first(self.worker), self.first(self.worker + 1))

    def read(self) -> float:
        if self.kind != "on_read" or self.aggregation == "ONLY_FIRST_REPLICA":
            return self.copies[self.first(self.worker)]
        if self.aggregation == "NONE":
            raise Refused
        return added(self.copies) / (len(self.copies) if self.aggregation == "MEAN" else 1)

    def aggregate(self, numbers: Sequence[float], same: bool) -> float:
        if self.aggregation == "ONLY_FIRST_REPLICA":
            return numbers[0]
        if self.aggregation == "MEAN":
            return added(numbers) / len(numbers)
        if same and len(self.layout) == 1 and len(numbers) > 1 and numbers[0] != 0:
            raise Refused  # is the number meant once, or once for each replica?
        return added(numbers)

    def in_replicas(self, method: str, numbers: Sequence[float], same: bool = False) -> None:
        if self.kind == "on_read" or (self.kind == "mirrored" and self.aggregation == "NONE"):
            self.each(method, numbers)
        elif self.kind == "single":
            self.copies[0] = changed(method, self.copies[0], numbers[0])
        elif self.aggregation == "NONE":
            raise Refused
        else:
            self.each(method, [self.aggregate(numbers, same)] * len(self.copies))

    def each(self, method: str, numbers: Sequence[float]) -> None:
        self.copies = [changed(method, old, new) for old, new in zip(self.copies, numbers, strict=False)]

    def outside(self, method: str, number: float) -> None:
        summed = self.kind == "on_read" and self.aggregation == "SUM"
        if summed and method != "assign":
            raise Refused
        self.each(method, [number / self.replicas if summed else number] * len(self.copies))
        if self.kind == "on_read":
            self.read()

    def do(self, statement: Statement) -> Any:
        what, method, numbers = statement
        match what:
            case "replica":
                self.in_replicas(method, numbers[: self.replicas])
            case "same number":
                self.in_replicas(method, [numbers] * self.replicas, same=True)
            case "scope" | "outside":
                self.outside(method, numbers)
            case "each":
                if self.single:
                    return None
                if self.kind == "on_read" and self.aggregation == "SUM":
                    raise Refused
                self.each(method, numbers)
                if self.kind == "on_read":
                    self.read()
            case "update" | "merge":
                self.each(method, numbers)
            case "saved and restored":
                alone = self.kind == "mirrored" or self.aggregation == "ONLY_FIRST_REPLICA"
                if alone and not self.single:  # a worker saves its own first copy
                    self.copies = [self.copies[self.first(w)] for w, n in enumerate(self.layout) for _ in range(n)]
                else:
                    saved = self.read()
                    summed = self.kind == "on_read" and self.aggregation == "SUM"
                    self.copies = [saved / self.replicas if summed else saved] * len(self.copies)
        return self.read()


def run(strategy: Any, v: Any, model: Model, statement: Statement) -> Any:
    """Do what the statement says."""
    what, method, numbers = statement

    def own() -> Any:
        return np.array(numbers[di.distribute.get_replica_context().replica_id_in_sync_group])

    def each() -> Any:
        if model.single:
            return np.array(numbers[0])
        return di.distribute.PerReplica([np.array(x) for x in numbers[: model.replicas][model.own]])

    def update(x: Any) -> None:
        strategy.extended.update(v, lambda part, y: getattr(part, method)(y), args=(x,))

    def merge() -> None:
        di.distribute.get_replica_context().merge_call(
            lambda strategy, x: update(each() if model.single else x), args=(own(),)
        )

    match what:
        case "replica":
            strategy.run(lambda: getattr(v, method)(own()))
        case "same number":
            strategy.run(lambda: getattr(v, method)(numbers))
        case "scope":
            with strategy.scope():
                getattr(v, method)(numbers)
        case "outside":
            getattr(v, method)(numbers)
        case "each" if model.single:
            return None
        case "each":
            getattr(v, method)(each())
        case "update":
            update(each())
        case "merge":
            strategy.run(merge)
        case "saved and restored":
            v._restored(v._saved())
    return float(v)


def compare(strategy: Any, v: Any, model: Model, program: Sequence[Statement]) -> None:
    for statement in program:
        try:
            want = model.do(statement)
        except Refused:
            with pytest.raises(
                ValueError, match=r"Could not convert|cannot be reduced|does not support|must specify|PerReplica"
            ):
                run(strategy, v, model, statement)
        else:
            assert run(strategy, v, model, statement) == want, statement
        copies = [float(part) for part in v.values] if isinstance(v, di.distribute.DistributedValues) else [float(v)]
        assert copies == (model.copies if model.single else model.copies[model.own]), statement
        seen = strategy.experimental_local_results(strategy.run(lambda: v + 0.0))
        assert [float(x) for x in seen] == (copies if len(copies) > 1 else copies * len(seen)), statement


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("kind", KINDS)
@settings(max_examples=60, deadline=None)
@given(replicas=st.integers(1, MOST), program=PROGRAMS)
def test_programs_in_one_process(kind: str, aggregation: str, replicas: int, program: list[Statement]) -> None:
    devices = [f"CPU:{i}" for i in range(replicas)]
    if kind == "single" or (kind == "central" and replicas == 1):
        strategy: Any = di.distribute.OneDeviceStrategy("CPU:0")
        kind, replicas = "single", 1
    elif kind == "central":
        strategy = di.distribute.CentralStorageStrategy(devices)
    else:
        strategy = di.distribute.MirroredStrategy(devices)
    with strategy.scope():
        v = di.Variable(
            1.0, dtype=np.float64, aggregation=aggregation, synchronization="ON_READ" if kind == "on_read" else "AUTO"
        )
    compare(strategy, v, Model(kind, aggregation, (replicas,)), program)


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
@pytest.mark.parametrize("kind", ["mirrored", "on_read"])
@settings(max_examples=8, deadline=None)
@given(layout=st.sampled_from([(1, 1), (2, 1), (1, 3)]), program=PROGRAMS)
def test_programs_on_several_workers(
    kind: str, aggregation: str, layout: tuple[int, int], program: list[Statement]
) -> None:
    def body(strategy: Any, worker: int) -> None:
        with strategy.scope():
            v = di.Variable(
                1.0 if worker == 0 else 5.0,  # the chief's counts
                dtype=np.float64,
                aggregation=aggregation,
                synchronization="ON_READ" if kind == "on_read" else "AUTO",
            )
        compare(strategy, v, Model(kind, aggregation, layout, worker), program)

    for result in on_workers(layout, body):
        if isinstance(result, BaseException):
            raise result


@pytest.mark.parametrize("aggregation", AGGREGATIONS)
def test_writes_of_threads_are_not_lost(aggregation: str) -> None:
    """Threads of the program's own write outside of all scopes while replicas write too."""
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(3)])
    with strategy.scope():
        v = di.Variable(np.zeros(1000), aggregation=aggregation)
    one = np.ones(1000)

    def add() -> None:
        for _ in range(50):
            v.assign_add(one)

    threads = [threading.Thread(target=add) for _ in range(3)]
    for thread in threads:
        thread.start()
    for _ in range(20):
        strategy.run(lambda: v.assign_add(one + 0))
    for thread in threads:
        thread.join()
    share = 3 if aggregation == "SUM" else 1
    assert [set(part.numpy().tolist()) for part in v.values] == [{150.0 + 20 * share}] * 3


def test_replicas_may_share_a_single_variable() -> None:
    """A variable created outside of the scope is one value, and its writes are atomic."""
    strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(4)])
    v = di.Variable(np.zeros(2000))
    one = np.ones(2000)

    def step() -> None:
        for _ in range(25):
            v.assign_add(one)
            v.scatter_sub(di.IndexedSlices([1.0], [7]))

    strategy.run(step)
    assert v.numpy()[7] == 0
    assert v.numpy()[8] == 100
