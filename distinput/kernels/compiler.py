# SPDX-License-Identifier: Apache-2.0
"""All use of numba: compile a kernel to machine code, and replace the functions of `machine` by instructions.

Imported only by `kernel`, when a kernel must be compiled.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Collection, Sequence
from functools import partial
from inspect import Parameter, Signature, signature
from pathlib import Path
from types import FunctionType
from typing import Any, NamedTuple

import numba
from llvmlite import ir  # type: ignore[import-untyped]  # a part of numba; mypy is told of numba only
from numba.core import cgutils, types
from numba.core.compiler_lock import global_compiler_lock
from numba.extending import intrinsic, overload, register_jitable
from numba.np.arrayobj import populate_array

from distinput.kernels import machine
from distinput.kernels.cache import may_hold
from distinput.kernels.object_code import ENTRY, entry

if sys.byteorder != "little":
    raise ImportError("the kernels need a little-endian machine; the references are used instead")

# Divisors are known not to be zero, and an IndexError could not be distinguished from one of Python's anyway.
OPTIONS = {"error_model": "numpy", "no_cpython_wrapper": True, "no_cfunc_wrapper": True}

# Functions that kernels call are inlined, and neither count references, which takes longer than the work, nor
# allocate: otherwise the parser of Examples takes seven times as long.
INSIDE = {"error_model": "numpy", "_nrt": False, "forceinline": True, "no_cfunc_wrapper": True}

_known: set[FunctionType] = set()


def build(source: FunctionType, signature: str, inlined: Collection[FunctionType]) -> bytes:
    """The code of a function of Python that calls the compiled one: `distinput.kernels.object_code` loads it.

    Args:
      source: the function to compile.
      signature: its types in numba's notation.
      inlined: the functions of this package that it may call.
    """
    for function in inlined:
        if function not in _known:
            register_jitable(**INSIDE)(function)
            _known.add(function)
    dispatcher = numba.njit(**OPTIONS)(source)
    _Warnings.install()
    _Warnings.ours.building = True
    try:
        _compile(dispatcher, signature)
        (compiled,) = dispatcher.overloads.values()
        if compiled.library.has_dynamic_globals or compiled.lifted:
            raise TypeError(f"kernel {source.__name__}: it contains addresses of this process, so it cannot be kept")
        with global_compiler_lock:
            code = _object_code(compiled)
    finally:
        _Warnings.ours.building = False
    return linked(code)


# Own functions are called, whatever names the process has besides; and the code holds addresses, which the system fills in.
_LINKING = ("-shared", "-Bsymbolic", "-s", "-z", "noexecstack", "-z", "notext")


def linked(code: bytes) -> bytes:
    """A shared library of object code; the object code where there is no linker, or none whose libraries can be loaded."""
    linker = shutil.which("ld")
    if linker is None or not hasattr(os, "memfd_create"):
        return code
    try:
        with tempfile.TemporaryDirectory() as folder:
            if not may_hold(folder):
                return code
            made, library = Path(folder, "kernel.o"), Path(folder, "kernel.so")
            made.write_bytes(code)
            subprocess.run([linker, *_LINKING, "-o", library, made], check=True, capture_output=True, timeout=60)
            content = library.read_bytes()
        entry(content)
    except (OSError, subprocess.SubprocessError):
        return code
    return content


def _compile(dispatcher: Any, signature: str) -> None:
    """Compile, again if a variable of the environment went: numba reads all of them, and other threads may remove some."""
    for _ in range(3):
        try:
            dispatcher.compile(signature)
            return
        except KeyError as error:
            missing = error
    raise missing


class _Warnings:
    """What numba's compiler takes for the module `warnings`: for what a thread of ours compiles it does nothing.

    numba records the warnings of each compilation with `warnings.catch_warnings`, which replaces filters and output of the
    whole process. On a thread beside the user's program that would lose warnings of the program, or leave it with other
    filters. What other threads compile, such as the user's own functions, goes to the module as before. What modules do while
    they are imported is theirs: SciPy, which numba imports where it is installed, changes the filters for a moment.
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


