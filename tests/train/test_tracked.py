# SPDX-License-Identifier: Apache-2.0
"""Finding what is to be saved."""

import dataclasses
import threading
from typing import Any, NamedTuple

import numpy as np

from distinput.train.tracked import tracked


def paths(**children: Any) -> list[list[str]]:
    return [each.paths for each in tracked([(name, value, None, True) for name, value in children.items()])]


def test_paths_are_keys_numbers_and_attributes() -> None:
    class Pair(NamedTuple):
        left: Any
        right: int

    assert paths(a={"x/y": np.zeros(1), 3: [np.zeros(1), Pair(np.zeros(1), 2)]}, none=None, empty=[]) == [
        ["a/x%2Fy"], ["a/3/0"], ["a/3/1/left"], ["a/3/1/right"], ["empty"],
    ]  # fmt: skip


def test_shared_things_have_several_paths_and_numbers_do_not() -> None:
    array = np.zeros(1)
    loop: list[Any] = [array, 7]
    loop.append(loop)
    assert paths(a=array, b=loop, c=loop, d=7) == [["a", "b/0"], ["b/1"], ["d"]]


def test_attributes_that_hold_nothing_to_save_are_left_out() -> None:
    @dataclasses.dataclass(frozen=True)
    class Options:
        rate: float
        weights: Any

    class Model:
        def __init__(self) -> None:
            self.lock, self.fn, self.kind, self.self = threading.Lock(), print, int, self
            self.options = Options(0.5, np.zeros(1))
            self.step = 3

    assert paths(model=Model()) == [["model/options/rate"], ["model/options/weights"], ["model/step"]]


def test_slots_are_attributes() -> None:
    class Base:
        __slots__ = ("a",)

    class Derived(Base):
        __slots__ = ("__private", "b", "unset")

        def __init__(self) -> None:
            self.__private = 3

    made = Derived()
    made.a, made.b = 1, 2
    assert sorted(paths(it=made)) == [["it/_Derived__private"], ["it/a"], ["it/b"]]
