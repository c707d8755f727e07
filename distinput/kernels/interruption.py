# SPDX-License-Identifier: Apache-2.0
"""Interrupting a compiling thread from outside, without leaking open files or freeing memory twice.

llvmlite records the owner of an LLVM object only after LLVM has taken it, and a file is open for a moment before the
`with` block begins. So the stack of the thread is inspected, and it is interrupted only when it is in neither place.
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
    """Raise `interruption` in a thread repeatedly until it ends, for at most `longest` seconds."""
    # Destructors and C code report the interruption and continue; a thread that ends with it reports it too.
    _keep_quiet_about(interruption)
    # The thread must not run between the inspection and the interruption, which takes far less than this interval.
    sys.setswitchinterval(0.02)
    deadline = time.monotonic() + longest
    thread.join(0.005)  # a thread that already waits still uses the shorter interval
    while thread.is_alive() and time.monotonic() < deadline:
        may = may_be_interrupted(sys._current_frames().get(thread.ident or 0))
        if may:
            ctypes.pythonapi.PyThreadState_SetAsyncExc(
                ctypes.c_ulong(thread.ident or 0), ctypes.py_object(interruption)
            )
        thread.join(0.5 if may else 0.001)


def _keep_quiet_about(interruption: type[BaseException]) -> None:
    """Suppress reports of the interruption on standard error from now on."""
    unraisable, uncaught, in_thread = sys.unraisablehook, sys.excepthook, threading.excepthook
    sys.unraisablehook = lambda args: None if args.exc_type is interruption else unraisable(args)
    sys.excepthook = lambda kind, error, trace: None if kind is interruption else uncaught(kind, error, trace)
    threading.excepthook = lambda args: None if args.exc_type is interruption else in_thread(args)


def may_be_interrupted(frame: FrameType | None) -> bool:
    """True if a thread at this frame is neither inside LLVM nor using a file."""
    while frame is not None:
        name = frame.f_globals.get("__name__", "")
        if name.startswith("llvmlite.binding") or (name, frame.f_code.co_name) in _USERS_OF_FILES:
            return False
        frame = frame.f_back
    return True
