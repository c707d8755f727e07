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
    # What meets the interruption where no Python code can, a destructor or C code, reports it and goes on; so does a thread
    # that ends with it.
    _keep_quiet_about(interruption)
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


def _keep_quiet_about(interruption: type[BaseException]) -> None:
    """Have nobody report the interruption on the standard error, from now on."""
    unraisable, uncaught, in_thread = sys.unraisablehook, sys.excepthook, threading.excepthook
    sys.unraisablehook = lambda args: None if args.exc_type is interruption else unraisable(args)
    sys.excepthook = lambda kind, error, trace: None if kind is interruption else uncaught(kind, error, trace)
    threading.excepthook = lambda args: None if args.exc_type is interruption else in_thread(args)


def may_be_interrupted(frame: FrameType | None) -> bool:
    """Whether a thread that stands there uses neither LLVM nor a file."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("llvmlite.binding") or (name, frame.f_code.co_name) in _USERS_OF_FILES:
            return False
        frame = frame.f_back
    return True
