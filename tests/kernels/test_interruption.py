# SPDX-License-Identifier: Apache-2.0
"""A thread that compiles is interrupted from outside, wherever it stands, in silence."""

import subprocess
import sys
from pathlib import Path

import pytest

from distinput.kernels.kernel import _Interrupted, may_be_interrupted

ROOT = Path(__file__).parents[2]

PROGRAM = """
import ctypes, threading, time
from distinput.kernels.kernel import interrupted
from distinput.kernels.kernel import _Interrupted

started = threading.Event()


def in_python():
    started.set()
    while True:
        time.sleep(0.001)


def in_c():
    # C code that prints the errors of what it runs, as PyErr_Print does, and goes on.
    import __main__
    __main__.started = started
    ctypes.pythonapi.PyRun_SimpleString(b"import time\\nstarted.set()\\nwhile True: time.sleep(0.001)")


def in_a_destructor():
    class Slow:
        def __del__(self):
            started.set()
            while True:
                time.sleep(0.001)

    Slow()


for place in (in_python, in_c, in_a_destructor):
    started.clear()
    thread = threading.Thread(target=place, daemon=True)
    thread.start()
    assert started.wait(60)
    interrupted(thread, _Interrupted, 20.0)
    assert not thread.is_alive(), place
    print(place.__name__, threading.main_thread() is threading.current_thread(), flush=True)
raise ValueError("other errors are reported")
"""


def test_a_thread_ends_in_silence_wherever_it_stands() -> None:
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=300, cwd=ROOT)
    assert done.stdout.split("\n") == ["in_python True", "in_c True", "in_a_destructor True", ""], done.stderr
    assert done.stderr.strip().splitlines()[-1] == "ValueError: other errors are reported"
    assert "_Interrupted" not in done.stderr
    assert done.returncode == 1


def test_an_interruption_does_not_end_the_program() -> None:
    assert not issubclass(_Interrupted, SystemExit | Exception)


@pytest.mark.parametrize("name, may", [("llvmlite.binding.module", False), ("numba.core.compiler", True)])
def test_a_thread_that_uses_llvm_is_left_alone(name: str, may: bool) -> None:
    names = {"__name__": name}
    exec("import sys\ndef look():\n    return sys._getframe()", names)
    assert may_be_interrupted(names["look"]()) is may  # type: ignore[operator]
