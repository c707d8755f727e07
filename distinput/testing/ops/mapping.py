# SPDX-License-Identifier: Apache-2.0
"""Ops that give each element, or leave it out, or only change the order: maps, filters, caches, shuffles."""

from collections.abc import Callable
from itertools import accumulate, cycle, islice, takewhile
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.data.experimental import assert_cardinality
from distinput.formats.example_encoding import encode_example, encode_sequence_example
from distinput.formats.features import Feature, FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from distinput.ops.on_workers import OncePerWorker
from distinput.ops.shard import Shard
from distinput.ops.split import Part
from distinput.plan.families import key_of, words_at
from distinput.plan.options import SkipErrors
from distinput.testing.elements import checked_shuffle, exact
from distinput.testing.ops.batching import cut, stack
from distinput.testing.pipeline import (
    COUNTS,
    EITHER,
    MAPS,
    PARALLEL,
    ROW_MAPS,
    SIGNATURES,
    SMALL,
    DrawFrom,
    Ingredient,
    OpArguments,
    Pipeline,
    applied,
    digest,
    drawing,
    each,
    predicate,
    tensors,
    whole,
    with_policy,
)
from distinput.testing.sources.records import new_folder
from distinput.values.ragged_tensor import RaggedTensor

# ----------------------------------------------------------------------------
# Ops that make one element of one element.
# ----------------------------------------------------------------------------


def _build_map(ds: Dataset, a: OpArguments) -> Dataset:
    # Which shapes a function can give is guessed from made-up elements; these four are there to give many.
    signature = SIGNATURES.get(a["function"])
    return ds.map(MAPS[a["function"]], num_parallel_calls=a["parallel"], output_signature=signature)


def _sound(*args: Any) -> Any:
    if digest(*args) % 4 == 1:
        raise ValueError("one of those that fail")
    return whole(args)


def _sound_alone(value: Any) -> Any:
    """As `_sound`, for elements that are tuples of one component, of which functions are given the component."""
    return (_sound(value),)


def _build_on_error(ds: Dataset, a: OpArguments) -> Dataset:
    spec = ds.element_spec
    function = _sound_alone if type(spec) is tuple and len(spec) == 1 else _sound
    return ds.map(function, output_signature=spec, on_error=SkipErrors(None), num_parallel_calls=a["parallel"])


def _scanned(state: Any, element: Any) -> Any:
    total, text = state["total"], state["text"]
    total = total + np.int64(digest(element))
    return {"total": total, "text": (text + b"%d" % (total % 10))[-3:]}, (total, element)


def _named(*args: Any) -> Any:
    return {"k": args[0], "m": np.int64(digest(*args)), "n": (np.int32(digest(*args) % 7), args[-1])}


def _listed(*args: Any) -> Any:
    return {"k": args[0], "rows": {"a": np.arange(2) + digest(*args) % 7, "t": np.array([b"x", b"y"], object)}}


def _priced(*args: Any) -> Any:
    return {"k": args[0], "price": b"%d.50" % (digest(*args) % 7)}


class _TwoWorkers:
    """An executor that is asked how many workers it has, and for nothing else."""

    _max_workers = 2

    def submit(self, *_: Any) -> Any:
        raise NotImplementedError


def _of_text(row: Any) -> Any:
    return {"k": row["k"], "t": "".join(row["rows"]["t"].tolist())}


def _of_rows(row: Any) -> Any:
    return {
        "k": row["k"],
        "a": np.array([each["a"] for each in row["rows"]]),
        "t": "".join(each["t"] for each in row["rows"]),
    }


def _paired(*args: Any) -> Any:
    return np.stack([args[0]] * 2), np.maximum(args[0], args[0]), args


def _numeric(p: Pipeline) -> bool:
    """Whether elements are numbers, or tuples whose first component is."""
    structure = p.elements[0] if p.elements else None
    first = structure[0] if type(structure) is tuple and structure else structure
    return p.tensors and isinstance(first, np.ndarray | np.generic) and first.dtype.kind in "iuf"