# A compiled function takes arrays as numba has them. What Python calls is made here: a function of CPython's fast convention,
# `PyObject *entry(PyObject *self, PyObject *const *args, Py_ssize_t n)`, which takes the buffers of arrays, releases Python's
# lock, calls the compiled function, and returns what that returned. It is made of functions of Python's stable interface alone,
# and of `malloc` and `free`, so that it can be loaded by a process that has no numba. `self` is a function of Python: it is
# called with what is wrong, and raises.

BYTE, WORD, INT = ir.IntType(8), ir.IntType(64), ir.IntType(32)
POINTER = BYTE.as_pointer()
NOTHING = ir.Constant(POINTER, None)

_WRITABLE, _FORMAT, _ND = 0x1, 0x4, 0x8  # of the C interface of buffers; without strides, they must be in C order
_BUFFER_WORDS, _DATA, _BYTES, _ITEM, _DIMENSIONS, _KIND = (
    10,
    0,
    2,
    3,
    9,
    5,
)  # a Py_buffer in words; _DIMENSIONS in half words
_KINDS = {types.uint8: b"B", types.int32: b"il", types.int64: b"lq", types.float32: b"f"}
_BUILT = {types.none: "", types.int64: "L"}  # for Py_BuildValue

_HEADER_BYTES = 48  # of memory that a kernel allocates: six words, as numba's have them


def _word(number: int) -> Any:
    return ir.Constant(WORD, number)


class _Calls:
    """Calls of C functions by their names, in one function that is being built."""

    def __init__(self, module: Any, builder: Any) -> None:
        self.module, self.builder = module, builder

    def __call__(self, name: str, result: Any, *args: Any, more: Sequence[Any] = ()) -> Any:
        form = ir.FunctionType(result, [each.type for each in args], var_arg=bool(more))
        return self.builder.call(cgutils.get_or_insert_function(self.module, form, name), [*args, *more])


def _object_code(compiled: Any) -> bytes:
    """The object code of the entry of a compiled function, with everything that it calls."""
    context = compiled.target_context
    library = compiled.library.codegen.create_library(ENTRY)
    module = context.create_module(ENTRY)
    _define_entry(context, module, compiled.fndesc)
    _define_memory(module)
    library.enable_object_caching()
    library.add_linking_library(compiled.library)
    library.add_ir_module(module)
    library.finalize()
    library._ensure_finalized()
    code: bytes = library._get_compiled_object()
    return code


