# SPDX-License-Identifier: Apache-2.0
"""Specs: which shapes fit, what two specs have in common, and what one says of an element."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.core.nest import LEAF, structure_of
from distinput.core.shape import TensorShape
from distinput.core.spec import (
    DatasetSpec,
    Shape,
    Spec,
    TensorSpec,
    merge_shapes,
    merge_specs,
    opened,
    shape_fits,
)

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
    spec = TensorSpec(shape, np.int16)
    assert spec.size == (int(np.prod(shape)) if known else None)  # type: ignore[arg-type]
    whole = Spec.of((spec, TensorSpec((4,), np.int64)))
    assert whole.is_static is known
    assert whole.row_bytes == 32 + (2 * int(np.prod(shape)) if known else 16)  # type: ignore[arg-type]


def test_a_spec_is_a_nest_of_leaves() -> None:
    nest = {"b": TensorSpec((), "string"), "a": (TensorSpec([2], np.float32),)}
    spec = Spec.of(nest)
    assert spec.nest == nest
    assert [leaf.dtype for leaf in spec.tensors("op")] == [np.dtype(np.float32), np.dtype(object)]
    assert spec.map(lambda leaf: leaf.with_shape(None)).leaves[0].shape is None
    assert Spec.of(TensorSpec((), int)) == Spec.leaf((), int)
    with pytest.raises(TypeError, match="a spec must be a nest of TensorSpec, got 3"):
        Spec.of((nest, 3))


def test_the_name_of_a_leaf_is_no_part_of_equality() -> None:
    assert TensorSpec([None], "int64", "x") == TensorSpec([None], np.int64, "y")
    assert hash(TensorSpec([None], "int64", "x")) == hash(TensorSpec([None], np.int64))
    assert TensorSpec([None], "int64") != TensorSpec(None, "int64")
    assert repr(TensorSpec([None, 2], str)) == "TensorSpec(shape=(None, 2), dtype=string)"


INNER = TensorSpec((2,), np.int64)


@pytest.mark.parametrize(
    "a, b, merged",
    [
        (TensorSpec((2,), int), TensorSpec((3,), int), TensorSpec((None,), int)),
        (TensorSpec((2,), int), TensorSpec((2,), float), None),
        ((INNER, INNER), (INNER,), None),
        ({"a": INNER}, {"a": INNER}, {"a": INNER}),
        (DatasetSpec(INNER), DatasetSpec(TensorSpec((3,), np.int64)), DatasetSpec(TensorSpec((None,), np.int64))),
        (DatasetSpec(INNER), DatasetSpec(TensorSpec((2,), float)), None),
        (DatasetSpec(INNER), INNER, None),
    ],
)
def test_what_two_specs_have_in_common(a: Any, b: Any, merged: Any) -> None:
    found = merge_specs(Spec.of(a), Spec.of(b))
    assert (None if found is None else found.nest) == merged


def test_an_opened_spec_keeps_ranks_alone() -> None:
    spec = opened(Spec.of((TensorSpec((2, 3), int), TensorSpec(None, int), DatasetSpec(INNER, (3,)))))
    assert [leaf.shape for leaf in spec.leaves] == [(None, None), None, (None,)]
    assert spec.leaves[2].element_spec == TensorSpec((None,), np.int64)  # type: ignore[union-attr]
    assert spec.structure == structure_of((0, 0, 0))


def test_a_dataset_is_no_array() -> None:
    with pytest.raises(TypeError, match=r"op: component \[1\] is a dataset; flat_map or zip it first"):
        Spec.of((INNER, DatasetSpec(INNER))).tensors("op")
    assert repr(DatasetSpec(INNER)) == f"DatasetSpec(element_spec={INNER!r})"
    assert repr(DatasetSpec(INNER, (2,))) == f"DatasetSpec(element_spec={INNER!r}, {TensorShape((2,))!r})"
    assert Spec.of(DatasetSpec(INNER)).structure == LEAF