_SCAN_START = {"total": np.int64(5), "text": b""}


def _model_scan(p: Pipeline, _: OpArguments) -> list[Any]:
    states = accumulate(p.elements, lambda before, element: _scanned(before[0], element), initial=(_SCAN_START, None))
    return [output for _, output in states][1:]


_FEATURES: dict[str, Feature] = {
    "n": FixedLenFeature([2], "int64"),
    "v": VarLenFeature("float32"),
    "s": FixedLenFeature([], "string"),
}


def _encoded(*args: Any) -> bytes:
    number = digest(*args)
    return encode_example({"n": [number, 1], "v": [number / 2] * (number % 3), "s": b"t%d" % number})


def _encoded_twice(*args: Any) -> bytes:
    number = digest(*args)
    values = [number / 2] * (number % 3)
    return encode_example({"n": [number, 1], "v": values, "again": values, "s": b"t%d" % number})


def _parsed(element: Any) -> Any:
    number = applied(digest, element)
    values = np.full(number % 3, number / 2, np.float32)
    return {"n": np.array([number, 1]), "v": values, "s": b"t%d" % number}


def _parsed_batch(group: list[Any]) -> Any:
    rows = [_parsed(element) for element in group]
    values = np.concatenate([row["v"] for row in rows])
    lengths = np.array([len(row["v"]) for row in rows], np.int64)
    ragged = RaggedTensor.from_row_lengths(values, lengths)
    padded = ragged.to_padded(9)
    return {
        "n": np.stack([row["n"] for row in rows]),
        "v": ragged,
        "again": padded,
        "s": stack([row["s"] for row in rows]),
    }


def _build_batches(ds: Dataset, a: OpArguments) -> Dataset:
    padded = FixedLenSequenceFeature([], "float32", allow_missing=True, default_value=9)
    records = ds.map(_encoded_twice).batch(a["size"])
    return records.parse_example({**_FEATURES, "again": padded})


_CONTEXT: dict[str, Feature] = {"number": FixedLenFeature([], "int64")}
_STEPS: dict[str, Feature] = {"pairs": FixedLenSequenceFeature([2], "int64"), "texts": VarLenFeature("string")}


def _steps_of(args: tuple[Any, ...]) -> tuple[int, list[list[int]], list[list[bytes]]]:
    number = digest(*args)
    return number, [[number, step] for step in range(number % 3)], [[b"%d" % step] * step for step in range(number % 4)]


def _encoded_steps(*args: Any) -> bytes:
    number, pairs, texts = _steps_of(args)
    return encode_sequence_example({"number": number}, {"pairs": pairs, "texts": texts})


def _parsed_steps(element: Any) -> Any:
    number, pairs, texts = applied(lambda *args: tuple(_steps_of(args)), element)
    words = np.empty(sum(map(len, texts)), object)
    words[:] = [word for step in texts for word in step]
    sequences = {
        "pairs": np.array(pairs, np.int64).reshape(-1, 2),
        "texts": RaggedTensor.from_row_lengths(words, np.array(list(map(len, texts)), np.int64)),
    }
    return {"number": np.int64(number)}, sequences


