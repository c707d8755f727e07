# SPDX-License-Identifier: Apache-2.0
"""Ops whose function makes a dataset of an element."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.nest import flatten
from distinput.core.spec import TensorSpec
from distinput.data.dataset import Dataset
from distinput.ops.flat_map import FlatMap
from distinput.ops.interleave import Interleave, default_cycle
from distinput.testing.functions import applied, digest, length, whole
from distinput.testing.ops.arguments import OpArguments
from distinput.testing.pipeline import DrawFrom, Ingredient, Pipeline
from distinput.testing.turns import interleaved

__all__ = ["FLATTENING"]


def _itself(*args: Any) -> Any:
    return whole(args)


_INNER: dict[str, tuple[Callable[..., Dataset], Callable[[Any], list[Any]]]] = {
    "range": (
        lambda *args: Dataset.range(digest(*args), digest(*args) + length(*args)),
        lambda e: [np.int64(applied(digest, e) + i) for i in range(applied(length, e))],
    ),
    "again": (
        lambda *args: Dataset.from_tensors(whole(args)).repeat(length(*args)),
        lambda e: [applied(_itself, e)] * applied(length, e),
    ),
    "filtered": (
        lambda *args: Dataset.range(6).filter(lambda x: (x + digest(*args)) % 3 > 0).map(lambda x: (x, whole(args))),
        lambda e: [(np.int64(x), applied(_itself, e)) for x in range(6) if (x + applied(digest, e)) % 3 > 0],
    ),
    "ahead": (
        lambda *args: Dataset.range(length(*args)).map(lambda x: x * 2, num_parallel_calls=2).prefetch(1),
        lambda e: [np.int64(2 * i) for i in range(applied(length, e))],
    ),
    "nested": (
        lambda *args: Dataset.range(length(*args)).flat_map(lambda n: Dataset.range(n)),
        lambda e: [np.int64(i) for n in range(applied(length, e)) for i in range(n)],
    ),
}
"""Functions for `flat_map` and `interleave`, and what they give as lists."""


def _unwrapped(*args: Any) -> Dataset:
    found: Dataset = flatten(whole(args))[0]
    return found


def _inner_words(p: Pipeline) -> list[str]:
    words = sorted(_INNER)
    if not p.tensors:
        return ["range", "window"] if not isinstance(p.spec.leaves[0], TensorSpec) else ["range"]
    return words


def _inner(word: str) -> Callable[..., Dataset]:
    return _unwrapped if word == "window" else _INNER[word][0]


def _inner_lists(p: Pipeline, word: str) -> list[list[Any]]:
    if word == "window":
        return [list(p.flat(element)[0]) for element in p.elements]
    return [_INNER[word][1](element) for element in p.elements]


def _draw_interleave(draw: DrawFrom, p: Pipeline) -> OpArguments:
    cycle = draw(st.sampled_from([None, 1, 2, 3, 5]))
    return {
        "function": draw(st.sampled_from(_inner_words(p))),
        "cycle": cycle,
        "block": draw(st.sampled_from([None, 1, 2, 3])),
        "parallel": draw(st.sampled_from([None, None, -1, 1])),
    }


def _build_interleave(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.interleave(_inner(a["function"]), a["cycle"], a["block"], num_parallel_calls=a["parallel"])


def _model_interleave(p: Pipeline, a: OpArguments) -> list[Any]:
    return interleaved(_inner_lists(p, a["function"]), a["cycle"] or default_cycle(a["parallel"]), a["block"] or 1)


FLATTENING: tuple[Ingredient, ...] = (
    Ingredient(
        "flat_map",
        (FlatMap,),
        lambda ds, a: ds.flat_map(_inner(a["function"])),
        lambda p, a: [row for rows in _inner_lists(p, a["function"]) for row in rows],
        lambda draw, p: {"function": draw(st.sampled_from(_inner_words(p)))},
    ),
    Ingredient("interleave", (Interleave,), _build_interleave, _model_interleave, _draw_interleave),
)
"""Ops whose function makes a dataset of an element."""
