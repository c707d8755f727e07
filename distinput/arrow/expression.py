# SPDX-License-Identifier: Apache-2.0
"""Expressions of pyarrow (`pyarrow.compute.field("x") > 3`): evaluated on blocks, or for the bounds of values alone."""

import ctypes
import math
import re
from collections import deque
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from distinput.arrow.record_batches import arrow_schema, record_batch
from distinput.columns.block import Block, ColumnBlock
from distinput.columns.column import Ints
from distinput.errors import InvalidArgumentError
from distinput.names.lazy import dataclass, library
from distinput.values.spec import Spec

pa = library("pyarrow")
pc = library("pyarrow.compute")
types = library("pyarrow.types")

# ----------------------------------------------------------------------------
# Expressions of pyarrow (`pyarrow.compute.field("x") > 3`): evaluated on blocks, and taken apart.
#
# pyarrow evaluates expressions, but does not show what they are made of. What it pickles does: a list of words in which
# `call` and `end` are brackets, and a record batch with the constants. A form that is not known is no error: then nothing
# is pushed down.
#
# pyarrow is imported when the first function is called.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Term:
    """A part of an expression.

    Args:
      kind: "call", "field", "nested" or "literal".
      value: the name of the function or of the column, the names down to one in a struct, or a pyarrow Scalar.
      arguments: of the function.
    """

    kind: str
    value: Any
    arguments: tuple["Term", ...] = ()

    @property
    def fields(self) -> frozenset[str]:
        """The columns that it reads."""
        if self.kind == "field":
            return frozenset((self.value,))
        if self.kind == "nested":
            return frozenset(self.value[:1])  # what is below a column is read with it
        return frozenset().union(*[argument.fields for argument in self.arguments])

    @property
    def constants(self) -> list[Any]:
        """What it is compared with or made of."""
        if self.kind == "literal":
            return [self.value]
        return [constant for argument in self.arguments for constant in argument.constants]


def is_expression(value: Any) -> bool:
    """Whether a value is an expression of pyarrow; pyarrow is not imported."""
    kind = type(value)
    return kind.__name__ == "Expression" and kind.__module__.split(".")[0] == "pyarrow"


_MISSING = re.compile(r"No match for FieldRef\.Name\((.*?)\) in ", re.DOTALL)


def part_read(spec: Spec, fields: frozenset[str] | None) -> tuple[Spec, list[int]]:
    """The components that an expression reads, and the places of their leaves; others need no type of Arrow.

    Args:
      spec: of the elements.
      fields: the columns that it reads; None: not known, so it is all of them.
    """
    structure = spec.structure.kept
    if structure.kind != "dict" or not fields:
        return replace(spec, structure=structure), list(range(len(spec.leaves)))
    places: list[int] = []
    first = 0
    for key, child in zip(structure.keys, structure.children, strict=True):
        places += range(first, first + child.num_leaves) if str(key) in fields else ()
        first += child.num_leaves
    keys = tuple([key for key in structure.keys if str(key) in fields])
    children = tuple([child for key, child in zip(structure.keys, structure.children, strict=True) if key in keys])
    part = replace(structure, keys=keys, children=children, order=keys, mapping=None)
    return Spec(part, tuple([spec.leaves[place] for place in places])), places


def check_expression(expression: Any, spec: Spec, fields: frozenset[str] | None) -> None:
    """Refuse an expression that has no value for elements of this spec, or another one than true and false.

    Args:
      expression: of pyarrow.
      spec: of the elements.
      fields: the columns that it reads; None: not known.

    Raises:
      InvalidArgumentError: it names a column that is not there or has no type in Arrow, or is not boolean.
    """
    part, _ = part_read(spec, fields)
    missing = sorted((fields or frozenset()).difference(map(str, spec.structure.keys)))
    what = f"there is no column {missing[0]!r}" if missing and spec.structure.kind == "dict" else None
    if what is None:
        try:
            kind = _evaluated(arrow_schema(part).empty_table(), expression).type
        except InvalidArgumentError as error:
            what = str(error).removeprefix("to_arrow: ")
        except (pa.ArrowException, TypeError, KeyError) as error:
            # Pyarrow writes the whole schema behind the name, a column on each line.
            unmatched = _MISSING.match(str(error))
            what = f"there is no column {unmatched[1]!r}" if unmatched else str(error)
    if what is not None:
        raise InvalidArgumentError(
            f"filter: the expression {expression} cannot be evaluated: {what}; the columns are {_columns_of(spec)}"
        )
    if kind != pa.bool_():
        raise InvalidArgumentError(f"filter: the expression must be boolean, got {expression}, which is {kind}")