def _define_entry(context: Any, module: Any, described: Any) -> None:
    function = ir.Function(module, ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), WORD]), ENTRY)
    builder = ir.IRBuilder(function.append_basic_block("begin"))
    leave = function.append_basic_block("leave")
    call = _Calls(module, builder)
    complain, args, count = function.args

    def text(content: str) -> Any:
        return context.insert_const_string(module, content)

    result, wrong = builder.alloca(POINTER), builder.alloca(WORD)
    builder.store(NOTHING, result)
    builder.store(_word(-1), wrong)
    arrays = [each for each in described.argtypes if isinstance(each, types.Array)]
    buffers = [builder.alloca(ir.ArrayType(WORD, _BUFFER_WORDS)) for _ in arrays]
    for buffer in buffers:
        builder.store(ir.Constant(ir.ArrayType(WORD, _BUFFER_WORDS), None), buffer)

    def leave_if(condition: Any, place: int) -> None:
        with builder.if_then(condition, likely=False):
            builder.store(_word(place), wrong)
            builder.branch(leave)

    def leave_if_error(value: Any) -> None:
        with builder.if_then(builder.icmp_signed("==", value, ir.Constant(value.type, -1)), likely=False):
            leave_if(builder.icmp_unsigned("!=", call("PyErr_Occurred", POINTER), NOTHING), -1)

    leave_if(builder.icmp_signed("!=", count, _word(len(described.argtypes))), len(described.argtypes))
    values, room = [], iter(buffers)
    for place, kind in enumerate(described.argtypes):
        arg = builder.load(builder.gep(args, [_word(place)]))
        if isinstance(kind, types.Array):
            values.append(_array(context, builder, call, kind, arg, next(room), partial(leave_if, place=place)))
        elif kind == types.boolean:
            truth = call("PyObject_IsTrue", INT, arg)
            leave_if_error(truth)
            values.append(builder.trunc(truth, ir.IntType(1)))
        else:
            name = {types.int64: "PyLong_AsLongLong", types.uint64: "PyLong_AsUnsignedLongLongMask"}[kind]
            values.append(call(name, WORD, arg))
            leave_if_error(values[-1])

    callee = ir.Function(
        module, context.call_conv.get_function_type(described.restype, described.argtypes), described.llvm_func_name
    )
    thread = call("PyEval_SaveThread", POINTER)
    status, out = context.call_conv.call_function(
        builder, callee, described.restype, described.argtypes, values, attrs=("noinline",)
    )
    call("PyEval_RestoreThread", ir.VoidType(), thread)
    with builder.if_then(status.is_error, likely=False):
        leave_if(builder.not_(status.is_user_exc), len(described.argtypes) + 1)
        raised = builder.load(status.excinfoptr)
        size = builder.sext(builder.extract_value(raised, 1), WORD)
        error = call("PyBytes_FromStringAndSize", POINTER, builder.extract_value(raised, 0), size)
        call("PyObject_CallFunction", POINTER, complain, text("N"), more=[error])
        builder.branch(leave)
    if described.restype in _BUILT:
        form = _BUILT[described.restype]
        numbers = [out] if form else []
    else:
        numbers = [builder.extract_value(out, i) for i in range(described.restype.count)]
        form = f"({_BUILT[described.restype.dtype] * len(numbers)})"
    builder.store(call("Py_BuildValue", POINTER, text(form), more=numbers or [_word(0)]), result)
    builder.branch(leave)

    builder.position_at_end(leave)
    for buffer in buffers:
        call("PyBuffer_Release", ir.VoidType(), builder.bitcast(buffer, POINTER))  # of none, does nothing
    place = builder.load(wrong)
    with builder.if_then(builder.icmp_signed(">=", place, _word(0)), likely=False):
        call("PyErr_Clear", ir.VoidType())
        call("PyObject_CallFunction", POINTER, complain, text("L"), more=[place])
    builder.ret(builder.load(result))


def _array(
    context: Any, builder: Any, call: _Calls, kind: Any, arg: Any, buffer: Any, leave_if: Callable[[Any], None]
) -> Any:
    """The array of an argument: of one dimension, in C order, aligned, of the right kind, and writable if it is written to."""
    flags = _FORMAT | _ND | (_WRITABLE if kind.mutable else 0)
    failed = call("PyObject_GetBuffer", INT, arg, builder.bitcast(buffer, POINTER), ir.Constant(INT, flags))
    leave_if(builder.icmp_signed("!=", failed, ir.Constant(INT, 0)))
    words, halves = (builder.bitcast(buffer, each.as_pointer()) for each in (WORD, INT))
    data, nbytes, item, form = (builder.load(builder.gep(words, [_word(at)])) for at in (_DATA, _BYTES, _ITEM, _KIND))
    dimensions = builder.load(builder.gep(halves, [_word(_DIMENSIONS)]))
    width = kind.dtype.bitwidth // 8
    right = builder.and_(
        builder.icmp_signed("==", dimensions, ir.Constant(INT, 1)), builder.icmp_signed("==", item, _word(width))
    )
    right = builder.and_(right, builder.icmp_signed("==", builder.and_(data, _word(width - 1)), _word(0)))
    letters = builder.inttoptr(form, POINTER)
    first, second = (builder.load(builder.gep(letters, [_word(at)])) for at in (0, 1))
    named = ir.Constant(ir.IntType(1), 0)
    for letter in _KINDS[kind.dtype]:
        named = builder.or_(named, builder.icmp_unsigned("==", first, ir.Constant(BYTE, letter)))
    right = builder.and_(right, builder.and_(named, builder.icmp_unsigned("==", second, ir.Constant(BYTE, 0))))
    leave_if(builder.not_(right))
    array = context.make_array(kind)(context, builder)
    start = builder.inttoptr(data, array.data.type)
    size = builder.sdiv(nbytes, _word(width))
    populate_array(array, start, shape=[size], strides=[_word(width)], itemsize=_word(width), meminfo=None)
    return array._getvalue()


