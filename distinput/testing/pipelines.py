# SPDX-License-Identifier: Apache-2.0
"""Random pipelines for Hypothesis, each with the plain list that it must yield.

A pipeline is drawn as a *recipe*: the name of a source and its arguments, then names of ops and theirs, all plain JSON. A
recipe can be printed, saved and built again, even in another process. Add an `Ingredient` of your own to try your op with all
others.
"""

from collections.abc import Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.testing.ops import OPS
from distinput.testing.pipeline import DrawFrom, Ingredient, Pipeline, assembled
from distinput.testing.sources import SOURCES

__all__ = ["INGREDIENTS", "MOST_ROWS", "OPS", "SOURCES", "Ingredient", "Pipeline", "built", "pipelines"]

MOST_ROWS = 40
"""Drawn pipelines have at most this many elements, since every position in each of them is tested."""

INGREDIENTS: Mapping[str, Ingredient] = MappingProxyType({made.name: made for made in (*SOURCES, *OPS)})
"""Every source and op of distinput itself."""


def built(recipe: Iterable[Sequence[Any]], table: Mapping[str, Ingredient] = INGREDIENTS) -> Dataset:
    """The dataset of a recipe.

    >>> built([("range", {"start": 0, "stop": 6, "step": 2, "dtype": "int64"}), ("take", {"count": 2})]).to_list()
    [0, 2]
    """
    return assembled(recipe, table)


@st.composite
def pipelines(
    draw: DrawFrom,
    most_ops: int = 8,
    sources: Sequence[Ingredient] = SOURCES,
    ops: Sequence[Ingredient] = OPS,
    last: str | None = None,
) -> Pipeline:
    """Pipelines of one source and up to `most_ops` ops, each of which fits what came before it.

    Args:
      draw: given by Hypothesis.
      most_ops: the longest chain.
      sources: what they may begin with.
      ops: what may follow.
      last: an op that every pipeline ends with, if it fits.
    """
    table = {made.name: made for made in (*sources, *ops)}
    source = draw(st.sampled_from(sources))
    made = Pipeline.of(source.name, source.draw(draw, None), table)
    for _ in range(draw(st.integers(0, most_ops))):
        made = _longer(draw, made, ops)
    if last is not None and table[last].fits(made):
        made = _longer(draw, made, [table[last]])
    return made


def _longer(draw: DrawFrom, made: Pipeline, ops: Sequence[Ingredient]) -> Pipeline:
    op = draw(st.sampled_from([op for op in ops if op.fits(made) for _ in range(op.weight)]))
    longer = made.then(op.name, op.draw(draw, made))
    if len(longer.elements) > MOST_ROWS:
        return made
    # Empty pipelines prove little, so most drawn ones keep some elements.
    return longer if longer.elements or not made.elements or not draw(st.integers(0, 5)) else made
