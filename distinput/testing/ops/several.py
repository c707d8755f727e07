# SPDX-License-Identifier: Apache-2.0
"""Ops over several datasets."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.ops.choose import Choose, DrawByWeights
from distinput.ops.choose import Draw as DrawNumbers
from distinput.ops.concatenate import Concatenate
from distinput.ops.range import Range
from distinput.ops.slices_in_turn import SlicesInTurn
from distinput.ops.zip import Zip
from distinput.testing.elements import exact
from distinput.testing.functions import Point
from distinput.testing.ops.arguments import OpArguments
from distinput.testing.pipeline import DrawFrom, Ingredient, Pipeline
from distinput.testing.sources import SOURCES

__all__ = ["SEVERAL", "VARIANTS", "sources_of", "variant_model"]

VARIANTS = st.sampled_from(["same", "skip", "take", "none", "fresh"])
"""Words for datasets of the same kind of elements as another one."""


def _variant(ds: Dataset, word: str, recipe: Callable[[], Dataset]) -> Dataset:
    """A dataset of the same kind of elements."""
    if word == "fresh":
        return recipe()
    return {"same": ds, "skip": ds.skip(2), "take": ds.take(3), "none": ds.take(0)}[word]


def variant_model(elements: list[Any], word: str) -> list[Any]:
    """The elements of a dataset of the same kind."""
    return {"same": elements, "skip": elements[2:], "take": elements[:3], "none": [], "fresh": elements}[word]


def _copied(ds: Dataset) -> Dataset:
    return Dataset(ds.node)


def _draw_concatenate(draw: DrawFrom, _: Pipeline) -> OpArguments:
    return {"other": draw(VARIANTS), "before": draw(st.booleans())}


def _build_concatenate(ds: Dataset, a: OpArguments) -> Dataset:
    other = _variant(ds, a["other"], lambda: _copied(ds))
    first, second = (other, ds) if a["before"] else (ds, other)
    return Dataset(Concatenate(first.node, second.node))


def _model_concatenate(p: Pipeline, a: OpArguments) -> list[Any]:
    other = variant_model(p.elements, a["other"])
    return [*other, *p.elements] if a["before"] else [*p.elements, *other]


_NESTS = st.sampled_from(["tuple", "dict", "point", "deep"])


def _nested(word: str, first: Any, second: Any) -> Any:
    return {
        "tuple": (first, second),
        "dict": {"z": first, "a": second},
        "point": Point(first, second),
        "deep": (first, {"only": (second,)}),
    }[word]


def _draw_zip(draw: DrawFrom, _: Pipeline) -> OpArguments:
    source = draw(st.sampled_from(SOURCES))
    return {"nest": draw(_NESTS), "other": [source.name, source.draw(draw, None)], "first": draw(st.booleans())}


def _source(a: OpArguments) -> Ingredient:
    return next(source for source in SOURCES if source.name == a["other"][0])


def _build_zip(ds: Dataset, a: OpArguments) -> Dataset:
    other = _source(a).build(None, a["other"][1])
    return Dataset.zip(_nested(a["nest"], other, ds) if a["first"] else _nested(a["nest"], ds, other))


def _model_zip(p: Pipeline, a: OpArguments, seen: list[Any]) -> list[Any]:
    source, arguments = _source(a), a["other"][1]
    if source.observed and not source.settled(arguments):
        return seen
    given = source.model(None, arguments, list(source.build(None, arguments))) if source.observed else None
    others = source.model(None, arguments) if given is None else given
    if not p.exact:
        return seen
    pairs = zip(others, p.elements, strict=False) if a["first"] else zip(p.elements, others, strict=False)
    return _checked([_nested(a["nest"], x, y) for x, y in pairs], seen, "zip")


def _settled_zip(a: OpArguments) -> bool:
    return not _source(a).observed or _source(a).settled(a["other"][1])


def _checked(expected: list[Any], seen: list[Any], op: str) -> list[Any]:
    if [exact(e) for e in expected] != [exact(e) for e in seen]:
        raise AssertionError(f"{op}: gave {seen!r}, expected {expected!r}")
    return expected


def _model_enumerate(p: Pipeline, a: OpArguments) -> list[Any]:
    return [(np.int64(a["start"] + i), element) for i, element in enumerate(p.elements)]


def _draw_choose(draw: DrawFrom, _: Pipeline) -> OpArguments:
    return {
        "others": draw(st.lists(VARIANTS, max_size=2)),
        "choices": draw(st.lists(st.integers(0, 2), max_size=30)),
        "stop": draw(st.booleans()),
    }


def _choices(a: OpArguments) -> list[int]:
    return [choice % (1 + len(a["others"])) for choice in a["choices"]]


def sources_of(ds: Dataset, a: OpArguments) -> list[Dataset]:
    """The dataset and others of the same kind."""
    return [ds, *[_variant(ds, word, lambda: _copied(ds)) for word in a["others"]]]


def _build_choose(ds: Dataset, a: OpArguments) -> Dataset:
    selector = Dataset.from_tensor_slices(np.array(_choices(a), np.int64))
    return Dataset.choose_from_datasets(sources_of(ds, a), selector, stop_on_empty_dataset=a["stop"])


def _model_choose(p: Pipeline, a: OpArguments) -> list[Any]:
    queues = [list(p.elements), *[list(variant_model(p.elements, word)) for word in a["others"]]]
    given = []
    for choice in _choices(a):
        if queues[choice]:
            given.append(queues[choice].pop(0))
        elif a["stop"]:
            break
    return given


def _draw_sample(draw: DrawFrom, _: Pipeline) -> OpArguments:
    return {
        "others": draw(st.lists(VARIANTS, min_size=1, max_size=2)),
        "weights": draw(st.sampled_from([None, [1.0, 2.0, 0.5], [0.0, 1.0, 1.0]])),
        "seed": draw(st.integers(0, 9)),
        "stop": draw(st.booleans()),
        "each": draw(st.booleans()),
    }


def _build_sample(ds: Dataset, a: OpArguments) -> Dataset:
    weights: Any = None if a["weights"] is None else a["weights"][: 1 + len(a["others"])]
    if a.get("each") and weights is not None and all(weights):  # where one is 0, endless weights never use it up
        weights = Dataset.from_tensors(np.array(weights)).repeat()
    return Dataset.sample_from_datasets(sources_of(ds, a), weights, a["seed"], stop_on_empty_dataset=a["stop"])


def _model_sample(p: Pipeline, a: OpArguments, seen: list[Any]) -> list[Any]:
    """Each dataset in its own order, and all of them to their ends unless an end stops the rest."""
    if not p.exact:
        return seen
    queues = [list(p.elements), *[list(variant_model(p.elements, word)) for word in a["others"]]]
    kept = [q for i, q in enumerate(queues) if a["weights"] is None or a["weights"][i] > 0]
    if not _is_merge([exact(e) for e in seen], [[exact(e) for e in q] for q in kept], whole=not a["stop"]):
        raise AssertionError(f"sample_from_datasets: {seen!r} does not mix {kept!r}")
    return seen


def _is_merge(merged: list[Any], parts: list[list[Any]], *, whole: bool) -> bool:
    """True when the parts, each in its order, can be dealt into `merged`; all of them, if `whole`."""
    places = {tuple([0] * len(parts))}
    for key in merged:
        places = {
            (*place[:i], place[i] + 1, *place[i + 1 :])
            for place in places
            for i in range(len(parts))
            if place[i] < len(parts[i]) and parts[i][place[i]] == key
        }
    return bool(places) and (not whole or tuple(map(len, parts)) in places)


SEVERAL: tuple[Ingredient, ...] = (
    Ingredient("choose", (Choose,), _build_choose, _model_choose, _draw_choose),
    Ingredient("concatenate", (Concatenate, SlicesInTurn), _build_concatenate, _model_concatenate, _draw_concatenate),
    Ingredient(
        "enumerate",
        (Zip, Range),
        lambda ds, a: ds.enumerate(a["start"]),
        _model_enumerate,
        lambda draw, _: {"start": draw(st.integers(-2, 9))},
    ),
    Ingredient(
        "sample",
        (Choose, DrawByWeights, DrawNumbers),
        _build_sample,
        _model_sample,
        _draw_sample,
        observed=True,
        settled=lambda _: False,
    ),
    Ingredient("zip", (Zip,), _build_zip, _model_zip, _draw_zip, observed=True, settled=_settled_zip),
)
"""Ops over several datasets."""
