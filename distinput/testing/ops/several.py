# SPDX-License-Identifier: Apache-2.0
"""Ops of several datasets: side by side, one after another, chosen from, one of each element, balanced."""

from collections.abc import Callable
from itertools import count
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.kernels.dealing import WHOLE, deal_evenly
from distinput.ops.balance_rows import BalanceRows
from distinput.ops.balanced_sample import whole as in_whole_numbers
from distinput.ops.concatenate import Concatenate
from distinput.ops.interleave import default_cycle
from distinput.testing.elements import exact, interleaved
from distinput.testing.ops.batching import stacked_rows
from distinput.testing.pipeline import (
    EITHER,
    SMALL,
    DrawFrom,
    Ingredient,
    OpArguments,
    Pipeline,
    Point,
    applied,
    digest,
    drawing,
    length,
    whole,
)
from distinput.testing.sources import SOURCES
from distinput.values.nest import flatten, structure_of
from distinput.values.spec import TensorSpec

# ----------------------------------------------------------------------------
# Ops over several datasets.
# ----------------------------------------------------------------------------


VARIANTS = st.sampled_from(["same", "skip", "take", "none", "fresh"])
"""Words for datasets of the same kind of elements as another one."""


def _variant(ds: Dataset, word: str) -> Dataset:
    """A dataset of the same kind of elements."""
    return {"same": ds, "skip": ds.skip(2), "take": ds.take(3), "none": ds.take(0), "fresh": Dataset(ds.node)}[word]


def variant_model(elements: list[Any], word: str) -> list[Any]:
    """The elements of a dataset of the same kind."""
    return {"same": elements, "skip": elements[2:], "take": elements[:3], "none": [], "fresh": elements}[word]


def _build_concatenate(ds: Dataset, a: OpArguments) -> Dataset:
    other = _variant(ds, a["other"])
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
    if not p.exact or not _settled_zip(a):
        return seen
    others = source.model(None, arguments, *([list(source.build(None, arguments))] if source.settled else []))
    pairs = zip(others, p.elements, strict=False) if a["first"] else zip(p.elements, others, strict=False)
    return _checked([_nested(a["nest"], x, y) for x, y in pairs], seen, "zip")


def _settled_zip(a: OpArguments) -> bool:
    settled = _source(a).settled
    return settled is None or settled(a["other"][1])


def _checked(expected: list[Any], seen: list[Any], op: str) -> list[Any]:
    if [exact(e) for e in expected] != [exact(e) for e in seen]:
        raise AssertionError(f"{op}: gave {seen!r}, expected {expected!r}")
    return expected


def _choices(a: OpArguments) -> list[int]:
    return [choice % (1 + len(a["others"])) for choice in a["choices"]]


def sources_of(ds: Dataset, a: OpArguments) -> list[Dataset]:
    """The dataset and others of the same kind."""
    return [ds, *[_variant(ds, word) for word in a["others"]]]


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


_draw_sample = drawing(
    others=st.lists(VARIANTS, min_size=1, max_size=2),
    weights=st.sampled_from([None, [1.0, 2.0, 0.5], [0.0, 1.0, 1.0]]),
    seed=st.integers(0, 9),
    stop=EITHER,
    each=EITHER,
)


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
    Ingredient(
        "choose",
        _build_choose,
        _model_choose,
        drawing(others=st.lists(VARIANTS, max_size=2), choices=st.lists(st.integers(0, 2), max_size=30), stop=EITHER),
    ),
    Ingredient(
        "concatenate",
        _build_concatenate,
        _model_concatenate,
        drawing(other=VARIANTS, before=EITHER),
    ),
    Ingredient(
        "enumerate",
        lambda ds, a: ds.enumerate(a["start"]),
        lambda p, a: [(np.int64(a["start"] + i), element) for i, element in enumerate(p.elements)],
        drawing(start=st.integers(-2, 9)),
    ),
    Ingredient(
        "sample",
        _build_sample,
        _model_sample,
        _draw_sample,
        settled=lambda _: False,
    ),
    Ingredient("zip", _build_zip, _model_zip, _draw_zip, settled=_settled_zip),
)
"""Ops over several datasets."""