MAPPING: tuple[Ingredient, ...] = (
    Ingredient(
        "map",
        _build_map,
        lambda p, a: each(MAPS[a["function"]])(p, a),
        drawing(function=st.sampled_from(sorted(MAPS)), parallel=PARALLEL),
        tensors,
    ),
    Ingredient(
        "select",
        lambda ds, _: ds.map(_named).select(["n", "k"]),
        each(_named, lambda row: {"n": row["n"], "k": row["k"]}),
        fits=tensors,
    ),
    Ingredient(
        "as_text",
        lambda ds, _: ds.map(_listed).as_text(["rows.t"]).map(_of_text),
        each(_listed, lambda row: {"k": row["k"], "t": b"xy"}),
        fits=tensors,
    ),
    Ingredient(
        "as_decimal",
        lambda ds, _: ds.map(_priced).as_decimal(["price"], "float64"),
        each(_priced, lambda row: {"k": row["k"], "price": np.float64(row["price"])}),
        fits=tensors,
    ),
    Ingredient(
        "as_rows",
        lambda ds, _: ds.map(_listed).as_rows(["rows"]).as_text(["rows.t"]).map(_of_rows),
        each(_listed, lambda row: {"k": row["k"], "a": row["rows"]["a"], "t": b"xy"}),
        fits=tensors,
    ),
    Ingredient(
        "as_uint8",
        lambda ds, _: ds.map(_listed).as_uint8(["rows.t"]).select(["k", "rows.t"]),
        each(_listed, lambda row: {"k": row["k"], "rows": {"t": RaggedTensor.from_list([[120], [121]], np.uint8)}}),
        fits=tensors,
    ),
    Ingredient(
        "vectorized_map",
        lambda ds, _: ds.map(_paired, vectorize=True),
        each(_paired),
        fits=_numeric,
    ),
    Ingredient(
        "map_rows",
        lambda ds, a: ds.map_rows(ROW_MAPS[a["function"]]),
        lambda p, a: each(ROW_MAPS[a["function"]])(p, a),
        drawing(function=st.sampled_from(sorted(ROW_MAPS))),
        lambda p: p.ranked and all(leaf.size is not None or leaf.ragged_rank is not None for leaf in p.leaves),
    ),
    Ingredient(
        "on_error",
        _build_on_error,
        lambda p, _: [element for element in p.elements if applied(digest, element) % 4 != 1],
        drawing(parallel=PARALLEL),
        tensors,
    ),
    Ingredient(
        "parse_example",
        lambda ds, _: ds.map(_encoded).parse_example(_FEATURES),
        lambda p, _: [_parsed(element) for element in p.elements],
        fits=tensors,
    ),
    Ingredient(
        "parse_batches",
        _build_batches,
        lambda p, a: [_parsed_batch(group) for group in cut(p.elements, a["size"], drop=False)],
        drawing(size=SMALL),
        tensors,
    ),
    Ingredient(
        "parse_sequence_example",
        lambda ds, _: ds.map(_encoded_steps).parse_sequence_example(_CONTEXT, _STEPS),
        lambda p, _: [_parsed_steps(element) for element in p.elements],
        fits=tensors,
    ),
    Ingredient("scan", lambda ds, _: ds.scan(_SCAN_START, _scanned), _model_scan, fits=tensors),
)
"""Ops that make one element of one element."""


# ----------------------------------------------------------------------------
# Maps with random numbers.
# ----------------------------------------------------------------------------


def _beside_a_number(*args: Any) -> Any:
    return whole(args[:-1]), args[-1].integers(1 << 40)


_draw_with_rng = drawing(seed=st.one_of(st.none(), st.integers(-3, 9)), parallel=PARALLEL)