def _define_memory(module: Any) -> None:
    """What numba's compiled code allocates and frees by: blocks of `malloc` with the header that it expects."""
    for name in ("NRT_MemInfo_alloc_aligned", "NRT_MemInfo_alloc_safe_aligned"):
        function = cgutils.get_or_insert_function(module, ir.FunctionType(POINTER, [WORD, INT]), name)
        builder = ir.IRBuilder(function.append_basic_block())
        size, align = function.args[0], builder.zext(function.args[1], WORD)
        block = _Calls(module, builder)("malloc", POINTER, builder.add(builder.add(size, align), _word(_HEADER_BYTES)))
        with builder.if_then(builder.icmp_unsigned("==", block, NOTHING), likely=False):
            builder.ret(NOTHING)
        behind = builder.add(builder.add(builder.ptrtoint(block, WORD), _word(_HEADER_BYTES - 1)), align)
        header = [_word(1), _word(0), _word(0), builder.and_(behind, builder.neg(align)), size, _word(0)]
        for at, value in enumerate(header):
            builder.store(value, builder.gep(builder.bitcast(block, WORD.as_pointer()), [_word(at)]))
        builder.ret(block)
    function = cgutils.get_or_insert_function(
        module, ir.FunctionType(ir.VoidType(), [POINTER]), "NRT_MemInfo_call_dtor"
    )
    builder = ir.IRBuilder(function.append_basic_block())
    _Calls(module, builder)("free", ir.VoidType(), function.args[0])
    builder.ret_void()


# The rest has numba compile calls of the functions of `machine` to instructions.


_LANES, _BIT = ir.VectorType(BYTE, machine.LANES), ir.IntType(1)
_ANY = None  # in place of the type of an argument: the one that is given


class _Call(NamedTuple):
    """A call of a function of `machine` that is being compiled, with the types of its arguments and their values."""

    context: Any
    builder: Any
    kinds: Sequence[Any]
    args: Sequence[Any]

    def address(self, place: int = 0) -> Any:
        """The address of a byte of the array that is argument `place`; the next argument is its offset."""
        array = self.context.make_array(self.kinds[place])(self.context, self.builder, self.args[place])
        return self.builder.gep(self.builder.bitcast(array.data, BYTE.as_pointer()), [self.args[place + 1]])

    def words(self, width: int) -> Any:
        """The address of a word of so many bits in the array that is the first argument."""
        return self.builder.bitcast(self.address(), ir.IntType(width).as_pointer())

    def lanes(self, place: int = 0) -> Any:
        """64 bytes of an argument as one vector; LLVM splits it to the vector width of the machine."""
        return self.builder.load(self.builder.bitcast(self.address(place), _LANES.as_pointer()), align=1)


# numba needs a function of the arguments alone, by how many there are.
_CALLING: tuple[Callable[[Any], Callable[..., Any]], ...] = (
    lambda call: lambda: call(),
    lambda call: lambda a: call(a),
    lambda call: lambda a, b: call(a, b),
    lambda call: lambda a, b, c: call(a, b, c),
    lambda call: lambda a, b, c, d: call(a, b, c, d),
    lambda call: lambda a, b, c, d, e: call(a, b, c, d, e),
)


