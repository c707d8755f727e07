# SPDX-License-Identifier: Apache-2.0
"""Random specs, and elements that fit them."""

from typing import Any

import numpy as np
import pytest
from hypothesis import find, given
from hypothesis import strategies as st

import distinput as di
from distinput.testing import check_spec
from distinput.testing.strategies import elements, shapes, specs
from distinput.values.nest import flatten


@given(st.data())
def test_elements_fit_their_spec(data: Any) -> None:
    spec = data.draw(specs())
    some = data.draw(st.lists(elements(spec), max_size=3))
    check_spec(di.data.Dataset.from_generator(lambda: iter(some), output_signature=spec))


def test_nests_and_sizes_of_all_kinds_are_found() -> None:
    find(specs(), lambda spec: isinstance(spec, tuple) and any(isinstance(part, dict) for part in spec))
    find(specs(2), lambda spec: any(None in leaf.shape for leaf in flatten(spec)))
    find(specs(1), lambda spec: flatten(spec)[0].dtype == np.dtype(object))


@given(shapes(unknown=False))
def test_known_shapes_are_known(shape: tuple[int | None, ...]) -> None:
    assert None not in shape


def test_unknown_ranks_are_refused() -> None:
    with pytest.raises(ValueError, match="a leaf must have a known rank"):
        elements(di.TensorSpec(None, np.int32))
