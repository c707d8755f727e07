# SPDX-License-Identifier: Apache-2.0
"""Kernels that are compiled: kept in files, and loaded as functions, without numba.

What is kept is a shared library, which the system loads; or object code, where the machine that compiled it had no linker. That
is linked into each process by llvmlite, which takes 50 MB of memory.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import itertools
import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any, NoReturn

from distinput.kernels.cache import CacheSlot, digest, is_own_file, may_hold
from distinput.names.lazy import later, library

if TYPE_CHECKING:
    from pathlib import Path

    import llvmlite.binding as llvm  # type: ignore[import-untyped]  # a part of numba; mypy is told of numba only
else:
    llvm = later("llvmlite.binding")  # shared libraries are loaded without it

# For what compiles: they take longer than all that loads a kernel.
fcntl, pathlib, uuid, util = map(library, ("fcntl", "pathlib", "uuid", "importlib.util"))

ENTRY = "distinput_kernel"
"""The name of the function in the code of a kernel that Python calls."""

_LEFT_BEHIND_SECONDS = 3600
"""Writing takes far less than this, so an older temporary file was abandoned."""


# ----------------------------------------------------------------------------
# Files.
# ----------------------------------------------------------------------------


def read(slot: CacheSlot, signature: str) -> bytes | None:
    """The code of a kernel from the first folder that has an intact copy; None if there is none.

    Args:
      slot: its location in the cache.
      signature: its types in numba's notation.
    """
    name, folders = slot
    file = _file(name, signature)
    for folder in folders:
        try:
            with open(os.path.join(folder, file), "rb") as opened:
                content = opened.read()
        except OSError:
            continue
        checksum, code = content[:8], content[8:]
        if _may_execute(folder, file) and digest(code) == checksum:
            return code
    return None


def write(slot: CacheSlot, signature: str, code: bytes) -> None:
    """Keep the code of a kernel in the first folder that can be written to; without one nothing happens."""
    name, folders = slot
    file = _file(name, signature)
    for folder in map(pathlib.Path, folders):
        temporary = folder / f"{file}.{uuid.uuid4().hex[:8]}"
        try:
            folder.mkdir(parents=True, exist_ok=True)
            if not may_hold(str(folder)):
                continue
            temporary.write_bytes(digest(code) + code)
            temporary.replace(folder / file)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink()
            continue
        _remove_unfinished(folder, file)
        if folder.name == "__pycache__":
            _forget_older(folder, name, file)
        return


@contextlib.contextmanager
def claimed(slot: CacheSlot) -> Iterator[bool]:
    """While this lasts no other process claims the folder; false inside if one has it already.

    A process that ends, however it does, gives it back. True wherever folders cannot be claimed.
    """
    own = [folder for folder in slot[1] if os.path.isdir(folder) and os.access(folder, os.W_OK)]
    if not own or sys.platform == "win32":
        yield True
        return
    descriptor = os.open(own[0], os.O_RDONLY)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            is_ours = True
        except BlockingIOError:
            is_ours = False
        except OSError:  # a file system without locks
            is_ours = True
        yield is_ours
    finally:
        with contextlib.suppress(OSError):
            fcntl.flock(descriptor, fcntl.LOCK_UN)  # a child may have been forked, and hold it open as well
        os.close(descriptor)


def _may_execute(folder: str, file: str) -> bool:
    return may_hold(folder) and is_own_file(os.path.join(folder, file), {os.stat(__file__).st_uid})


def _remove_unfinished(folder: Path, file: str) -> None:
    """Remove temporary files left behind by processes that were killed while writing this file."""
    for left in folder.glob(f"{file}.*"):
        with contextlib.suppress(OSError):
            if time.time() - left.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                left.unlink()


def _forget_older(folder: Path, name: str, file: str) -> None:
    """Remove files of earlier versions of the source; this folder belongs to the current version only."""
    version, machine_name = name.rpartition("-")[0], file.rpartition("-")[2]
    for old in folder.glob(f"{version}-*-{machine_name}"):
        if old.name != file:
            with contextlib.suppress(OSError):
                old.unlink()


def _file(name: str, signature: str) -> str:
    key = (*_compiled_by_and_for(), signature, {k: v for k, v in sorted(os.environ.items()) if _matters(k)})
    return f"{name}-{digest(repr(key).encode()).hex()}.nbc"


def _matters(variable: str) -> bool:
    return variable.startswith("NUMBA_") and variable != "NUMBA_CACHE_DIR"


@functools.cache
def _compiled_by_and_for() -> tuple[object, ...]:
    """The versions of what compiles, and the processor that it compiles for. Neither is imported to know its version."""
    return _version("numba"), _version("llvmlite"), sys.version, sys.maxsize, *_processor()


def _version(package: str) -> str:
    """The text of its version; empty if it cannot be found, which the compiler will tell of."""
    with contextlib.suppress(OSError, ValueError):
        found = PathFinder.find_spec(package) or util.find_spec(package)  # what has a finder of its own
        if found and found.origin:
            with open(os.path.join(os.path.dirname(found.origin), "_version.py"), encoding="utf-8") as opened:
                return opened.read()
    return ""


_CORE = {(0, 1), (5, 2)}
"""The words that tell the core that asks, and how many there are."""


def _processor() -> tuple[object, ...]:
    """What the processor can do: all that it says itself, which is what LLVM asks it, or else in the words of LLVM.

    glibc since 2.33 has the answers of the instruction CPUID, in groups of eight words. Behind the last group there are zeros.
    """
    group = getattr(ctypes.pythonapi, "__x86_get_cpuid_feature_leaf", None)
    if group is None:
        return llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    group.restype = ctypes.POINTER(ctypes.c_uint32 * 8)
    return tuple(word for i in range(16) for j, word in enumerate(group(i).contents) if (i, j) not in _CORE)


# ----------------------------------------------------------------------------
# Functions.
# ----------------------------------------------------------------------------


class _Method(ctypes.Structure):
    """`PyMethodDef` of C."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("function", ctypes.c_void_p),
        ("flags", ctypes.c_int),
        ("documentation", ctypes.c_char_p),
    )


