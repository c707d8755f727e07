# SPDX-License-Identifier: Apache-2.0
"""Specs of leaves: which shapes fit, and what two shapes have in common."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from distinput.values.spec import Shape, TensorSpec, merge_shapes, shape_fits

SHAPES = st.one_of(st.none(), st.lists(st.one_of(st.none(), st.integers(0, 3)), max_size=3).map(tuple))
SIZES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@given(SHAPES, SHAPES, SIZES)
def test_what_fits_one_of_two_shapes_fits_both_merged(a: Shape, b: Shape, sizes: tuple[int, ...]) -> None:
    merged = merge_shapes(a, b)
    assert merged == merge_shapes(b, a)
    if shape_fits(sizes, a) or shape_fits(sizes, b):
        assert shape_fits(sizes, merged)
    if a is not None and b is not None and len(a) == len(b):
        assert merged is not None
        assert [i for i, size in enumerate(merged) if size is not None] == [
            i for i, (x, y) in enumerate(zip(a, b, strict=True)) if x == y and x is not None
        ]  # and no more is given up than has to be


@given(SIZES, SHAPES)
def test_a_shape_fits_where_every_known_size_is_the_same(sizes: tuple[int, ...], wanted: Shape) -> None:
    expected = wanted is None or (
        len(wanted) == len(sizes) and all(w in (None, d) for d, w in zip(sizes, wanted, strict=True))
    )
    assert shape_fits(sizes, wanted) == expected
    assert TensorSpec(wanted, "int64").fits(sizes, np.dtype(np.int64)) == expected
    assert not TensorSpec(wanted, "int64").fits(sizes, np.dtype(np.int32))


@given(SHAPES)
def test_the_size_of_a_leaf_is_known_with_its_shape(shape: Shape) -> None:
    known = shape is not None and None not in shape
    assert TensorSpec(shape, np.int16).size == (int(np.prod(shape)) if known else None)  # type: ignore[arg-type]


def test_the_name_of_a_leaf_is_no_part_of_equality() -> None:
    assert TensorSpec([None], "int64", "x") == TensorSpec([None], np.int64, "y")
    assert hash(TensorSpec([None], "int64", "x")) == hash(TensorSpec([None], np.int64))
    assert TensorSpec([None], "int64") != TensorSpec(None, "int64")
    assert repr(TensorSpec([None, 2], str)) == "TensorSpec(shape=(None, 2), dtype=string)"