def _instruction(plain: Callable[..., Any], result: Any, *wanted: Any) -> Callable[[Callable[[_Call], Any]], Any]:
    """Let numba compile calls of a function of `machine` to what the decorated function emits.

    Args:
      plain: the function.
      result: the type of what it returns.
      wanted: the types of its arguments, or `_ANY`.
    """

    def register(emit: Callable[[_Call], Any]) -> Any:
        def emitted(context: Any, builder: Any, signature: Any, args: Any) -> Any:
            made = emit(_Call(context, builder, signature.args, args))
            return context.get_dummy_value() if result == types.void else made

        def typed(_: Any, *given: Any) -> Any:
            kinds = [mine if kind is _ANY else kind for kind, mine in zip(wanted, given, strict=True)]
            return result(*kinds), emitted

        # numba binds arguments to the names of the function.
        typed.__signature__ = Signature(  # type: ignore[attr-defined]
            [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in ("_", *signature(plain).parameters)]
        )
        calling = _CALLING[len(wanted)](intrinsic(typed))
        overload(plain, strict=False)(lambda *_, **__: calling)
        return emit

    return register


@_instruction(machine.load_u8, types.int64, _ANY, _ANY)
def _load_u8(call: _Call) -> Any:
    return call.builder.zext(call.builder.load(call.address()), WORD)


@_instruction(machine.load_u32, types.uint32, _ANY, _ANY)
def _load_u32(call: _Call) -> Any:
    return call.builder.load(call.words(32), align=1)


@_instruction(machine.load_u64, types.uint64, _ANY, _ANY)
def _load_u64(call: _Call) -> Any:
    return call.builder.load(call.words(64), align=1)


@_instruction(machine.store_u32, types.void, _ANY, _ANY, types.uint32)
def _store_u32(call: _Call) -> None:
    call.builder.store(call.args[2], call.words(32), align=1)


@_instruction(machine.store_u64, types.void, _ANY, _ANY, types.uint64)
def _store_u64(call: _Call) -> None:
    call.builder.store(call.args[2], call.words(64), align=1)


@_instruction(machine.move_bytes, types.void, _ANY, _ANY, _ANY, _ANY, _ANY)
def _move_bytes(call: _Call) -> None:
    # Not `memcpy`: glibc has two of this name, and code that does not say which gets the old one, with its short vectors.
    cgutils.raw_memmove(call.builder, call.address(), call.address(2), call.args[4], 1)


@_instruction(machine.stream_lines, types.void, _ANY, _ANY, _ANY, _ANY, _ANY)
def _stream_lines(call: _Call) -> None:
    builder, out, data, lanes = call.builder, call.address(), call.address(2), _LANES.as_pointer()
    past = builder.module.add_metadata([ir.Constant(INT, 1)])
    with cgutils.for_range_slice(builder, _word(0), call.args[4], _word(64), inc=True) as (at, _):
        line = builder.load(builder.bitcast(builder.gep(data, [at]), lanes), align=1)
        stored = builder.store(line, builder.bitcast(builder.gep(out, [at]), lanes), align=64)
        stored.set_metadata("nontemporal", past)
    builder.fence("seq_cst")  # other threads see such stores in any order until then


@_instruction(machine.copy_lanes, types.void, _ANY, _ANY, _ANY, _ANY)
def _copy_lanes(call: _Call) -> None:
    place = call.builder.bitcast(call.address(), _LANES.as_pointer())
    call.builder.store(call.lanes(2), place, align=1)


@_instruction(machine.will_load, types.void, _ANY, _ANY)
def _will_load(call: _Call) -> None:
    address = call.address()
    form = ir.FunctionType(ir.VoidType(), [address.type, INT, INT, INT])
    function = call.builder.module.declare_intrinsic("llvm.prefetch", [address.type], form)
    # For reading, to be kept in all cache levels, in the data cache.
    call.builder.call(function, [address, *[ir.Constant(INT, each) for each in (0, 3, 1)]])


@_instruction(machine.fill_bytes, types.void, _ANY, _ANY, _ANY, types.uint8)
def _fill_bytes(call: _Call) -> None:
    cgutils.memset(call.builder, call.address(), call.args[2], call.args[3])


@_instruction(machine.equal_mask, types.uint64, _ANY, _ANY, types.uint8)
def _equal_mask(call: _Call) -> Any:
    builder, lanes, undefined = call.builder, call.lanes(), ir.Constant(_LANES, ir.Undefined)
    one = builder.insert_element(undefined, call.args[2], ir.Constant(INT, 0))
    wanted = builder.shuffle_vector(one, undefined, ir.Constant(ir.VectorType(INT, 64), [0] * 64))
    return builder.bitcast(builder.icmp_unsigned("==", lanes, wanted), WORD)


