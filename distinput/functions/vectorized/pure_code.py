# SPDX-License-Identifier: Apache-2.0
"""Whether compiled code can have effects outside of its call, as far as its instructions tell.

Only instructions that are listed here pass, so those of later versions of Python, which are not, lead to calls for each
element. What the code reads from outside is looked at by `transplant.py`.
"""

from dis import get_instructions
from functools import lru_cache
from types import CodeType

from distinput.functions.vectorized.refusal import Refused

__all__ = ["check_code", "names_read"]

_HARMLESS = (
    "BINARY_",
    "BUILD_",
    "CACHE",
    "CALL",
    "COMPARE_OP",
    "CONTAINS_OP",
    "COPY",
    "DICT_",
    "END_FOR",
    "END_SEND",
    "EXTENDED_ARG",
    "FOR_ITER",
    "FORMAT_",
    "GEN_START",
    "GET_ITER",
    "GET_LEN",
    "JUMP_",
    "KW_NAMES",
    "LIST_",
    "LOAD_ASSERTION_ERROR",
    "LOAD_ATTR",
    "LOAD_CLOSURE",
    "LOAD_COMMON_CONSTANT",
    "LOAD_CONST",
    "LOAD_DEREF",
    "LOAD_FAST",
    "LOAD_GLOBAL",
    "LOAD_METHOD",
    "LOAD_SMALL_INT",
    "MAKE_CELL",
    "MAKE_FUNCTION",
    "NOP",
    "NOT_TAKEN",
    "POP_",
    "PRECALL",
    "PUSH_NULL",
    "RAISE_VARARGS",
    "RERAISE",
    "RESUME",
    "RETURN_",
    "SET_",
    "STORE_FAST",
    "STORE_SLICE",
    "STORE_SUBSCR",
    "SWAP",
    "TO_BOOL",
    "UNARY_",
    "UNPACK_",
    "YIELD_VALUE",
)
"""Beginnings of the names of instructions. Whether a subscript may be stored is for stand-ins and read-only arrays to say."""

_WORDS = {
    "STORE_GLOBAL": "it assigns to the global variable {}",
    "DELETE_GLOBAL": "it deletes the global variable {}",
    "STORE_ATTR": "it assigns to the attribute {}",
    "DELETE_ATTR": "it deletes the attribute {}",
    "IMPORT_NAME": "it imports {} when it is called",
    "PUSH_EXC_INFO": "it handles exceptions or uses `with`",
    "SETUP_FINALLY": "it handles exceptions or uses `with`",
    "BEFORE_WITH": "it handles exceptions or uses `with`",
    "LOAD_BUILD_CLASS": "it defines a class",
    "IS_OP": "it compares by `is`",
}

_METHODS = frozenset(
    [
        "all",
        "any",
        "append",
        "argmax",
        "argmin",
        "astype",
        "clip",
        "copy",
        "count",
        "cumsum",
        "dot",
        "dtype",
        "endswith",
        "extend",
        "flatten",
        "get",
        "index",
        "items",
        "keys",
        "linalg",
        "max",
        "mean",
        "min",
        "ndim",
        "norm",
        "prod",
        "ravel",
        "reduce",
        "replace",
        "reshape",
        "round",
        "shape",
        "size",
        "squeeze",
        "startswith",
        "std",
        "sum",
        "swapaxes",
        "T",
        "take",
        "transpose",
        "type",
        "update",
        "values",
        "var",
    ]
)
"""Attributes of arrays, and of the tuples, lists, dicts and texts that a function makes itself."""

_GENERATOR = 0x20 | 0x80 | 0x100 | 0x200
"""The flags of generators and coroutines."""


@lru_cache(maxsize=1024)
def check_code(code: CodeType, names: frozenset[str], inner: bool = False) -> None:
    """Refuse code that may have effects outside.

    Args:
      code: of a function.
      names: attributes that it may read besides those of arrays: those of modules.
      inner: it is defined in the function; its free variables are those of a call.

    Raises:
      Refused: the message says what it does.
    """
    if not inner and code.co_flags & _GENERATOR:
        raise Refused("it is a generator or a coroutine")
    for step in get_instructions(code):
        name, value = step.opname, str(step.argval)
        if name in ("STORE_DEREF", "DELETE_DEREF"):
            if not inner and value in code.co_freevars:
                raise Refused(f"it assigns to `{value}` of the function around it")
            continue
        if name == "COPY_FREE_VARS" or name.startswith(_HARMLESS):
            if name in ("LOAD_ATTR", "LOAD_METHOD") and value not in _METHODS and value not in names:
                raise Refused(f"it uses .{value}, which has no rule")
            if name == "YIELD_VALUE" and not inner:
                raise Refused("it is a generator or a coroutine")
            continue
        raise Refused(_WORDS.get(name, "it has the instruction {}").format(f"`{value}`" if name in _WORDS else name))
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            if set(constant.co_freevars) & set(code.co_freevars):
                _check_outer(constant, frozenset(code.co_freevars))
            check_code(constant, names, True)


def _check_outer(code: CodeType, outer: frozenset[str]) -> None:
    """Refuse an inner function that assigns to a variable from outside of the whole function."""
    for step in get_instructions(code):
        if step.opname in ("STORE_DEREF", "DELETE_DEREF") and step.argval in outer:
            raise Refused(f"it assigns to `{step.argval}` of the function around it")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _check_outer(constant, outer)


@lru_cache(maxsize=1024)
def names_read(code: CodeType) -> frozenset[str]:
    """The global names that code, and the functions defined in it, read."""
    found = {str(step.argval) for step in get_instructions(code) if step.opname == "LOAD_GLOBAL"}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= names_read(constant)
    return frozenset(found)
