# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.arrow.expression import ColumnBounds, Term, possible, term_of

X, S = pc.field("x"), pc.field("s")
NUMBERS = st.lists(st.integers(-4, 4) | st.floats(-4, 4), min_size=1, max_size=5)
COMPARED = st.tuples(st.sampled_from(["<", "<=", ">", ">=", "==", "!="]), st.integers(-5, 5) | st.floats(-5, 5))


def compared(field: Any, how: str, value: Any) -> Any:
    made = {"<": field < value, "<=": field <= value, ">": field > value, ">=": field >= value, "==": field == value}
    return made.get(how, field != value)


@given(NUMBERS, st.booleans(), COMPARED, COMPARED, st.booleans(), st.booleans())
def test_what_is_impossible_does_not_happen(
    values: list[Any], nan: bool, one: Any, other: Any, both: bool, negated: bool
) -> None:
    rows = np.array([float(v) for v in values] + [np.nan] * nan)
    a, b = compared(X, *one), compared(X, *other)
    expression = (a & ~b if negated else a & b) if both else (~a | b if negated else a | b)
    term = term_of(expression)
    assert term is not None
    true = pa.table({"x": rows}).filter(expression).num_rows
    known = {"x": ColumnBounds(float(min(values)), float(max(values)), nan=nan)}
    yes, no = possible(term, known)
    assert yes or not true
    assert no or true == len(rows)


@pytest.mark.parametrize(
    "expression, ranges, answer",
    [
        (S == "b", {"s": ColumnBounds(b"c", b"d")}, False),
        (S == "b", {"s": ColumnBounds(b"a", b"d")}, True),
        (S != "b", {"s": ColumnBounds(b"b", b"b")}, True),  # the bounds may be cut short
        (X != 3, {"x": ColumnBounds(3, 3)}, False),
        (X != 3.0, {"x": ColumnBounds(3.0, 3.0, nan=True)}, True),
        (~(X < 3.0), {"x": ColumnBounds(0.0, 1.0, nan=True)}, True),
        (float("nan") < X, {"x": ColumnBounds(0, 1)}, True),
        (X > "a", {"x": ColumnBounds(0, 1)}, True),
        (pc.scalar(5) < X, {"x": ColumnBounds(0, 4)}, False),
        (X.isin([9]), {"x": ColumnBounds(0, 4)}, True),
        (float(2**53) == X, {"x": ColumnBounds(2**53 + 1, 2**53 + 1)}, True),  # Arrow compares them as floats
        (X == 2**53 + 1, {"x": ColumnBounds(float(2**53), float(2**53))}, True),
        (X > True, {"x": ColumnBounds(0, 1)}, True),
    ],
)
def test_what_is_not_certain_is_possible(expression: Any, ranges: Any, answer: bool) -> None:
    term = term_of(expression)
    assert term is not None
    assert possible(term, ranges)[0] is answer


def test_an_unknown_part_is_possible() -> None:
    assert possible(Term("field", "flag"), {}) == (True, True)
