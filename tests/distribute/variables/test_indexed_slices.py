# SPDX-License-Identifier: Apache-2.0
"""Rows and where they are."""

import numpy as np

import distinput as di


def test_it_tells_its_parts() -> None:
    slices = di.IndexedSlices(values=[[1.0, 2.0]], indices=[3], dense_shape=(5, 2))
    assert (slices.dtype, slices.shape, slices.indices) == (np.float64, (5, 2), [3])
    assert repr(slices) == "IndexedSlices(indices=[3], values=[[1.0, 2.0]], dense_shape=(5, 2))"


def test_it_can_be_negated() -> None:
    negated = -di.IndexedSlices([1.0], [0])
    assert (negated.values.tolist(), negated.indices) == ([-1.0], [0])
