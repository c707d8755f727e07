# SPDX-License-Identifier: Apache-2.0
"""The way of a dataset from `experimental_distribute_dataset` to the first step goes through few functions, and downwards.

What is counted: every distinct function of `distinput/distribute` that is called on the calling thread, properties included;
a comprehension or lambda counts as the function around it. A call goes up when the file of the calling function stands below
that of the called one in `ROOMS`; functions of other packages in between are passed over. For several workers, `collectives/`
and `engines/`, which carry the exchanges, are left out.
"""

import re
import sys
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import distinput as di
from tests.distribute.workers import on_workers, with_policy

ROOT = Path(di.__file__).parent / "distribute"
POLICY = di.data.experimental.AutoShardPolicy

ROOMS = (
    "core/current", "rehearsal", "core/mirrored", "core/one_device", "core/strategy",
    "input/distribution", "input/distributed_dataset", "input/delivery", "input/lanes", "input/sources", "input/lockstep",
    "input/dealing", "input/comparison", "input/located", "core/options", "core/contexts",
    "rpc", "variables",
    "core/replica_reducer", "core/replicas", "core/rendezvous", "core/values", "core/array_arithmetic", "devices",
)  # fmt: skip
"""From top to bottom."""
BELOW = ("collectives", "engines")
ASIDE = ("coordinator", "door", "preemption", "seats", "tpu")
"""Rooms that no dataset passes through on this way."""

Function = tuple[str, str]


def room(file: str) -> str:
    name = file.removesuffix(".py")
    return next((one for one in (*ROOMS, *BELOW, *ASIDE) if name == one or name.startswith(f"{one}/")), name)


def function_of(frame: FrameType) -> Function | None:
    path = Path(frame.f_code.co_filename)
    if not path.is_relative_to(ROOT):
        return None
    name = re.sub(r"((\.<locals>)?\.<(listcomp|genexpr|dictcomp|setcomp|lambda)>)+", "", frame.f_code.co_qualname)
    return path.relative_to(ROOT).as_posix(), name


def way(body: Callable[[], Any]) -> tuple[set[Function], set[tuple[Function, Function]]]:
    """The functions that `body` calls, and the calls among them that go up."""
    functions: set[Function] = set()
    up: set[tuple[Function, Function]] = set()

    def look(frame: FrameType, event: str, argument: Any) -> None:
        called = function_of(frame) if event == "call" else None
        if called is None or room(called[0]) in BELOW:
            return
        functions.add(called)
        before = frame.f_back
        while before is not None and (caller := function_of(before)) is None:
            before = before.f_back
        if before is None or caller is None or room(caller[0]) in BELOW:
            return
        if ROOMS.index(room(caller[0])) > ROOMS.index(room(called[0])):
            up.add((caller, called))

    sys.setprofile(look)
    try:
        body()
    finally:
        sys.setprofile(None)
    return functions, up


def numbers() -> Any:
    return di.data.Dataset.range(64).batch(8)


def chosen() -> Any:
    return di.data.Dataset.range(64).filter(lambda x: True).batch(8)


def counted(make: Callable[[], Any], policy: Any, workers: int, first_step: bool) -> tuple[int, int]:
    """How many functions there are on the way, and how many calls that go up."""

    def body(strategy: Any, worker: int) -> Any:
        def go() -> None:
            distributed = strategy.experimental_distribute_dataset(with_policy(make(), policy))
            if first_step:
                next(iter(distributed))

        go()  # what is loaded at the first use is loaded now, whatever ran before
        return way(go)

    if workers == 1:
        functions, up = body(di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]), 0)
    else:
        functions, up = on_workers([1] * workers, body, timeout=60)[0]
    return len(functions), len(up)


@pytest.mark.parametrize(
    "make, policy, workers, functions, up",
    [
        (numbers, POLICY.DATA, 1, 20, 0),
        (numbers, POLICY.DATA, 2, 38, 2),
        (chosen, POLICY.DATA, 2, 36, 2),
        (numbers, POLICY.OFF, 2, 30, 2),
    ],
    ids=["one process", "own pieces", "cut batches", "dealt elements"],
)
def test_from_the_strategy_to_the_distributed_dataset(
    make: Callable[[], Any], policy: Any, workers: int, functions: int, up: int
) -> None:
    found = counted(make, policy, workers, first_step=False)
    assert found[0] <= functions
    assert found[1] <= up


@pytest.mark.parametrize(
    "make, policy, workers, functions, up",
    [
        (numbers, POLICY.DATA, 1, 37, 0),
        (numbers, POLICY.DATA, 2, 65, 4),
        (chosen, POLICY.DATA, 2, 73, 4),
        (numbers, POLICY.OFF, 2, 59, 4),
    ],
    ids=["one process", "own pieces", "cut batches", "dealt elements"],
)
def test_from_the_strategy_to_the_first_step(
    make: Callable[[], Any], policy: Any, workers: int, functions: int, up: int
) -> None:
    found = counted(make, policy, workers, first_step=True)
    assert found[0] <= functions
    assert found[1] <= up


def test_every_file_has_its_room() -> None:
    files = [file.relative_to(ROOT).as_posix() for file in sorted(ROOT.rglob("*.py")) if file.name != "__init__.py"]
    public = ("cluster_resolver", "experimental")
    assert [file for file in files if room(file) not in (*ROOMS, *BELOW, *ASIDE, *public)] == []
