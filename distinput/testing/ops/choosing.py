# SPDX-License-Identifier: Apache-2.0
"""Ops that keep some of the elements."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.ops.filter import Filter, TakeWhile
from distinput.ops.shard import Shard
from distinput.ops.take import Skip, Take
from distinput.ops.unique import Unique
from distinput.testing.elements import exact
from distinput.testing.functions import applied, predicate
from distinput.testing.ops.arguments import COUNTS, SMALL, OpArguments, nothing
from distinput.testing.pipeline import DrawFrom, Ingredient, Pipeline

__all__ = ["CHOOSING"]


def _predicate(a: OpArguments) -> Callable[..., Any]:
    return predicate(a["modulus"], a["rest"])


def _draw_predicate(draw: DrawFrom, _: Pipeline) -> OpArguments:
    modulus = draw(st.integers(1, 6))
    return {"modulus": modulus, "rest": draw(st.integers(0, modulus))}


def _model_take_while(p: Pipeline, a: OpArguments) -> list[Any]:
    given = []
    for element in p.elements:
        if not applied(_predicate(a), element):
            break
        given.append(element)
    return given


def _model_unique(p: Pipeline, _: OpArguments) -> list[Any]:
    given, seen = [], set()
    for element in p.elements:
        if exact(element) not in seen:
            seen.add(exact(element))
            given.append(element)
    return given


def _unique_fits(p: Pipeline) -> bool:
    return p.tensors and len(p.leaves) == 1 and p.leaves[0].dtype in (np.int32, np.int64, np.dtype(object))


def _model_take(p: Pipeline, a: OpArguments) -> list[Any]:
    return p.elements if a["count"] < 0 else p.elements[: a["count"]]


def _model_skip(p: Pipeline, a: OpArguments) -> list[Any]:
    return [] if a["count"] < 0 else p.elements[a["count"] :]


def _draw_shard(draw: DrawFrom, _: Pipeline) -> OpArguments:
    shards = draw(SMALL)
    return {"shards": shards, "index": draw(st.integers(0, shards - 1))}


def _counted(draw: DrawFrom, _: Pipeline) -> OpArguments:
    return {"count": draw(COUNTS)}


CHOOSING: tuple[Ingredient, ...] = (
    Ingredient(
        "filter",
        (Filter,),
        lambda ds, a: ds.filter(_predicate(a)),
        lambda p, a: [element for element in p.elements if applied(_predicate(a), element)],
        _draw_predicate,
    ),
    Ingredient(
        "shard",
        (Shard,),
        lambda ds, a: ds._followed_by(Shard(ds.node, a["shards"], a["index"])),  # which warns of no seed that is drawn
        lambda p, a: p.elements[a["index"] :: a["shards"]],
        _draw_shard,
    ),
    Ingredient("skip", (Skip,), lambda ds, a: ds.skip(a["count"]), _model_skip, _counted),
    Ingredient("take", (Take,), lambda ds, a: ds.take(a["count"]), _model_take, _counted),
    Ingredient(
        "take_while", (TakeWhile,), lambda ds, a: ds.take_while(_predicate(a)), _model_take_while, _draw_predicate
    ),
    Ingredient("unique", (Unique,), lambda ds, _: ds.unique(), _model_unique, nothing, _unique_fits),
)
"""Ops that keep some of the elements."""
