# SPDX-License-Identifier: Apache-2.0
"""The common spec fits the elements of all sources, and what has none is refused with both sides named."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.plan.families import common_spec

DATASET = di.data.Dataset


def merged(*elements: Any) -> Any:
    return common_spec("op", tuple([DATASET.from_tensors(element).node for element in elements])).nest


SHAPES = st.lists(st.integers(0, 3), max_size=3).map(tuple)


@given(st.lists(SHAPES, min_size=1, max_size=4))
def test_sizes_that_differ_are_unknown_and_ranks_that_differ_too(shapes: list[tuple[int, ...]]) -> None:
    found = merged(*[np.zeros(shape) for shape in shapes])
    if len({len(shape) for shape in shapes}) > 1:
        assert found.shape is None or found.shape.rank is None
    else:
        wanted = [sizes[0] if len(set(sizes)) == 1 else None for sizes in zip(*shapes, strict=True)]
        assert list(found.shape) == wanted


def test_every_leaf_is_merged_by_itself() -> None:
    found = merged({"a": np.zeros(2), "b": (b"", np.int8(1))}, {"a": np.zeros(3), "b": (b"x", np.int8(2))})
    assert found == {
        "a": di.TensorSpec((None,), np.float64),
        "b": (di.TensorSpec((), "string"), di.TensorSpec((), np.int8)),
    }


@pytest.mark.parametrize(
    "one, other, message",
    [
        ((1, 2), (1, 2, 3), "op: all datasets must have the same structure of elements, got .* and "),
        ({"a": 1}, {"b": 1}, "same structure of elements, got .*'a'.* and .*'b'.*}$"),
        (
            {"a": 1, "b": 2},
            {"a": 1, "b": di.data.Nullable(value=2, valid=True)},
            r"; one of them has nulls in 'b': have the readers of both tell them, with valid=\['b'\]",
        ),
        (np.int32(1), np.int64(1), "op: all datasets must have the same dtypes, got int32 and int64"),
        (b"", np.int64(1), "got string and int64"),
        ((1, b""), (1, 1.5), "got string and float32"),
    ],
)
def test_what_has_nothing_in_common_is_refused(one: Any, other: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        merged(one, other)


def test_datasets_inside_elements_are_merged_by_their_elements() -> None:
    sources = [DATASET.range(4).batch(n, drop_remainder=True).window(2).node for n in (2, 3)]
    (leaf,) = common_spec("op", tuple(sources)).leaves
    assert leaf.element_spec == di.TensorSpec((None,), np.int64)
    for other in (DATASET.range(4), DATASET.range(4).map(float).window(2)):
        with pytest.raises(TypeError, match="op: all datasets must have the same element type, got DatasetSpec"):
            common_spec("op", (DATASET.range(4).window(2).node, other.node))
