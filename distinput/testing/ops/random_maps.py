# SPDX-License-Identifier: Apache-2.0
"""Maps with random numbers."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.ops.random_keys import RandomKeys
from distinput.testing.elements import exact
from distinput.testing.functions import applied
from distinput.testing.ops.arguments import PARALLEL, OpArguments, tensors
from distinput.testing.pipeline import DrawFrom, Ingredient, Pipeline

__all__ = ["RANDOM_MAPS"]


def _beside_a_number(*args: Any) -> Any:
    *components, rng = args
    return _together(*components), rng.integers(1 << 40)


def _together(*components: Any) -> Any:
    return components[0] if len(components) == 1 else components


def _draw(draw: DrawFrom, _: Pipeline) -> OpArguments:
    return {"seed": draw(st.one_of(st.none(), st.integers(-3, 9))), "parallel": draw(PARALLEL)}


def _build(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.map(_beside_a_number, num_parallel_calls=a["parallel"], rng=True, seed=a["seed"])


def _model(p: Pipeline, _: OpArguments, seen: list[Any]) -> list[Any]:
    """The elements as they are, each beside a number that no other one has."""
    wanted = [applied(_together, element) for element in p.elements]
    if p.exact and [exact(element) for element, _ in seen] != [exact(element) for element in wanted]:
        raise AssertionError(f"map(rng=True): gave {seen!r} for {p.elements!r}")
    numbers = np.array([number for _, number in seen], np.int64)
    if len(set(numbers.tolist())) < len(numbers):
        raise AssertionError(f"map(rng=True): gave a number twice: {numbers!r}")
    return seen


RANDOM_MAPS: tuple[Ingredient, ...] = (
    Ingredient("map_with_rng", (RandomKeys,), _build, _model, _draw, tensors, observed=True, settled=lambda _: False),
)
"""Maps with random numbers."""