def _columns_of(spec: Spec) -> str:
    try:
        return ", ".join([f"{field.name} ({field.type})" for field in arrow_schema(spec)])
    except InvalidArgumentError:  # one has no type in Arrow
        return ", ".join(map(str, spec.structure.order or ["value"]))


def rows_where(block: Block, part: Spec, places: list[int], expression: Any) -> Ints:
    """The rows of a block for which an expression is true; it is not where it is null.

    Args:
      block: of elements.
      part: what the expression reads of them, as `part_read` gives it.
      places: the places of the leaves of that.
      expression: checked by `check_expression`.

    Raises:
      InvalidArgumentError: it has no value for these elements, such as a division by zero.
    """
    columns = block.columnar().columns
    read = ColumnBlock(part.structure, [columns[place] for place in places], block.size)
    table = pa.Table.from_batches([record_batch(read, arrow_schema(part))])
    try:
        mask = _evaluated(table, expression).fill_null(False)
    except pa.ArrowException as error:
        raise InvalidArgumentError(
            f"filter: the expression {expression} has no value for some elements: {error}; give constants the type of their "
            "column, such as pyarrow.scalar(1, 'uint64')"
        ) from error
    return np.flatnonzero(mask.to_numpy())


def _evaluated(table: Any, expression: Any) -> Any:
    """The values of an expression for all rows, in order."""
    from pyarrow.acero import Declaration, ProjectNodeOptions, TableSourceNodeOptions

    for place, field in enumerate(table.schema):
        if types.is_float16(field.type):  # for which Arrow has no functions; each is a float32 too
            table = table.set_column(place, field.name, table.column(place).cast("float32"))
    source = Declaration("table_source", TableSourceNodeOptions(table))
    steps = [source, Declaration("project", ProjectNodeOptions([expression], ["kept"]))]
    return Declaration.from_sequence(steps).to_table(use_threads=False)["kept"]


def term_of(expression: Any) -> Term | None:
    """What an expression is made of; None if that cannot be told."""
    try:
        _, (data, *_) = expression.__reduce__()
        batches = pa.ipc.open_file(data)
        words = deque(_words(batches.schema))
        term = _read(words, batches.get_batch(0) if batches.num_record_batches else None)
        return None if words else term
    except Exception:  # noqa: BLE001 - another version of pyarrow may pickle otherwise
        return None


def without_halves(expression: Any) -> Any:
    """An expression whose constants of float16 are float32, which its columns are too when it is evaluated.

    One that has functions with options beside such a constant stays as it is.
    """
    term = term_of(expression)
    if term is None or not any(_is_half(constant) for constant in term.constants):
        return expression

    def made(part: Term) -> Any:
        if part.kind in ("field", "nested"):
            return pc.field(part.value)
        if part.kind == "literal":
            return pc.scalar(pa.scalar(part.value.as_py(), "float32") if _is_half(part.value) else part.value)
        return getattr(pc, part.value)(*map(made, part.arguments))

    try:
        return made(term)
    except (AttributeError, TypeError, pa.ArrowException):  # no function of this name without options
        return expression


def _is_half(constant: Any) -> bool:
    return str(getattr(constant, "type", "")) == "halffloat"


def _read(words: deque[tuple[str, str]], constants: Any) -> Term:
    kind, value = words.popleft()
    if kind == "literal":
        return Term("literal", constants.column(int(value))[0])
    if kind == "field_ref":
        return Term("field", value)
    if kind == "nested_field_ref":
        path = [words.popleft()[1] for _ in range(int(value))]
        return Term("nested", tuple(path))
    if kind != "call":
        raise ValueError(f"an expression does not begin with {kind!r}")
    arguments: list[Term] = []
    options = False
    while words[0][0] != "end":
        if words[0][0] == "options":
            options = True
            words.popleft()
        else:
            arguments.append(_read(words, constants))
    words.popleft()
    return Term("call", f"{value} with options" if options else value, tuple(arguments))


class _Schema(ctypes.Structure):
    """The beginning of `struct ArrowSchema`. Source: "The Arrow C data interface"."""

    _fields_ = (("format", ctypes.c_char_p), ("name", ctypes.c_char_p), ("metadata", ctypes.c_void_p))


