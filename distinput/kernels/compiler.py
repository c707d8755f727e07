# SPDX-License-Identifier: Apache-2.0
"""All use of numba: compile a kernel, cache it on disk, and replace the functions of `machine` by instructions.

Imported only by `kernel`, when the first kernel is called.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import sys
import threading
import time
import uuid
import warnings
from collections.abc import Callable, Collection
from pathlib import Path
from types import FunctionType
from typing import Any

import numba
from llvmlite import ir  # type: ignore[import-untyped]  # a part of numba; mypy is told of numba only
from numba.core import cgutils, types
from numba.core.caching import CompileResultCacheImpl
from numba.core.serialize import dumps
from numba.extending import intrinsic, overload, register_jitable

from distinput.kernels import machine
from distinput.kernels.cache import CacheSlot, is_own_file, may_hold

if sys.byteorder != "little":
    raise ImportError("the kernels need a little-endian machine; the references are used instead")

# Divisors are known not to be zero, and an IndexError could not be distinguished from one of Python's anyway.
OPTIONS = {"nogil": True, "error_model": "numpy"}

# Functions that kernels call are inlined, and neither count references, which takes longer than the work, nor
# allocate: otherwise the parser of Examples takes seven times as long.
INSIDE = {"error_model": "numpy", "_nrt": False, "forceinline": True}

_known: set[FunctionType] = set()


def build(
    source: FunctionType, signature: str, inlined: Collection[FunctionType], cache: CacheSlot, load_only: bool
) -> Callable[..., Any] | None:
    """The compiled function, from the cache if possible; None if it is not cached and `load_only` is set.

    Args:
      source: the function to compile.
      signature: its types in numba's notation.
      inlined: the functions of this package that it may call.
      cache: its cache location.
      load_only: do not compile.
    """
    for function in inlined:
        if function not in _known:
            register_jitable(**INSIDE)(function)
            _known.add(function)
    dispatcher = numba.njit(**OPTIONS)(source)
    store = _Store(source, signature, *cache)
    dispatcher._cache = store
    _Warnings.install()
    _Warnings.ours.building = True
    try:
        if load_only and store.load_overload(signature, dispatcher.targetctx) is None:
            return None
        dispatcher.compile(signature)
    finally:
        _Warnings.ours.building = False
    dispatcher.disable_compile()
    built: Callable[..., Any] = dispatcher
    return built


class _Warnings:
    """What numba's compiler takes for the module `warnings`: for what a thread of ours compiles it does nothing.

    numba records the warnings of each compilation with `warnings.catch_warnings`, which replaces filters and output of the
    whole process. On a thread beside the user's program that would lose warnings of the program, or leave it with other
    filters. What other threads compile, such as the user's own functions, goes to the module as before.
    """

    ours = threading.local()

    def __getattr__(self, name: str) -> Any:
        return getattr(warnings, name)

    def catch_warnings(self, *, record: bool = False, **given: Any) -> Any:
        if self._here():
            return contextlib.nullcontext([] if record else None)
        return warnings.catch_warnings(record=record, **given)

    def simplefilter(self, *given: Any, **named: Any) -> None:
        if not self._here():
            warnings.simplefilter(*given, **named)

    def warn(self, *given: Any, **named: Any) -> None:
        if not self._here():
            warnings.warn(*given, **named)

    def warn_explicit(self, *given: Any, **named: Any) -> None:
        if not self._here():
            warnings.warn_explicit(*given, **named)

    def _here(self) -> bool:
        return getattr(self.ours, "building", False)

    @staticmethod
    def install() -> None:
        """Let the modules of numba that compile see this in place of `warnings`."""
        for module in (numba.core.errors, numba.core.compiler):
            if getattr(module, "warnings", None) is warnings:
                module.warnings = _Warnings()


_LEFT_BEHIND_SECONDS = 3600
"""Writing takes far less than this, so an older temporary file was abandoned."""


def _may_execute(folder: Path, file: str) -> bool:
    return may_hold(str(folder)) and is_own_file(str(folder / file), {os.stat(__file__).st_uid})


class _Store:
    """Compiled code on disk: one file per kernel, source, signature and machine.

    It replaces numba's own cache, which misses changes in the functions that a kernel calls, and which fails if no
    folder is writable. Here failures to read or write are harmless.
    """

    cache_path = ""  # required by numba's statistics

    def __init__(self, source: FunctionType, signature: str, name: str, folders: list[str]) -> None:
        self._source = source
        self._signature = signature
        self._name = name
        self._folders = [Path(folder) for folder in folders]
        self._loaded: Any = None

    def load_overload(self, signature: Any, context: Any) -> Any:
        """Load the compiled function from the first folder that has an intact copy; None if there is none."""
        del signature  # there is only one
        if self._loaded is not None:
            return self._loaded
        context.refresh()
        file = self._file(context.codegen())
        for folder in self._folders:
            try:
                content = (folder / file).read_bytes()
                if not _may_execute(folder, file):
                    continue
                if hashlib.sha256(content[32:]).digest() == content[:32]:
                    payload = pickle.loads(content[32:])
                    self._loaded = CompileResultCacheImpl.rebuild(self, context, payload)
                    return self._loaded
            except OSError:
                continue
            except Exception:  # noqa: BLE001 - whatever is wrong with the file, the kernel can be compiled again
                continue
        return None

    def save_overload(self, signature: Any, result: Any) -> None:
        """Save the compiled function in the first writable folder."""
        del signature
        if result.library.has_dynamic_globals or result.lifted:  # contains addresses of this process
            return
        payload = dumps(result._reduce())
        file = self._file(result.codegen)
        for folder in self._folders:
            temporary = folder / f"{file}.{uuid.uuid4().hex[:8]}"
            try:
                folder.mkdir(parents=True, exist_ok=True)
                if not may_hold(str(folder)):
                    continue
                temporary.write_bytes(hashlib.sha256(payload).digest() + payload)
                temporary.replace(folder / file)
            except OSError:
                with contextlib.suppress(OSError):
                    temporary.unlink()
                continue
            self._remove_unfinished(folder, file)
            if folder.name == "__pycache__":
                self._forget_older(folder, file)
            return

    def _remove_unfinished(self, folder: Path, file: str) -> None:
        """Remove temporary files left behind by processes that were killed while writing this file."""
        for left in folder.glob(f"{file}.*"):
            with contextlib.suppress(OSError):
                if time.time() - left.stat().st_mtime > _LEFT_BEHIND_SECONDS:
                    left.unlink()

    def _forget_older(self, folder: Path, file: str) -> None:
        """Remove files of earlier versions of the source; this folder belongs to the current version only."""
        version, machine_name = self._name.rpartition("-")[0], file.rpartition("-")[2]
        for old in folder.glob(f"{version}-*-{machine_name}"):
            if old.name != file:
                with contextlib.suppress(OSError):
                    old.unlink()

    def _file(self, codegen: Any) -> str:
        settings = (numba.config.BOUNDSCHECK, numba.config.OPT, numba.config.DEBUGINFO_DEFAULT)
        key = (numba.__version__, sys.version, codegen.magic_tuple(), self._signature, settings)
        return f"{self._name}-{hashlib.sha256(repr(key).encode()).hexdigest()[:16]}.nbc"


# The rest implements the functions of `machine` for numba. `typing` is numba's context; types are numba objects.

BYTE, WORD = ir.IntType(8), ir.IntType(64)


def _address(context: Any, builder: Any, array_type: Any, array: Any, offset: Any) -> Any:
    """The address of byte `offset` of an array."""
    start = context.make_array(array_type)(context, builder, array).data
    return builder.gep(builder.bitcast(start, BYTE.as_pointer()), [offset])


def _loader(result: Any) -> Any:
    def load(typing: Any, data: Any, offset: Any) -> Any:
        del typing

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], args[0], args[1])
            pointer = builder.bitcast(address, ir.IntType(result.bitwidth).as_pointer())
            return builder.load(pointer, align=1)

        return result(data, offset), emit

    return intrinsic(load)


def _storer(stored: Any) -> Any:
    def store(typing: Any, out: Any, offset: Any, value: Any) -> Any:
        del typing, value

        def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            address = _address(context, builder, signature.args[0], args[0], args[1])
            builder.store(args[2], builder.bitcast(address, ir.IntType(stored.bitwidth).as_pointer()), align=1)
            return context.get_dummy_value()

        return types.void(out, offset, stored), emit

    return intrinsic(store)


def _copy_bytes(typing: Any, out: Any, to: Any, data: Any, start: Any, count: Any) -> Any:
    del typing

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        target = _address(context, builder, signature.args[0], args[0], args[1])
        source = _address(context, builder, signature.args[2], args[2], args[3])
        cgutils.raw_memcpy(builder, target, source, args[4], 1)
        return context.get_dummy_value()

    return types.void(out, to, data, start, count), emit


def _will_load(typing: Any, data: Any, offset: Any) -> Any:
    del typing

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        address = _address(context, builder, signature.args[0], args[0], args[1])
        number = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [address.type, number, number, number])
        function = builder.module.declare_intrinsic("llvm.prefetch", [address.type], form)
        # For reading, to be kept in all cache levels, in the data cache.
        builder.call(function, [address, ir.Constant(number, 0), ir.Constant(number, 3), ir.Constant(number, 1)])
        return context.get_dummy_value()

    return types.void(data, offset), emit


def _fill_bytes(typing: Any, out: Any, start: Any, count: Any, value: Any) -> Any:
    del typing, value

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        cgutils.memset(builder, _address(context, builder, signature.args[0], args[0], args[1]), args[2], args[3])
        return context.get_dummy_value()

    return types.void(out, start, count, types.uint8), emit


def _lanes(context: Any, builder: Any, signature: Any, args: Any) -> Any:
    """64 bytes as one vector; LLVM splits it to the vector width of the machine."""
    address = _address(context, builder, signature.args[0], args[0], args[1])
    return builder.load(builder.bitcast(address, ir.VectorType(BYTE, 64).as_pointer()), align=1)


def _equal_mask(typing: Any, data: Any, offset: Any, value: Any) -> Any:
    del typing, value

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = _lanes(context, builder, signature, args)
        vector = ir.VectorType(BYTE, 64)
        one = builder.insert_element(ir.Constant(vector, ir.Undefined), args[2], ir.Constant(ir.IntType(32), 0))
        places = ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64)
        wanted = builder.shuffle_vector(one, ir.Constant(vector, ir.Undefined), places)
        return builder.bitcast(builder.icmp_unsigned("==", lanes, wanted), WORD)

    return types.uint64(data, offset, types.uint8), emit


def _high_mask(typing: Any, data: Any, offset: Any) -> Any:
    del typing

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        lanes = _lanes(context, builder, signature, args)
        zero = ir.Constant(ir.VectorType(BYTE, 64), [0] * 64)
        return builder.bitcast(builder.icmp_signed("<", lanes, zero), WORD)

    return types.uint64(data, offset), emit


def _trailing_zeros(typing: Any, word: Any) -> Any:
    del typing, word

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context, signature
        return builder.cttz(args[0], ir.Constant(ir.IntType(1), 0))

    return types.int64(types.uint64), emit


def _bit_count(typing: Any, word: Any) -> Any:
    del typing, word

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context, signature
        return builder.ctpop(args[0])

    return types.int64(types.uint64), emit


def _multiply_high(typing: Any, a: Any, b: Any) -> Any:
    del typing, a, b

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del context, signature
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), WORD)

    return types.uint64(types.uint64, types.uint64), emit


def _host_has_crc32(context: Any) -> bool:
    triple, _, features = context.codegen().magic_tuple()
    return str(triple).startswith("x86_64") and {"+crc32", "+sse4.2", "+pclmul"} <= set(features.split(","))


def _has_crc32(typing: Any) -> Any:
    del typing

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del builder, signature, args
        return ir.Constant(ir.IntType(1), int(_host_has_crc32(context)))

    return types.boolean(), emit


def _crc32_u64(typing: Any, crc: Any, word: Any) -> Any:
    del typing, crc, word

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del signature
        if not _host_has_crc32(context):
            return ir.Constant(WORD, 0)  # in a branch that is never taken
        name = "llvm.x86.sse42.crc32.64.64"
        function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(WORD, [WORD, WORD]), name)
        return builder.call(function, args)

    return types.uint64(types.uint64, types.uint64), emit


def _carryless_product(typing: Any, a: Any, b: Any) -> Any:
    del typing, a, b

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        del signature
        if not _host_has_crc32(context):
            return ir.Constant(WORD, 0)  # in a branch that is never taken
        pair, first = ir.VectorType(WORD, 2), ir.Constant(ir.IntType(32), 0)
        form = ir.FunctionType(pair, [pair, pair, BYTE])
        function = cgutils.get_or_insert_function(builder.module, form, "llvm.x86.pclmulqdq")
        factors = [builder.insert_element(ir.Constant(pair, [0, 0]), each, first) for each in args]
        return builder.extract_element(builder.call(function, [*factors, ir.Constant(BYTE, 0)]), first)

    return types.uint64(types.uint64, types.uint64), emit


def _load_u8(typing: Any, data: Any, offset: Any) -> Any:
    del typing

    def emit(context: Any, builder: Any, signature: Any, args: Any) -> Any:
        return builder.zext(builder.load(_address(context, builder, signature.args[0], args[0], args[1])), WORD)

    return types.int64(data, offset), emit


load_u8, load_u32, load_u64 = intrinsic(_load_u8), _loader(types.uint32), _loader(types.uint64)
store_u32, store_u64 = _storer(types.uint32), _storer(types.uint64)
copy_bytes, fill_bytes = intrinsic(_copy_bytes), intrinsic(_fill_bytes)
will_load = intrinsic(_will_load)
equal_mask, high_mask = intrinsic(_equal_mask), intrinsic(_high_mask)
trailing_zeros, bit_count = intrinsic(_trailing_zeros), intrinsic(_bit_count)
multiply_high = intrinsic(_multiply_high)
has_crc32, crc32_u64 = intrinsic(_has_crc32), intrinsic(_crc32_u64)
carryless_product = intrinsic(_carryless_product)

# numba requires a function with the same arguments for each.
INSTRUCTIONS: dict[Callable[..., Any], Callable[..., Any]] = {
    machine.load_u8: lambda data, offset: load_u8(data, offset),
    machine.load_u32: lambda data, offset: load_u32(data, offset),
    machine.load_u64: lambda data, offset: load_u64(data, offset),
    machine.store_u32: lambda out, offset, value: store_u32(out, offset, value),
    machine.store_u64: lambda out, offset, value: store_u64(out, offset, value),
    machine.copy_bytes: lambda out, to, data, start, count: copy_bytes(out, to, data, start, count),
    machine.will_load: lambda data, offset: will_load(data, offset),
    machine.fill_bytes: lambda out, start, count, value: fill_bytes(out, start, count, value),
    machine.equal_mask: lambda data, offset, value: equal_mask(data, offset, value),
    machine.high_mask: lambda data, offset: high_mask(data, offset),
    machine.trailing_zeros: lambda word: trailing_zeros(word),
    machine.bit_count: lambda word: bit_count(word),
    machine.multiply_high: lambda a, b: multiply_high(a, b),
    machine.has_crc32: lambda: has_crc32(),
    machine.crc32_u64: lambda crc, word: crc32_u64(crc, word),
    machine.carryless_product: lambda a, b: carryless_product(a, b),
}


def _install(plain: Callable[..., Any], instruction: Callable[..., Any]) -> None:
    overload(plain, strict=False)(lambda *_, **__: instruction)


for _plain, _instruction in INSTRUCTIONS.items():
    _install(_plain, _instruction)