def _build_with_rng(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.map(_beside_a_number, num_parallel_calls=a["parallel"], rng=True, seed=a["seed"])


def _model_with_rng(p: Pipeline, _: OpArguments, seen: list[Any]) -> list[Any]:
    """The elements as they are, each beside a number that no other one has."""
    wanted = [applied(lambda *args: whole(args), element) for element in p.elements]
    if p.exact and [exact(element) for element, _ in seen] != [exact(element) for element in wanted]:
        raise AssertionError(f"map(rng=True): gave {seen!r} for {p.elements!r}")
    numbers = np.array([number for _, number in seen], np.int64)
    if len(set(numbers.tolist())) < len(numbers):
        raise AssertionError(f"map(rng=True): gave a number twice: {numbers!r}")
    return seen


RANDOM_MAPS: tuple[Ingredient, ...] = (
    Ingredient("map_with_rng", _build_with_rng, _model_with_rng, _draw_with_rng, tensors, settled=lambda _: False),
)
"""Maps with random numbers."""


# ----------------------------------------------------------------------------
# Ops that keep some of the elements.
# ----------------------------------------------------------------------------


def _predicate(a: OpArguments) -> Callable[..., Any]:
    return predicate(a["modulus"], a["rest"])


def _draw_predicate(draw: DrawFrom, _: Pipeline) -> OpArguments:
    modulus = draw(st.integers(1, 6))
    return {"modulus": modulus, "rest": draw(st.integers(0, modulus))}


def _model_take_while(p: Pipeline, a: OpArguments) -> list[Any]:
    return list(takewhile(lambda element: applied(_predicate(a), element), p.elements))


def _model_unique(p: Pipeline, _: OpArguments) -> list[Any]:
    first = {exact(element): element for element in reversed(p.elements)}
    return [first[key] for key in dict.fromkeys(map(exact, p.elements))]


def _unique_fits(p: Pipeline) -> bool:
    return p.tensors and len(p.leaves) == 1 and p.leaves[0].dtype in (np.int32, np.int64, np.dtype(object))


def _model_take(p: Pipeline, a: OpArguments) -> list[Any]:
    return p.elements if a["count"] < 0 else p.elements[: a["count"]]


def _model_skip(p: Pipeline, a: OpArguments) -> list[Any]:
    return [] if a["count"] < 0 else p.elements[a["count"] :]


def _draw_shard(draw: DrawFrom, _: Pipeline) -> OpArguments:
    shards = draw(SMALL)
    return {"shards": shards, "index": draw(st.integers(0, shards - 1))}


def _model_part(p: Pipeline, a: OpArguments) -> list[Any]:
    given: list[Any] = []
    for start in range(0, len(p.elements), a["group"]):
        words = words_at(key_of(a["seed"], a["group"]), start, a["group"]).tolist()
        order = sorted(range(a["group"]), key=words.__getitem__)
        inside = set(order[a["first"] : a["stop"]])
        given += [e for i, e in enumerate(p.elements[start : start + a["group"]]) if (i in inside) == a["within"]]
    return given


def _draw_part(draw: DrawFrom, _: Pipeline) -> OpArguments:
    group = draw(st.integers(2, 6))
    first = draw(st.integers(0, group - 1))
    stop = draw(st.integers(first + 1, group if first else group - 1))
    return {"group": group, "first": first, "stop": stop, **drawing(within=EITHER, seed=st.integers(0, 9))(draw, _)}


_counted = drawing(count=COUNTS)


CHOOSING: tuple[Ingredient, ...] = (
    Ingredient(
        "filter",
        lambda ds, a: ds.filter(_predicate(a)),
        lambda p, a: [element for element in p.elements if applied(_predicate(a), element)],
        _draw_predicate,
    ),
    Ingredient(
        "shard",
        lambda ds, a: ds._followed_by(Shard(ds.node, a["shards"], a["index"])),  # which warns of no seed that is drawn
        lambda p, a: p.elements[a["index"] :: a["shards"]],
        _draw_shard,
    ),
    Ingredient(
        "split",
        lambda ds, a: ds._followed_by(Part(ds.node, **a)),  # the method refuses repeated elements
        _model_part,
        _draw_part,
    ),
    Ingredient("skip", lambda ds, a: ds.skip(a["count"]), _model_skip, _counted),
    Ingredient("take", lambda ds, a: ds.take(a["count"]), _model_take, _counted),
    Ingredient("take_while", lambda ds, a: ds.take_while(_predicate(a)), _model_take_while, _draw_predicate),
    Ingredient("unique", lambda ds, _: ds.unique(), _model_unique, fits=_unique_fits),
)
"""Ops that keep some of the elements."""


# ----------------------------------------------------------------------------
# Ops that give the same elements: again, kept, ahead, or with options.
# ----------------------------------------------------------------------------


PASSING: tuple[Ingredient, ...] = (
    Ingredient(
        "assert_cardinality",
        lambda ds, a: ds.apply(assert_cardinality(a["count"])),
        draw=lambda _, p: {"count": len(p.elements)},
        fits=lambda p: p.exact,
    ),
    Ingredient("cache", lambda ds, _: ds.cache()),
    Ingredient("cache_on_disk", lambda ds, _: ds.cache(new_folder()), fits=tensors),
    Ingredient("copied", lambda ds, _: ds.copied()),
    Ingredient(
        "endless",
        lambda ds, a: ds.repeat(None if a["none"] else -1).take(a["count"]),
        lambda p, a: list(islice(cycle(p.elements), a["count"])),
        drawing(none=EITHER, count=st.integers(0, 30)),
        # As TensorFlow says, an endless repeat is infinite unless its input is known to be empty.
        lambda p: bool(p.elements) or p.build().cardinality() == 0,
    ),
    Ingredient("ignore_errors", lambda ds, _: ds.ignore_errors()),
    Ingredient(
        "on_workers",
        lambda ds, a: ds.on_workers("threads:2", a["most"]),
        draw=drawing(most=st.sampled_from([None, 1, 3])),
    ),
    Ingredient(
        "once_per_worker",
        lambda ds, _: Dataset(OncePerWorker(ds.node, _TwoWorkers())),
        lambda p, _: p.elements * 2,
    ),
    Ingredient(
        "prefetch",
        lambda ds, a: ds.prefetch(a["size"]),
        draw=drawing(size=st.sampled_from([-1, 0, 1, 3])),
    ),
    Ingredient(
        "repeat",
        lambda ds, a: ds.repeat(a["count"]),
        lambda p, a: p.elements * a["count"],
        drawing(count=st.integers(0, 3)),
    ),
    Ingredient("snapshot", lambda ds, _: ds.snapshot(new_folder()), fits=tensors),
    Ingredient(
        "with_options",
        lambda ds, a: ds.with_options(with_policy(a["policy"])),
        draw=drawing(policy=st.sampled_from(["AUTO", "DATA", "OFF"])),
    ),
)
"""Ops that give the elements as they are."""


# ----------------------------------------------------------------------------
# Ops that change the order.
# ----------------------------------------------------------------------------


_SEED = {"seed": st.one_of(st.none(), st.integers(-2, 9)), "again": st.sampled_from([None, True, False, False])}


def _settled_shuffle(a: OpArguments) -> bool:
    return a.get("buffer") == 1 or (a["seed"] is not None and a["again"] is False)


def model_shuffle(p: Pipeline, a: OpArguments, seen: list[Any]) -> list[Any]:
    """The elements that were seen, if `shuffle` may have put them in this order."""
    return checked_shuffle(p.elements, seen, a.get("buffer")) if p.exact else seen


def _global_fits(p: Pipeline) -> bool:
    node = p.build().node
    n = node.cardinality
    return n == 0 or (n > 0 and (node.random_access or node.start_at(0, 0) is not None))


SHUFFLING: tuple[Ingredient, ...] = (
    Ingredient(
        "global_shuffle",
        lambda ds, a: ds.global_shuffle(a["seed"], a["again"]),
        model_shuffle,
        drawing(**_SEED),
        _global_fits,
        weight=2,
        settled=_settled_shuffle,
    ),
    Ingredient(
        "shuffle",
        lambda ds, a: ds.shuffle(a["buffer"], a["seed"], a["again"]),
        model_shuffle,
        drawing(buffer=st.sampled_from([1, 2, 3, 5, 8, 30, 100]), **_SEED),
        settled=_settled_shuffle,
    ),
)
"""Ops that change the order."""