# ----------------------------------------------------------------------------
# Ops whose function makes a dataset of an element.
# ----------------------------------------------------------------------------


def _itself(element: Any) -> Any:
    return applied(lambda *args: whole(args), element)


_INNER: dict[str, tuple[Callable[..., Dataset], Callable[[Any], list[Any]]]] = {
    "range": (
        lambda *args: Dataset.range(digest(*args), digest(*args) + length(*args)),
        lambda e: [np.int64(applied(digest, e) + i) for i in range(applied(length, e))],
    ),
    "again": (
        lambda *args: Dataset.from_tensors(whole(args)).repeat(length(*args)),
        lambda e: [_itself(e)] * applied(length, e),
    ),
    "filtered": (
        lambda *args: Dataset.range(6).filter(lambda x: (x + digest(*args)) % 3 > 0).map(lambda x: (x, whole(args))),
        lambda e: [(np.int64(x), _itself(e)) for x in range(6) if (x + applied(digest, e)) % 3 > 0],
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
    if p.tensors:
        return sorted(_INNER)
    return ["range"] if isinstance(p.spec.leaves[0], TensorSpec) else ["range", "window"]


def _inner(word: str) -> Callable[..., Dataset]:
    return _unwrapped if word == "window" else _INNER[word][0]


def _inner_lists(p: Pipeline, word: str) -> list[list[Any]]:
    if word == "window":
        return [list(p.flat(element)[0]) for element in p.elements]
    return [_INNER[word][1](element) for element in p.elements]


def _draw_interleave(draw: DrawFrom, p: Pipeline) -> OpArguments:
    drawn = drawing(
        cycle=st.sampled_from([None, 1, 2, 3, 5]),
        function=st.sampled_from(_inner_words(p)),
        block=st.sampled_from([None, 1, 2, 3]),
        parallel=st.sampled_from([None, None, -1, 1]),
    )
    return drawn(draw, p)


def _model_interleave(p: Pipeline, a: OpArguments) -> list[Any]:
    return interleaved(_inner_lists(p, a["function"]), a["cycle"] or default_cycle(a["parallel"]), a["block"] or 1)


FLATTENING: tuple[Ingredient, ...] = (
    Ingredient(
        "flat_map",
        lambda ds, a: ds.flat_map(_inner(a["function"])),
        lambda p, a: [row for rows in _inner_lists(p, a["function"]) for row in rows],
        lambda draw, p: {"function": draw(st.sampled_from(_inner_words(p)))},
    ),
    Ingredient(
        "interleave",
        lambda ds, a: ds.interleave(_inner(a["function"]), a["cycle"], a["block"], num_parallel_calls=a["parallel"]),
        _model_interleave,
        _draw_interleave,
    ),
)
"""Ops whose function makes a dataset of an element."""


# ----------------------------------------------------------------------------
# Samples of several datasets, and parts of replicas, that are balanced.
# ----------------------------------------------------------------------------


_WEIGHTS = ([1.0, 1.0, 1.0], [1.0, 2.0, 0.5], [0.0, 1.0, 3.0], [3.0, 0.5, 0.0])
_FAR = 50
"""Steps beyond which a deadline does not matter, for these weights."""


def _draw_balanced(draw: DrawFrom, _: Pipeline) -> OpArguments:
    steps = draw(st.lists(st.integers(1, 20), max_size=2, unique=True))
    return {
        "others": draw(st.lists(VARIANTS, min_size=1, max_size=2)),
        "steps": [0, *sorted(steps)],
        "weights": [draw(st.integers(0, 3)) for _ in range(1 + len(steps))],
        "on_end": draw(st.sampled_from(["stop", "skip", "repeat"])),
    }


def _schedule(a: OpArguments) -> dict[int, list[float]]:
    k = 1 + len(a["others"])
    return {step: _WEIGHTS[number][:k] for step, number in zip(a["steps"], a["weights"], strict=True)}


def _build_balanced(ds: Dataset, a: OpArguments) -> Dataset:
    return Dataset.sample_from_datasets(sources_of(ds, a), _schedule(a), balanced=True, on_end=a["on_end"])


def _model_balanced(p: Pipeline, a: OpArguments) -> list[Any]:
    wholes = [p.elements, *[variant_model(p.elements, word) for word in a["others"]]]
    schedule = _schedule(a)

    def weights_at(step: int, going: list[int]) -> list[float]:
        """Those of the step; the next ones if none of these datasets has a weight then."""
        now = max(first for first in schedule if first <= step)
        pieces = [schedule[first] for first in sorted(schedule) if first >= now]
        return next((weights for weights in pieces if any(weights[i] for i in going)), pieces[0])

    everyone = [i for i in range(len(wholes)) if any(weights[i] for weights in schedule.values())]
    if not any(schedule[0]):
        return []
    if len(everyone) == 1 and len(schedule) == 1:
        return list(wholes[everyone[0]])
    remaining, all_done, first = [list(each) for each in wholes], set(), 0
    over = set(range(len(wholes))) - set(everyone)
    counts = [0] * len(wholes)
    elements: list[Any] = []
    while True:
        step = len(elements)
        going = [i for i in range(len(wholes)) if i not in over]
        if not any(weights_at(step, going)[i] for i in going):
            return elements
        later = [weights_at(step, going), *[weights for begin, weights in schedule.items() if begin > step]]
        if a["on_end"] == "repeat" and not any(weights[i] for weights in later for i in going if i not in all_done):
            return elements
        turn = _turn(going, counts, [weights_at(n, going) for n in range(first, step + _FAR)], step - first)
        if remaining[turn]:
            elements.append(remaining[turn].pop(0))
            counts[turn] += 1
            continue
        if a["on_end"] == "stop":
            return elements
        if a["on_end"] == "repeat" and wholes[turn]:
            all_done.add(turn)
            remaining[turn] = list(wholes[turn])
            continue
        over.add(turn)
        first, counts = step, [0] * len(wholes)


def _turn(going: list[int], counts: list[int], weights: list[list[float]], done: int) -> int:
    """Whose turn it is, straight from the theorem: the sums of shares, and the first step at which each must have come."""
    d = max(2 * len(going) - 2, 2)
    shares = [in_whole_numbers([each[i] for i in going]) for each in weights]
    found = []
    for place, i in enumerate(going):
        target = sum(share[place] for share in shares[: done + 1])
        if d * (target - counts[i] * WHOLE) >= WHOLE:
            for after in count():
                if d * (target - counts[i] * WHOLE) >= (d - 1) * WHOLE or done + after + 1 >= len(shares):
                    break
                target += shares[done + after + 1][place]
            found.append((after, i))
    return min(found)[1]


def _cost(*components: Any) -> Any:
    """A number for each row of a batch."""
    structure = structure_of(components)
    return np.arange(len(structure.flatten(components)[0])) * 7 % 5


def _model_rows(p: Pipeline, a: OpArguments) -> list[Any]:
    rows = []
    for element in p.elements:
        leaves = p.flat(element)
        count = len(leaves[0])
        if not count:
            rows.append(leaves)
            continue
        loads, owners = np.zeros(a["pieces"], np.int64), np.empty(count, np.int64)
        deal_evenly.reference(np.arange(count) * 7 % 5, loads, owners)
        order = sorted(range(count), key=lambda row: owners[row])
        rows.append(
            [stacked_rows(leaf, [array[i] for i in order]) for array, leaf in zip(leaves, p.leaves, strict=True)]
        )
    return p.like(rows)


BALANCED: tuple[Ingredient, ...] = (
    Ingredient(
        "balance_rows",
        lambda ds, a: ds._followed_by(BalanceRows(ds.node, _cost, a["pieces"])),
        _model_rows,
        drawing(pieces=SMALL),
        lambda p: p.batched and len(p.leaves) > 0,
        weight=3,
    ),
    Ingredient("sample_balanced", _build_balanced, _model_balanced, _draw_balanced),
)
"""Samples and replicas that are balanced."""