def _words(schema: Any) -> list[tuple[str, str]]:
    """The metadata of a schema in order, in which keys occur several times; pyarrow shows each once."""
    capsule = schema.__arrow_c_schema__()
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    at = _Schema.from_address(pointer(capsule, b"arrow_schema")).metadata
    count, at = ctypes.c_int32.from_address(at).value, at + 4
    parts = []
    for _ in range(2 * count):
        size = ctypes.c_int32.from_address(at).value
        parts.append(ctypes.string_at(at + 4, size).decode())
        at += 4 + size
    return list(zip(parts[::2], parts[1::2], strict=True))


# ----------------------------------------------------------------------------
# Whether a condition can be true, or false, for values of which only the bounds are known.
#
# Whatever is not certain is possible. So a part of a file is left out only where no row of it can satisfy the condition.
# ----------------------------------------------------------------------------


_EXACT_INTEGER = 1 << 24
"""Integers up to this are the same in every type of numbers that Arrow may compare them in."""

_FLIPPED = {
    "equal": "equal",
    "not_equal": "not_equal",
    "less": "greater",
    "less_equal": "greater_equal",
    "greater": "less",
    "greater_equal": "less_equal",
}
"""What a comparison is with its sides exchanged."""


@dataclass(frozen=True)
class ColumnBounds:
    """What is known about the values of a column.

    Args:
      low: none is smaller, except NaN.
      high: none is larger, except NaN.
      nan: some may be NaN.
    """

    low: Any
    high: Any
    nan: bool = False


def possible(term: Term, ranges: Mapping[str, ColumnBounds]) -> tuple[bool, bool]:
    """Whether a condition can be true for some row, and whether it can be anything else.

    Args:
      term: the condition.
      ranges: of columns; nothing is known about the others.

    >>> five = Term("call", "greater", (Term("field", "x"), Term("literal", 5)))
    >>> possible(five, {"x": ColumnBounds(1, 4)}), possible(five, {"x": ColumnBounds(6, 9)}), possible(five, {})
    ((False, True), (True, False), (True, True))
    """
    given = term.arguments
    if term.kind == "call" and term.value in ("and_kleene", "and", "or_kleene", "or") and len(given) == 2:
        (a, not_a), (b, not_b) = possible(given[0], ranges), possible(given[1], ranges)
        return (a and b, not_a or not_b) if term.value.startswith("and") else (a or b, not_a and not_b)
    if term.kind == "call" and term.value == "invert" and len(given) == 1:
        yes, no = possible(given[0], ranges)
        return no, yes
    if term.kind == "call" and term.value in _FLIPPED and len(given) == 2:
        left, right = given
        if left.kind == "field" and right.kind == "literal" and left.value in ranges:
            return _compared(term.value, ranges[left.value], right.value)
        if left.kind == "literal" and right.kind == "field" and right.value in ranges:
            return _compared(_FLIPPED[term.value], ranges[right.value], left.value)
    return True, True


def _compared(how: str, known: ColumnBounds, literal: Any) -> tuple[bool, bool]:
    value = _plain(literal)
    low, high = known.low, known.high
    if isinstance(low, bytes) != isinstance(value, bytes) or value is None:
        return True, True
    if isinstance(low, float) and isinstance(value, int) and abs(value) > _EXACT_INTEGER:
        return True, True
    if isinstance(value, float):
        if math.isnan(value):
            return True, True
        low, high = float(low), float(high)  # as Arrow compares integers with a float; the order stays
    match how:
        case "less":
            yes, no = low < value, high >= value
        case "less_equal":
            yes, no = low <= value, high > value
        case "greater":
            yes, no = high > value, low <= value
        case "greater_equal":
            yes, no = high >= value, low < value
        case "equal":
            yes, no = low <= value <= high, isinstance(low, bytes) or not low == value == high
        case _:  # bounds of texts may be cut short, so that equal ones prove nothing
            yes, no = isinstance(low, bytes) or not low == value == high, low <= value <= high
    if known.nan:  # no comparison with NaN is true but "not equal"
        return (True, no) if how == "not_equal" else (yes, True)
    return yes, no


def _plain(literal: Any) -> Any:
    """A constant as a number or as bytes; None for anything else."""
    value = literal.as_py() if hasattr(literal, "as_py") else literal
    if isinstance(value, bool) or not isinstance(value, int | float | str | bytes):
        return None
    return value.encode() if isinstance(value, str) else value
