# SPDX-License-Identifier: Apache-2.0
"""Elements, functions and errors may be of classes of the script that runs, wherever functions are called."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("cloudpickle")

SCRIPT = """
import concurrent.futures
import multiprocessing
import sys
from collections import namedtuple
from dataclasses import dataclass
from enum import Enum
from typing import Any, NamedTuple

import distinput as di

Dataset = di.data.Dataset


@dataclass
class Row:
    x: Any


@dataclass(frozen=True)
class Pair:
    row: Row
    named: Any


Point = namedtuple("Point", "x y")


class Named(NamedTuple):
    a: Any
    b: Any


class Color(Enum):
    RED = 1
    BLUE = 2


class Base:
    def __call__(self, x):
        return x + 1


class Derived(Base):
    def __call__(self, x):
        return super().__call__(x) * 2


class Mine(ValueError):
    pass


def fails(x):
    raise Mine("of mine")


def row_of(n): return Row(n)
def is_row(row): return isinstance(row, Row)
def pair_of(n): return Pair(Row(n), {"k": Point(n, n)})
def color_of(n): return Color(int(n) + 1).value


def look(**how):
    def made(function):
        return list(Dataset.range(2).map(function, num_parallel_calls=1, **how))

    assert made(row_of) == [Row(0), Row(1)], made(row_of)
    assert type(made(row_of)[0]) is Row
    assert made(pair_of) == [Pair(Row(n), {"k": Point(n, n)}) for n in range(2)]
    assert made(lambda n: Named(n, Point(n, n))) == [Named(n, Point(n, n)) for n in range(2)]
    assert made(color_of) == [1, 2]
    assert made(Derived()) == [2, 4]
    rows = Dataset.from_tensor_slices(Row([1, 2]))
    assert list(rows.map(is_row, **how)) == [True, True]
    assert list(rows.map(lambda row: row.x + 1, **how)) == [2, 3]
    assert list(rows.map(lambda row: row, **how)) == [Row(1), Row(2)]
    try:
        made(fails)
    except Mine as error:
        assert str(error) == "of mine"
    else:
        raise AssertionError("nothing was raised")


if __name__ == "__main__":
    if sys.argv[1] == "processes":
        look(processes=True)
    else:
        context = multiprocessing.get_context(sys.argv[1])
        with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as executor:
            look(executor=executor)
    print("all of it")
"""


@pytest.mark.parametrize("way", ["processes", "fork", "spawn"])
def test_classes_of_the_main_script_travel_everywhere(way: str, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(SCRIPT)
    command = [sys.executable, "-W", "ignore::DeprecationWarning", str(script), way]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
    assert (done.stdout, done.returncode) == ("all of it\n", 0), done.stderr


def test_what_a_worker_cannot_read_is_said(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        """
import distinput as di
from distinput.run import segments

segments.has_cloudpickle = lambda: False

class Row:
    pass

class Unreadable:
    def __reduce__(self):
        return exec, ("raise KeyError('no such key')",)

if __name__ == "__main__":
    from distinput.run.processes import Processes

    workers = Processes(abs, 1, "map")
    workers.send(0, Unreadable())
    try:
        workers.receive(0, lambda: True)
    except RuntimeError as error:
        print("no such key" in str(error))
    workers.send(0, -3)
    print(workers.receive(0, lambda: True))
    workers.close()
"""
    )
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, timeout=300, check=False)
    assert done.stdout == "True\n3\n", done.stderr
