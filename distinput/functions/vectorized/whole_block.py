# SPDX-License-Identifier: Apache-2.0
"""`WholeBlock`: functions of one element, called once for all elements of a block."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from distinput.core.adopt import adopt
from distinput.core.block import Block, ColumnBlock
from distinput.core.buffers import copy_of
from distinput.core.dense import Dense
from distinput.core.leaves import STRING, as_leaf
from distinput.core.nest import Structure, structure_of
from distinput.core.spec import LeafSpec, Spec
from distinput.core.stated import as_nest, as_stated, leaves_for
from distinput.functions.vectorized.refusal import Refused, Unfit
from distinput.functions.vectorized.rules import Rules, same_bits
from distinput.functions.vectorized.stand_in import StandIn
from distinput.functions.vectorized.transplant import Transplant

__all__ = ["WholeBlock"]

_SAMPLES = 5
"""Elements of the first block of a kind that are compared with calls for each of them; later one of each block."""


class WholeBlock:
    """Functions of one element, called for all elements of a block; the first one gets the elements.

    Args:
      functions: the user's.
      measured: whether operations that are not exact by construction are measured, or refused.
      said: what the user says about the results of the last one.

    Raises:
      Refused: one of them cannot be called that way.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], *, measured: bool, said: Spec | None = None) -> None:
        self._said = said
        self._rules = Rules(measured=measured)
        self._functions = [Transplant(function, self._rules) for function in functions]
        self._kinds: set[Any] = set()
        self._blocks = 0

    def __call__(self, rows: Block) -> ColumnBlock:
        """The results for all rows.

        Raises:
          Refused: a function cannot be called that way.
          Unfit: these rows need calls for each of them.
        """
        for function in self._functions:
            function.check()
        columns = rows.materialize().columns
        if not all(isinstance(column, Dense) for column in columns) or not _is_plain(rows.structure):
            raise Refused("its elements are not nests of tuples and dicts of numbers of one shape")
        given = [np.asarray(column.array) for column in columns if isinstance(column, Dense)]
        value = rows.structure.build([StandIn(array, self._rules) for array in given])
        for function in self._functions:
            value = function.call(*value) if type(value) is tuple else function.call(value)
            value = _as_element(value, self._said if function is self._functions[-1] else None)
        structure = _structure(value)
        taken = {id(array) for array in given}
        made = [Dense(_column(leaf, rows.size, taken)) for leaf in structure.flatten(value)]
        return ColumnBlock(structure, made, rows.size)

    def compared(self, rows: Block, made: ColumnBlock, call: Callable[[Any], Any]) -> None:
        """Compare some results with those of calls for each element.

        Raises:
          Refused: they differ.
        """
        kind = str([(c.array.shape[1:], c.dtype) for c in rows.materialize().columns if isinstance(c, Dense)])
        many = _SAMPLES if kind not in self._kinds else 1
        self._kinds.add(kind)
        for row in sorted({(self._blocks + rows.size * i // many) % rows.size for i in range(many)}):
            wanted = _as_element(call(rows.row(row)), self._said)
            if structure_of(wanted) != made.structure:
                raise Refused("it returned another structure for a single element")
            for leaf, column in zip(made.structure.flatten(wanted), made.columns, strict=True):
                assert isinstance(column, Dense)
                if not same_bits(as_leaf(leaf), column.array[row]):
                    raise Refused("a result for a block differed from the one for a single element")
        self._blocks += 1


def _is_plain(structure: Structure) -> bool:
    if structure.kind == "leaf":
        return True
    return structure.kind in ("tuple", "dict") and structure.mapping is None and all(map(_is_plain, structure.children))


def _is_leaf(value: Any) -> bool:
    return isinstance(value, StandIn)


def _structure(value: Any) -> Structure:
    return structure_of(value, is_leaf=_is_leaf)


def _as_element(value: Any, said: Spec | None) -> Any:
    """What a function returned as the next one gets it: a list is a tuple, a number one of NumPy."""
    value = as_nest(value, said)
    structure = _structure(value)
    stated = leaves_for(structure, said) or (None,) * structure.num_leaves
    leaves = zip(structure.flatten(value), stated, strict=True)
    return structure.build([leaf if _is_leaf(leaf) else _constant(leaf, spec) for leaf, spec in leaves])


def _constant(value: Any, spec: LeafSpec | None) -> Any:
    if isinstance(value, list) and any(map(_is_leaf, value)):
        raise Refused("it returns a list of arrays inside of its result")
    adopted = adopt(value)
    if isinstance(adopted, dict):
        raise Refused("it returns a table")
    return as_stated(np.asarray(adopted) if isinstance(adopted, np.ndarray) else adopted, spec)


def _column(leaf: Any, size: int, taken: set[int]) -> Any:
    """All rows of a result in memory that nobody else holds."""
    if not isinstance(leaf, StandIn):
        dtype = getattr(leaf, "dtype", STRING)
        if not isinstance(leaf, np.ndarray | np.generic) or dtype.kind not in "biuf":
            raise Refused("it returns text, a dataset, or another object that is no number")
        return np.broadcast_to(leaf, (size, *np.shape(leaf))).copy()
    array = leaf.block
    if len(array) != size:
        raise Unfit
    if array.base is not None or not array.flags.c_contiguous or id(array) in taken or not array.flags.owndata:
        array = copy_of(array)
    taken.add(id(array))
    return array
