# SPDX-License-Identifier: Apache-2.0
"""Functions that travel as they are keep the name of their file, also those inside of them."""

import pickle
import subprocess
import sys
from typing import Any

import pytest

from distinput.run.segments import dumps

pytest.importorskip("cloudpickle", reason="cloudpickle is not installed")


def test_a_traceback_in_another_process_shows_the_lines() -> None:
    def outer(x: int) -> Any:
        def inner() -> float:
            return 1 / x  # here

        return inner()

    program = "import pickle, sys; pickle.load(sys.stdin.buffer)(0)"
    done = subprocess.run([sys.executable, "-c", program], input=dumps(outer), capture_output=True, check=False)
    for line in (f'File "{__file__}"', "return inner()", "return 1 / x  # here", "ZeroDivisionError"):
        assert line in done.stderr.decode()


def test_what_comes_back_is_the_function() -> None:
    assert pickle.loads(dumps(lambda x: [x * n for n in range(3)]))(2) == [0, 2, 4]


def test_options_are_those_of_pickle() -> None:
    assert dumps(1, protocol=2)[:2] == b"\x80\x02"


def test_what_cannot_be_pickled_says_so() -> None:
    with pytest.raises(TypeError, match="cannot pickle"):
        dumps(number for number in (1, 2))
