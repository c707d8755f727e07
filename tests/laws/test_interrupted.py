# SPDX-License-Identifier: Apache-2.0
"""An interrupt loses no element and repeats none, wherever it comes: at every place at which Python looks for signals.

`interrupted.py` does the same with signals at random moments, as a program for many of them.
"""

import signal
import subprocess
import sys

import pytest

from tests.depth import cases
from tests.laws.interrupted import loops
from tests.nursery import ROOT

_NAMES = [pytest.param(name, marks=pytest.mark.loads("torch")) if name == "loader" else name for name in loops("")]
_CRASHES = (-signal.SIGSEGV, -signal.SIGABRT, -signal.SIGBUS)


@pytest.mark.skipif(
    sys.version_info[:2] == (3, 12), reason="Python 3.12 crashes where instructions are traced while threads run them"
)
@pytest.mark.parametrize("name", _NAMES)
def test_the_loop_goes_on_behind_the_last_element(name: str) -> None:
    if name == "loader":
        pytest.importorskip("torch")
    command = [sys.executable, "-m", "tests.laws.interrupted", "at-places", name, str(cases(12, 400))]
    for _ in range(2):  # other Pythons crash as 3.12 does, but rarely; what crashes twice is no accident
        ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
        if ran.returncode not in _CRASHES:
            break
    assert ran.returncode == 0, ran.stderr
