# SPDX-License-Identifier: Apache-2.0
"""Ops that change the order."""

from typing import Any

from hypothesis import strategies as st

from distinput.ops.global_shuffle import GlobalShuffle
from distinput.ops.shuffle import Shuffle
from distinput.testing.ops.arguments import OpArguments
from distinput.testing.pipeline import DrawFrom, Ingredient, Pipeline
from distinput.testing.shuffles import checked_shuffle

__all__ = ["SHUFFLING"]


def _draw_shuffle(draw: DrawFrom, _: Pipeline) -> OpArguments:
    return {
        "buffer": draw(st.sampled_from([1, 2, 3, 5, 8, 30, 100])),
        "seed": draw(st.one_of(st.none(), st.integers(-2, 9))),
        "again": draw(st.sampled_from([None, True, False, False])),
    }


def _settled_shuffle(a: OpArguments) -> bool:
    return a.get("buffer") == 1 or (a["seed"] is not None and a["again"] is False)


def model_shuffle(p: Pipeline, a: OpArguments, seen: list[Any]) -> list[Any]:
    return checked_shuffle(p.elements, seen, a.get("buffer")) if p.exact else seen


def _global_fits(p: Pipeline) -> bool:
    node = p.build().node
    n = node.cardinality
    return n == 0 or (n > 0 and (node.random_access or node.start_at(0, 0) is not None))


SHUFFLING: tuple[Ingredient, ...] = (
    Ingredient(
        "global_shuffle",
        (GlobalShuffle,),
        lambda ds, a: ds.global_shuffle(a["seed"], a["again"]),
        model_shuffle,
        lambda draw, p: {k: v for k, v in _draw_shuffle(draw, p).items() if k != "buffer"},
        _global_fits,
        weight=2,
        observed=True,
        settled=_settled_shuffle,
    ),
    Ingredient(
        "shuffle",
        (Shuffle,),
        lambda ds, a: ds.shuffle(a["buffer"], a["seed"], a["again"]),
        model_shuffle,
        _draw_shuffle,
        observed=True,
        settled=_settled_shuffle,
    ),
)
"""Ops that change the order."""
