# SPDX-License-Identifier: Apache-2.0
"""Nests of specs: what two have in common, and what one says of an element."""

from typing import Any

import numpy as np
import pytest

from distinput.values.leaves import TensorShape
from distinput.values.nest import LEAF, structure_of
from distinput.values.spec import DatasetSpec, Spec, TensorSpec, merge_specs, opened


@pytest.mark.parametrize("shape, size", [((2, 3), 6), ((), 1), ((2, None), None), (None, None)])
def test_a_nest_is_as_large_as_its_leaves_are_known_to_be(shape: Any, size: int | None) -> None:
    whole = Spec.of((TensorSpec(shape, np.int16), TensorSpec((4,), np.int64)))
    assert whole.is_static is (size is not None)
    assert whole.row_bytes == 32 + (16 if size is None else 2 * size)


def test_a_spec_is_a_nest_of_leaves() -> None:
    nest = {"b": TensorSpec((), "string"), "a": (TensorSpec([2], np.float32),)}
    spec = Spec.of(nest)
    assert spec.nest == nest
    assert [leaf.dtype for leaf in spec.tensors("op")] == [np.dtype(np.float32), np.dtype(object)]
    assert spec.map(lambda leaf: leaf.with_shape(None)).leaves[0].shape is None
    assert Spec.of(TensorSpec((), int)) == Spec.leaf((), int)
    with pytest.raises(TypeError, match="a spec must be a nest of TensorSpec, got 3"):
        Spec.of((nest, 3))


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
