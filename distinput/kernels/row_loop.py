# SPDX-License-Identifier: Apache-2.0
"""Running a user function compiled with numba on all rows of a block in compiled code.

The function takes numbers, and a loop around it is compiled, so that there is one call from Python per block instead of
one per row. numba is not imported for functions that are not compiled with it.
"""

import importlib
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distinput.kernels import kernel

Array = np.ndarray[Any, np.dtype[Any]]
Types = tuple[np.dtype[Any], ...]


class RowLoop:
    """A compiled loop that calls a function on every row.

    Args:
      loop: compiled; (number of rows, the arrays it reads, the arrays it fills).
      given: the dtypes of what it reads.
      dtypes: of the results.
      is_tuple: true if a result is a tuple, of one or more members.
    """

    def __init__(self, loop: Callable[..., None], given: Types, dtypes: Types, *, is_tuple: bool) -> None:
        self._loop, self._given = loop, given
        self.dtypes, self.is_tuple = dtypes, is_tuple

    def __call__(self, arrays: Sequence[Array], made: Sequence[Array]) -> None:
        """Fill `made`, one array [n] of `dtypes` for each member of a result, with the results for the rows of `arrays` [n]."""
        read = [np.ascontiguousarray(array, dtype) for array, dtype in zip(arrays, self._given, strict=True)]
        self._loop(len(made[0]), *read, *made)


def row_loop(function: Any, dtypes: Sequence[np.dtype[Any]]) -> RowLoop | None:
    """A loop that calls `function` with one number for each of `dtypes`; None if it takes or returns anything else.

    The dtypes of the results are those that numba infers. Compiling takes some tenths of a second, once for each function.
    """
    known: dict[Types, RowLoop | None] = vars(function).setdefault("_distinput_loops", {})
    types = tuple([dtype.newbyteorder("=") for dtype in dtypes])  # numba knows no other order
    if types not in known:
        known[types] = _compiled(function, types)
    return known[types]


def _compiled(function: Any, dtypes: Types) -> RowLoop | None:
    numba = importlib.import_module("numba")
    support = importlib.import_module("numba.np.numpy_support")
    with kernel._compiler:  # numba compiles one thing at a time
        try:
            given = tuple([numba.from_dtype(dtype) for dtype in dtypes])
            function.compile(given)
            returned = function.overloads[given].signature.return_type
            is_tuple = isinstance(returned, numba.types.BaseTuple)
            members = tuple(returned) if is_tuple else (returned,)
            if not members or not all(isinstance(m, numba.types.Number | numba.types.Boolean) for m in members):
                return None
            made = tuple([np.dtype(support.as_dtype(member)) for member in members])
            inputs = [numba.types.Array(kind, 1, "C", readonly=True) for kind in given]
            outputs = [numba.types.Array(numba.from_dtype(dtype), 1, "C") for dtype in made]
            names: dict[str, Any] = {"function": function}
            exec(_source(len(inputs), len(outputs), is_tuple), names)  # noqa: S102 - the source is generated here
            loop = numba.njit(nogil=True)(names["loop"])
            loop.compile(numba.types.void(numba.types.intp, *inputs, *outputs))
        except (KeyError, NotImplementedError, TypeError, numba.core.errors.NumbaError):
            return None
    return RowLoop(loop, dtypes, made, is_tuple=is_tuple)


def _source(inputs: int, outputs: int, is_tuple: bool) -> str:
    read = [f"a{place}" for place in range(inputs)]
    filled = [f"b{place}" for place in range(outputs)]
    lines = [f"def loop({', '.join(['size', *read, *filled])}):", "    for i in range(size):"]
    lines.append(f"        result = function({', '.join(f'{name}[i]' for name in read)})")
    lines += [f"        {name}[i] = result{f'[{place}]' if is_tuple else ''}" for place, name in enumerate(filled)]
    return "\n".join(lines)