@_instruction(machine.high_mask, types.uint64, _ANY, _ANY)
def _high_mask(call: _Call) -> Any:
    negative = call.builder.icmp_signed("<", call.lanes(), ir.Constant(_LANES, [0] * 64))
    return call.builder.bitcast(negative, WORD)


@_instruction(machine.trailing_zeros, types.int64, types.uint64)
def _trailing_zeros(call: _Call) -> Any:
    return call.builder.cttz(call.args[0], ir.Constant(_BIT, 0))


@_instruction(machine.leading_zeros, types.int64, types.uint64)
def _leading_zeros(call: _Call) -> Any:
    return call.builder.ctlz(call.args[0], ir.Constant(_BIT, 0))


@_instruction(machine.bit_count, types.int64, types.uint64)
def _bit_count(call: _Call) -> Any:
    return call.builder.ctpop(call.args[0])


@_instruction(machine.multiply_high, types.uint64, types.uint64, types.uint64)
def _multiply_high(call: _Call) -> Any:
    wide = ir.IntType(128)
    product = call.builder.mul(*[call.builder.zext(each, wide) for each in call.args])
    return call.builder.trunc(call.builder.lshr(product, ir.Constant(wide, 64)), WORD)


def _host_has(call: _Call, *wanted: str) -> bool:
    triple, _, features = call.context.codegen().magic_tuple()
    return str(triple).startswith("x86_64") and {f"+{each}" for each in wanted} <= set(features.split(","))


def _host_has_crc32(call: _Call) -> bool:
    return _host_has(call, "crc32", "sse4.2", "pclmul")


_SLOW_EXTRACTION = {"bdver4", "znver1", "znver2"}
"""Processors that have the instruction, but take tens of cycles for it."""


def _host_has_bit_extraction(call: _Call) -> bool:
    return _host_has(call, "bmi2") and call.context.codegen().magic_tuple()[1] not in _SLOW_EXTRACTION


@_instruction(machine.has_bit_extraction, types.boolean)
def _has_bit_extraction(call: _Call) -> Any:
    return ir.Constant(_BIT, int(_host_has_bit_extraction(call)))


@_instruction(machine.has_crc32, types.boolean)
def _has_crc32(call: _Call) -> Any:
    return ir.Constant(_BIT, int(_host_has_crc32(call)))


def _of_words(call: _Call, there: bool, name: str) -> Any:
    """What an instruction of the machine makes of two words; where it is not there, the branch is never taken."""
    if not there:
        return ir.Constant(WORD, 0)
    function = cgutils.get_or_insert_function(call.builder.module, ir.FunctionType(WORD, [WORD, WORD]), name)
    return call.builder.call(function, call.args)


@_instruction(machine.extract_bits, types.uint64, types.uint64, types.uint64)
def _extract_bits(call: _Call) -> Any:
    return _of_words(call, _host_has_bit_extraction(call), "llvm.x86.bmi.pext.64")


@_instruction(machine.crc32_u64, types.uint64, types.uint64, types.uint64)
def _crc32_u64(call: _Call) -> Any:
    return _of_words(call, _host_has_crc32(call), "llvm.x86.sse42.crc32.64.64")


@_instruction(machine.carryless_product, types.uint64, types.uint64, types.uint64)
def _carryless_product(call: _Call) -> Any:
    if not _host_has_crc32(call):
        return ir.Constant(WORD, 0)  # in a branch that is never taken
    builder, pair, first = call.builder, ir.VectorType(WORD, 2), ir.Constant(INT, 0)
    form = ir.FunctionType(pair, [pair, pair, BYTE])
    function = cgutils.get_or_insert_function(builder.module, form, "llvm.x86.pclmulqdq")
    factors = [builder.insert_element(ir.Constant(pair, [0, 0]), each, first) for each in call.args]
    return builder.extract_element(builder.call(function, [*factors, ir.Constant(BYTE, 0)]), first)