_FASTCALL = 0x80
_loaded: list[object] = []  # what the functions are made of, which must outlive them


def load(name: str, types: list[str], code: bytes) -> Callable[..., Any]:
    """The function of Python in code of `distinput.kernels.compiler`, linked or not.

    Args:
      name: of the kernel, for errors.
      types: of its arguments, for errors.
      code: made for this machine; it is executed, so it must come from a folder that is the user's own.
    """
    address, holder = entry(code)
    if not address:
        raise ValueError(f"kernel {name}: its code has no function {ENTRY}")

    def complain(wrong: bytes | int) -> NoReturn:
        if isinstance(wrong, bytes):  # a constant of the code that raised it
            kind, args, _ = pickle.loads(wrong)
            raise kind(*args)
        if wrong > len(types):
            raise SystemError(f"kernel {name}: it returned a status that no kernel has")
        if wrong == len(types):
            raise TypeError(f"kernel {name}: it takes {wrong} arguments, and no names of them")
        raise TypeError(f"kernel {name}: argument {wrong} must be {types[wrong]}: one dimension, in C order, aligned")

    method = _Method(name.encode(), address, _FASTCALL, None)
    make = ctypes.pythonapi.PyCFunction_NewEx
    make.restype, make.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.py_object, ctypes.c_void_p]
    function: Callable[..., Any] = make(ctypes.addressof(method), complain, None)
    _loaded.append((holder, method))
    return function


def entry(code: bytes) -> tuple[int | None, object]:
    """The address of the function that Python calls, in this process, and what must outlive it."""
    if code[:4] == b"\x7fELF" and code[16] == 3:  # a shared library, not object code
        library = _library(code)
        return ctypes.cast(library[ENTRY], ctypes.c_void_p).value, library
    _prepare()
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), _target().create_target_machine())
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    address = engine.get_function_address(ENTRY)
    engine.detach()  # threads may be in it when the interpreter ends
    return address, engine


_paths = itertools.count(1)


def _library(code: bytes) -> ctypes.CDLL:
    """A shared library loaded from memory: from the bytes whose checksum was compared, whatever becomes of their file."""
    with os.fdopen(os.memfd_create("distinput_kernel"), "wb", buffering=0) as file:
        file.write(code)
        # The system takes a path that it has seen for what it loaded from there, and numbers of files come again.
        return ctypes.CDLL(f"/proc/self/fd/{'./' * next(_paths)}{file.fileno()}")


_USED = (
    "PyBuffer_Release",
    "PyBytes_FromStringAndSize",
    "PyErr_Clear",
    "PyErr_Occurred",
    "PyEval_RestoreThread",
    "PyEval_SaveThread",
    "PyLong_AsLongLong",
    "PyLong_AsUnsignedLongLongMask",
    "PyObject_CallFunction",
    "PyObject_GetBuffer",
    "PyObject_IsTrue",
    "Py_BuildValue",
)


@functools.cache
def _prepare() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for name in _USED:  # on some systems the symbols of Python are found in no other way
        llvm.add_symbol(name, ctypes.cast(getattr(ctypes.pythonapi, name), ctypes.c_void_p).value)


def _target() -> Any:
    return llvm.Target.from_triple(llvm.get_process_triple())
