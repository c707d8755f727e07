# SPDX-License-Identifier: Apache-2.0
"""Ops that group elements by a key."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.testing.elements import exact
from distinput.testing.ops.batching import cut, padded, stacked
from distinput.testing.pipeline import (
    EITHER,
    SMALL,
    DrawFrom,
    Ingredient,
    OpArguments,
    Pipeline,
    applied,
    digest,
    drawing,
    tensors,
    token_count,
)
from distinput.tf.steps import Reducer, group_by_reducer


def _key(modulus: int) -> Callable[..., Any]:
    return lambda *args: np.int64(digest(*args) % modulus - 1)


_REDUCES = ("same", "batch", "take", "number")


def _grouped(
    p: Pipeline,
    key_of: Callable[[Any], int],
    size_of: Callable[[int], int],
    made: Callable[[int, list[Any]], list[Any]],
) -> list[Any]:
    """What is made of the groups of one key: of each when it is full, and at the end of the others, key by key."""
    groups: dict[int, list[Any]] = {}
    given: list[Any] = []
    for element in p.elements:
        key = key_of(element)
        groups.setdefault(key, []).append(element)
        if len(groups[key]) == size_of(key):
            given += made(key, groups.pop(key))
    return [*given, *[each for key in sorted(groups) for each in made(key, groups[key])]]


def _reduced(word: str, size: int) -> Callable[[Any, Dataset], Dataset]:
    def reduce(key: Any, window: Dataset) -> Dataset:
        if word == "batch":
            return window.batch(size)
        if word == "take":
            return window.take(1)
        if word == "number":
            return window.map(lambda *args: (key, np.int64(digest(*args))))
        return window

    return reduce


def _reduced_list(p: Pipeline, word: str, size: int, key: int, window: list[Any]) -> list[Any]:
    if word == "batch":
        return [stacked(p.spec, group) for group in cut(window, size, drop=False)]
    if word == "take":
        return window[:1]
    if word == "number":
        return [(np.int64(key), np.int64(applied(digest, element))) for element in window]
    return window


def _draw_group(draw: DrawFrom, p: Pipeline) -> OpArguments:
    words = st.sampled_from([word for word in _REDUCES if word != "batch" or p.stackable])
    drawn = drawing(modulus=st.integers(1, 4), window=SMALL, by_key=EITHER, reduce=words, size=SMALL)
    return drawn(draw, p)


def _window_size(a: OpArguments, key: int) -> int:
    return int(a["window"] + (key % 2 if a["by_key"] else 0))


def _build_group(ds: Dataset, a: OpArguments) -> Dataset:
    sizes: OpArguments = {"window_size": a["window"]}
    if a["by_key"]:
        sizes = {"window_size_func": lambda key: np.int64(_window_size(a, int(key)))}
    return ds.group_by_window(_key(a["modulus"]), _reduced(a["reduce"], a["size"]), **sizes)


def _model_group(p: Pipeline, a: OpArguments) -> list[Any]:
    return _grouped(
        p,
        lambda element: int(applied(_key(a["modulus"]), element)),
        lambda key: _window_size(a, key),
        lambda key, window: _reduced_list(p, a["reduce"], a["size"], key, window),
    )


def _draw_bucket(draw: DrawFrom, p: Pipeline) -> OpArguments:
    boundaries = draw(st.lists(st.integers(1, 9), max_size=3, unique=True).map(sorted))
    sizes = draw(st.lists(SMALL, min_size=len(boundaries) + 1, max_size=len(boundaries) + 1))
    return {
        "boundaries": boundaries,
        "sizes": sizes,
        "drop": draw(st.booleans()),
        "plain": draw(st.booleans()) if p.stackable else False,
    }


def _build_bucket(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.bucket_by_sequence_length(
        token_count, a["boundaries"], a["sizes"], no_padding=a["plain"], drop_remainder=a["drop"]
    )


def _model_bucket(p: Pipeline, a: OpArguments) -> list[Any]:
    made = stacked if a["plain"] else padded
    return _grouped(
        p,
        lambda element: sum(boundary <= applied(token_count, element) for boundary in a["boundaries"]),
        lambda bucket: a["sizes"][bucket],
        lambda bucket, group: [made(p.spec, held) for held in cut(group, a["sizes"][bucket], drop=a["drop"])],
    )


def _added(total: Any, element: Any) -> Any:
    return total[0], total[1] + 1, total[2] + np.int64(applied(digest, element))


def _build_reducer(ds: Dataset, a: OpArguments) -> Dataset:
    reducer = Reducer(
        lambda key: (key, np.int64(0), np.int64(0)),
        _added,
        lambda key, count, total: {"key": key, "count": count, "total": total},
    )
    return ds.apply(group_by_reducer(_key(a["modulus"]), reducer))


def _model_reducer(p: Pipeline, a: OpArguments) -> list[Any]:
    groups: dict[int, list[int]] = {}
    for element in p.elements:
        groups.setdefault(int(applied(_key(a["modulus"]), element)), []).append(applied(digest, element))
    return [
        {"key": np.int64(key), "count": np.int64(len(groups[key])), "total": np.int64(sum(groups[key]))}
        for key in sorted(groups)
    ]


_draw_resample = drawing(
    target=st.sampled_from([[0.5, 0.5, 0.0], [1.0, 1.0, 1.0], [0.2, 0.3, 0.5]]),
    initial=st.sampled_from([None, [1.0, 1.0, 1.0], [0.2, 0.3, 0.5]]),
    seed=st.integers(0, 9),
)


def _class(*args: Any) -> Any:
    return np.int32(digest(*args) % 3)


def _model_resample(p: Pipeline, a: OpArguments, seen: list[Any]) -> list[Any]:
    """Some of the elements in their order, each with its class; all of them where the classes are as wanted."""
    if not p.exact:
        return seen
    pairs = [(applied(_class, element), element) for element in p.elements]
    if a["target"] == a["initial"]:
        return pairs
    left = iter([exact(pair) for pair in pairs])
    if not all(exact(pair) in left for pair in seen):
        raise AssertionError(f"rejection_resample: {seen!r} are not some of {pairs!r}")
    if any(a["target"][int(found)] == 0 for found, _ in seen):
        raise AssertionError(f"rejection_resample: {seen!r} has a class that {a['target']} leaves out")
    return seen


GROUPING: tuple[Ingredient, ...] = (
    Ingredient(
        "bucket_by_sequence_length",
        _build_bucket,
        _model_bucket,
        _draw_bucket,
        lambda p: p.ranked,
    ),
    Ingredient("group_by_reducer", _build_reducer, _model_reducer, drawing(modulus=st.integers(1, 4))),
    Ingredient("group_by_window", _build_group, _model_group, _draw_group, tensors),
    Ingredient(
        "rejection_resample",
        lambda ds, a: ds.rejection_resample(_class, a["target"], a["initial"], a["seed"]),
        _model_resample,
        _draw_resample,
        settled=lambda _: False,
    ),
)
"""Ops that group elements by a key."""
