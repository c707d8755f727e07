# SPDX-License-Identifier: Apache-2.0
"""An interrupt loses no element and repeats none, wherever it comes: at every place at which Python looks for signals.

`interrupted.py` does the same with signals at random moments, as a program for many of them.
"""

import random
import sys
from pathlib import Path

import pytest

from tests.depth import cases
from tests.laws.interrupted import interrupted_at, loops, places, whole

_NAMES = list(loops(""))


@pytest.mark.skipif(
    sys.version_info[:2] == (3, 12), reason="Python 3.12 crashes where instructions are traced while threads run them"
)
@pytest.mark.filterwarnings(
    "ignore::pytest.PytestUnraisableExceptionWarning"
)  # one that comes in a finalizer is not raised
@pytest.mark.parametrize("name", _NAMES)
def test_the_loop_goes_on_behind_the_last_element(name: str, tmp_path: Path) -> None:
    if name == "loader":
        pytest.importorskip("torch")
    make = loops(str(tmp_path), size=12)[name]
    wanted = whole(make())
    count = places(make())
    draw = random.Random(name)
    for at in draw.sample(range(count), min(count, cases(12, 400))):
        for restored in (False, True):
            try:
                got = interrupted_at(make(), at, restored=restored)
            except TypeError as error:
                if "'traceback' object is not callable" not in str(error):
                    raise
                continue  # CPython's own, where a trace function raises behind a with block; signals do not come there
            assert got == wanted, f"interrupted at {at} of {count}"
