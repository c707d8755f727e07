# SPDX-License-Identifier: Apache-2.0
"""Ends a thread that compiles, from outside, where that leaves nothing open and frees nothing twice.

llvmlite notes who owns an object of LLVM after LLVM has taken it, and a file is open for a moment before a `with` knows of
it. So the thread is looked at, and interrupted only where it stands in none of these.
"""

import ctypes
import sys
import threading
import time
from types import FrameType

__all__ = ["interrupted", "may_be_interrupted"]

_COMPILER = "distinput.kernels.compiler"
_USERS_OF_FILES = {
    (_COMPILER, "load_overload"),
    (_COMPILER, "save_overload"),
    ("importlib._bootstrap_external", "get_data"),
    ("importlib._bootstrap_external", "set_data"),
}


def interrupted(thread: threading.Thread, interruption: type[BaseException], longest: float) -> None:
    """Throw `interruption` into a thread until it is gone, or `longest` seconds are over."""
    # A destructor that the interruption meets would tell it on the standard error, and go no further with it.
    told = sys.unraisablehook
    sys.unraisablehook = lambda args: None if args.exc_type is interruption else told(args)
    # The thread stands still between the look at it and the interruption: that is much shorter than its turn to wait.
    sys.setswitchinterval(0.02)
    deadline = time.monotonic() + longest
    thread.join(0.005)  # whoever waits already has a shorter turn
    while thread.is_alive() and time.monotonic() < deadline:
        may = may_be_interrupted(sys._current_frames().get(thread.ident or 0))
        if may:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(interruption)
            )
        thread.join(0.5 if may else 0.001)


def may_be_interrupted(frame: FrameType | None) -> bool:
    """Whether a thread that stands there uses neither LLVM nor a file."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("llvmlite.binding") or (name, frame.f_code.co_name) in _USERS_OF_FILES:
            return False
        frame = frame.f_back
    return True
