# SPDX-License-Identifier: Apache-2.0
"""Ops of random pipelines: what each does to a dataset, and, in plain Python, to a list."""

from collections.abc import Callable
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.nest import flatten
from distinput.core.spec import TensorSpec
from distinput.data.dataset import Dataset
from distinput.data.experimental import assert_cardinality, auto_shard_dataset, rebatch_for_worker
from distinput.formats.example_encoding import encode_example
from distinput.formats.features import FixedLenFeature, VarLenFeature
from distinput.ops.batch import Batch
from distinput.ops.bucket_by_sequence_length import BucketBySequenceLength
from distinput.ops.cache import Cache
from distinput.ops.choose import Choose, DrawByWeights
from distinput.ops.choose import Draw as DrawNumbers
from distinput.ops.concatenate import Concatenate
from distinput.ops.copied import Copied
from distinput.ops.filter import Filter, TakeWhile
from distinput.ops.global_shuffle import GlobalShuffle
from distinput.ops.group_by_window import GroupByWindow
from distinput.ops.identity import AssertCardinality, WithOptions
from distinput.ops.ignore_errors import IgnoreErrors
from distinput.ops.interleave import FlatMap, Interleave, default_cycle
from distinput.ops.map import FusedMap, Map
from distinput.ops.map_rows import FusedMapRows, MapRows
from distinput.ops.own_rows import OwnPieces, OwnRows, OwnShares
from distinput.ops.padded_batch import PaddedBatch
from distinput.ops.parse_example import ParseExample
from distinput.ops.prefetch import Prefetch
from distinput.ops.range import Range
from distinput.ops.rebatch import LegacyRebatch, Rebatch
from distinput.ops.repeat import Repeat
from distinput.ops.scan import Scan
from distinput.ops.shard import Shard
from distinput.ops.shard_batches import ShardBatches
from distinput.ops.shuffle import Shuffle
from distinput.ops.slices import Slices, SlicesInTurn
from distinput.ops.take import Skip, Take
from distinput.ops.unbatch import Unbatch
from distinput.ops.unique import Unique
from distinput.ops.window import Window
from distinput.ops.zip import Zip
from distinput.plan.options import AutoShardPolicy, Options
from distinput.testing.elements import exact
from distinput.testing.functions import MAPS, ROW_MAPS, SIGNATURES, Point, applied, digest, length, predicate, whole
from distinput.testing.pipeline import Draw, Ingredient, Pipeline
from distinput.testing.shuffles import checked_shuffle
from distinput.testing.sources import SOURCES, interleaved

__all__ = ["OPS"]

Arguments = dict[str, Any]

_SMALL = st.integers(1, 5)
_COUNTS = st.sampled_from([3, 1, 2, 5, 8, 13, 0, -1])
_PARALLEL = st.sampled_from([None, None, None, 1, 2, -1])


def nothing(_: Draw, __: Pipeline) -> Arguments:
    """No argument."""
    return {}


def _unchanged(p: Pipeline, _: Arguments) -> list[Any]:
    return p.elements


# --- one element to one element


def _model_map(p: Pipeline, a: Arguments) -> list[Any]:
    return [applied(MAPS[a["function"]], element) for element in p.elements]


def _build_map(ds: Dataset, a: Arguments) -> Dataset:
    # Which shapes a function can give is guessed from made-up elements; these four are there to give many.
    signature = SIGNATURES.get(a["function"])
    return ds.map(MAPS[a["function"]], num_parallel_calls=a["parallel"], output_signature=signature)


def _build_rows(ds: Dataset, a: Arguments) -> Dataset:
    return ds.map_rows(ROW_MAPS[a["function"]])


def _model_rows(p: Pipeline, a: Arguments) -> list[Any]:
    return [applied(ROW_MAPS[a["function"]], element) for element in p.elements]


def _scanned(state: Any, element: Any) -> Any:
    total, text = state["total"], state["text"]
    total = total + np.int64(digest(element))
    return {"total": total, "text": (text + b"%d" % (total % 10))[-3:]}, (total, element)


_SCAN_START = {"total": np.int64(5), "text": b""}


def _model_scan(p: Pipeline, _: Arguments) -> list[Any]:
    state: Any = _SCAN_START
    given = []
    for element in p.elements:
        state, output = _scanned(state, element)
        given.append(output)
    return given


_FEATURES = {"n": FixedLenFeature([2], "int64"), "v": VarLenFeature("float32"), "s": FixedLenFeature([], "string")}


def _encoded(*args: Any) -> bytes:
    number = digest(*args)
    return encode_example({"n": [number, 1], "v": [number / 2] * (number % 3), "s": b"t%d" % number})


def _parsed(element: Any) -> Any:
    number = applied(digest, element)
    values = np.full(number % 3, number / 2, np.float32)
    return {"n": np.array([number, 1]), "v": values, "s": b"t%d" % number}


def _serializable(p: Pipeline) -> bool:
    return p.tensors


# --- which elements


def _predicate(a: Arguments) -> Callable[..., Any]:
    return predicate(a["modulus"], a["rest"])


def _draw_predicate(draw: Draw, _: Pipeline) -> Arguments:
    modulus = draw(st.integers(1, 6))
    return {"modulus": modulus, "rest": draw(st.integers(0, modulus))}


def _model_take_while(p: Pipeline, a: Arguments) -> list[Any]:
    given = []
    for element in p.elements:
        if not applied(_predicate(a), element):
            break
        given.append(element)
    return given


def _model_unique(p: Pipeline, _: Arguments) -> list[Any]:
    given, seen = [], set()
    for element in p.elements:
        if exact(element) not in seen:
            seen.add(exact(element))
            given.append(element)
    return given


def _unique_fits(p: Pipeline) -> bool:
    return p.tensors and len(p.leaves) == 1 and p.leaves[0].dtype in (np.int32, np.int64, np.dtype(object))


def _model_take(p: Pipeline, a: Arguments) -> list[Any]:
    return p.elements if a["count"] < 0 else p.elements[: a["count"]]


def _model_skip(p: Pipeline, a: Arguments) -> list[Any]:
    return [] if a["count"] < 0 else p.elements[a["count"] :]


def _draw_shard(draw: Draw, _: Pipeline) -> Arguments:
    shards = draw(_SMALL)
    return {"shards": shards, "index": draw(st.integers(0, shards - 1))}


# --- groups of elements


def _stacked(p: Pipeline, elements: list[Any]) -> Any:
    """Elements of equal shapes as one, with a first axis."""
    return p.spec.structure.build([_stack(list(leaves)) for leaves in zip(*map(p.flat, elements), strict=True)])


def _stack(leaves: list[Any]) -> Any:
    if isinstance(leaves[0], bytes) or leaves[0].dtype == object:
        made = np.empty((len(leaves), *getattr(leaves[0], "shape", ())), object)
        for index, leaf in enumerate(leaves):
            made[index] = leaf
        return made
    return np.stack(leaves)


def _groups(elements: list[Any], size: int, *, drop: bool) -> list[list[Any]]:
    groups = [elements[i : i + size] for i in range(0, len(elements), size)]
    return [group for group in groups if len(group) == size] if drop else groups


def _draw_batch(draw: Draw, _: Pipeline) -> Arguments:
    return {"size": draw(_SMALL), "drop": draw(st.booleans()), "parallel": draw(_PARALLEL)}


def _build_batch(ds: Dataset, a: Arguments) -> Dataset:
    return ds.batch(a["size"], drop_remainder=a["drop"], num_parallel_calls=a["parallel"])


def _model_batch(p: Pipeline, a: Arguments) -> list[Any]:
    return [_stacked(p, group) for group in _groups(p.elements, a["size"], drop=a["drop"])]


def _draw_padded(draw: Draw, p: Pipeline) -> Arguments:
    one = len({leaf.dtype for leaf in p.leaves}) == 1 and p.leaves[0].dtype.kind in "if"
    return {
        "size": draw(_SMALL),
        "drop": draw(st.booleans()),
        "fill": draw(st.sampled_from([None, 7])) if one else None,
        "wide": draw(st.booleans()),
    }


_WIDE = 60


def _padded_shapes(leaves: tuple[TensorSpec, ...], a: Arguments) -> list[Any]:
    width = _WIDE if a["wide"] else None
    return [tuple([width if d is None else d for d in leaf.shape or ()]) for leaf in leaves]


def _build_padded(ds: Dataset, a: Arguments) -> Dataset:
    spec = ds.node.spec
    shapes = spec.structure.build(_padded_shapes(spec.tensors("pipelines"), a)) if a["wide"] else None
    return ds.padded_batch(a["size"], shapes, a["fill"], drop_remainder=a["drop"])


def _pad(leaf: Any, shape: tuple[int, ...], fill: Any) -> Any:
    if isinstance(leaf, bytes) or not leaf.shape:
        return leaf
    missing = b"" if leaf.dtype == object else leaf.dtype.type(fill or 0)
    made = np.full(shape, missing, leaf.dtype)
    made[tuple(slice(0, size) for size in leaf.shape)] = leaf
    return made


def _model_padded(p: Pipeline, a: Arguments) -> list[Any]:
    given = []
    for group in _groups(p.elements, a["size"], drop=a["drop"]):
        columns = []
        for leaves, wanted in zip(zip(*map(p.flat, group), strict=True), _padded_shapes(p.leaves, a), strict=True):
            dims = [max(getattr(leaf, "shape", ())[axis] for leaf in leaves) for axis in range(len(wanted))]
            shape = tuple(dim if want is None else want for dim, want in zip(dims, wanted, strict=True))
            columns.append(_stack([_pad(leaf, shape, a["fill"]) for leaf in leaves]))
        given.append(p.spec.structure.build(columns))
    return given


def _padded_fits(p: Pipeline) -> bool:
    return p.ranked and all(
        dim < _WIDE for element in p.elements for leaf in p.flat(element) for dim in getattr(leaf, "shape", ())
    )


def _rows(p: Pipeline, element: Any) -> list[list[Any]]:
    """The leaves of each row of a batch."""
    leaves = p.flat(element)
    return [[leaf[i] for leaf in leaves] for i in range(len(leaves[0]))]


def _model_unbatch(p: Pipeline, _: Arguments) -> list[Any]:
    return p.like([row for element in p.elements for row in _rows(p, element)])


def _draw_rebatch(draw: Draw, _: Pipeline) -> Arguments:
    sizes = draw(st.one_of(_SMALL, st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any)))
    return {"sizes": sizes, "drop": draw(st.booleans())}


def _model_rebatch(p: Pipeline, a: Arguments) -> list[Any]:
    rows = [row for element in p.elements for row in _rows(p, element)]
    sizes = a["sizes"] if isinstance(a["sizes"], list) else [a["sizes"]]
    given: list[Any] = []
    turn = 0
    while True:
        size = sizes[turn % len(sizes)]
        turn += 1
        if size == 0:
            given.append(p.spec.structure.build([_no_rows(leaf) for leaf in p.leaves]))
            continue
        if not rows or (len(rows) < size and a["drop"]):
            return given
        part, rows = rows[:size], rows[size:]
        given.append(p.spec.structure.build([_stack(list(leaves)) for leaves in zip(*part, strict=True)]))
        if len(part) < size:
            return given


def _no_rows(leaf: TensorSpec) -> Any:
    return np.empty((0, *[d or 0 for d in (leaf.shape or ())[1:]]), leaf.dtype)


def _model_legacy(p: Pipeline, a: Arguments) -> list[Any]:
    given = []
    for element in p.elements:
        leaves = p.flat(element)
        for piece in range(a["pieces"]):
            sizes = [-(-len(leaf) // a["pieces"]) for leaf in leaves]
            given.append([leaf[piece * s : (piece + 1) * s] for leaf, s in zip(leaves, sizes, strict=True)])
    return p.like(given)


def _draw_share(draw: Draw, _: Pipeline) -> Arguments:
    shards = draw(st.integers(1, 3))
    return {"shards": shards, "index": draw(st.integers(0, shards - 1))}


def _model_share(p: Pipeline, a: Arguments) -> list[Any]:
    given = []
    for element in p.elements:
        leaves = []
        for leaf in p.flat(element):
            each, more = divmod(len(leaf), a["shards"])
            begin = each * a["index"] + min(more, a["index"])
            leaves.append(leaf[begin : begin + each + (a["index"] < more)])
        given.append(leaves)
    return p.like(given)


def _draw_worker(draw: Draw, _: Pipeline) -> Arguments:
    workers = draw(st.integers(1, 3))
    return {
        "size": draw(_SMALL),
        "drop": draw(st.booleans()),
        "workers": workers,
        "replicas": draw(st.integers(1, 3)),
        "worker": draw(st.integers(0, workers - 1)),
    }


def _build_worker(ds: Dataset, a: Arguments) -> Dataset:
    batches = ds.batch(a["size"], drop_remainder=a["drop"]).with_options(_options({"policy": "DATA"}))
    cut = rebatch_for_worker(batches, a["workers"], a["replicas"], a["worker"])
    return auto_shard_dataset(cut, a["workers"], a["worker"], a["workers"] * a["replicas"])


def _model_worker(p: Pipeline, a: Arguments) -> list[Any]:
    """Each batch in pieces of equal size, rounded up; piece j goes to worker j modulo the number of workers."""
    pieces = a["workers"] * a["replicas"]
    given = []
    for group in _groups(p.elements, a["size"], drop=a["drop"]):
        rows = -(-len(group) // pieces)
        leaves = p.flat(_stacked(p, group))
        mine = [slice(piece * rows, (piece + 1) * rows) for piece in range(a["worker"], pieces, a["workers"])]
        given += [[leaf[piece] for leaf in leaves] for piece in mine]
    return p.like(given)


def _draw_window(draw: Draw, _: Pipeline) -> Arguments:
    return {
        "size": draw(_SMALL),
        "shift": draw(st.one_of(st.none(), _SMALL)),
        "stride": draw(st.integers(1, 3)),
        "drop": draw(st.booleans()),
    }


def _model_window(p: Pipeline, a: Arguments) -> list[Any]:
    given = []
    needed = 1 + (a["size"] - 1) * a["stride"]
    for begin in range(0, len(p.elements), a["shift"] or a["size"]):
        held = p.elements[begin : begin + needed : a["stride"]]
        if len(held) == a["size"] or not a["drop"]:
            given.append(p.spec.structure.build([list(leaves) for leaves in zip(*map(p.flat, held), strict=True)]))
    return given


# --- several datasets


_VARIANTS = st.sampled_from(["same", "skip", "take", "none", "fresh"])


def _variant(ds: Dataset, word: str, recipe: Callable[[], Dataset]) -> Dataset:
    """A dataset of the same kind of elements."""
    if word == "fresh":
        return recipe()
    return {"same": ds, "skip": ds.skip(2), "take": ds.take(3), "none": ds.take(0)}[word]


def _variant_model(elements: list[Any], word: str) -> list[Any]:
    return {"same": elements, "skip": elements[2:], "take": elements[:3], "none": [], "fresh": elements}[word]


def _copied(ds: Dataset) -> Dataset:
    return Dataset(ds.node)


def _draw_concatenate(draw: Draw, _: Pipeline) -> Arguments:
    return {"other": draw(_VARIANTS), "before": draw(st.booleans())}


def _build_concatenate(ds: Dataset, a: Arguments) -> Dataset:
    other = _variant(ds, a["other"], lambda: _copied(ds))
    first, second = (other, ds) if a["before"] else (ds, other)
    return Dataset(Concatenate(first.node, second.node))


def _model_concatenate(p: Pipeline, a: Arguments) -> list[Any]:
    other = _variant_model(p.elements, a["other"])
    return [*other, *p.elements] if a["before"] else [*p.elements, *other]


_NESTS = st.sampled_from(["tuple", "dict", "point", "deep"])


def _nested(word: str, first: Any, second: Any) -> Any:
    return {
        "tuple": (first, second),
        "dict": {"z": first, "a": second},
        "point": Point(first, second),
        "deep": (first, {"only": (second,)}),
    }[word]


def _draw_zip(draw: Draw, _: Pipeline) -> Arguments:
    source = draw(st.sampled_from(SOURCES))
    return {"nest": draw(_NESTS), "other": [source.name, source.draw(draw, None)], "first": draw(st.booleans())}


def _source(a: Arguments) -> Ingredient:
    return next(source for source in SOURCES if source.name == a["other"][0])


def _build_zip(ds: Dataset, a: Arguments) -> Dataset:
    other = _source(a).build(None, a["other"][1])
    return Dataset.zip(_nested(a["nest"], other, ds) if a["first"] else _nested(a["nest"], ds, other))


def _model_zip(p: Pipeline, a: Arguments, seen: list[Any]) -> list[Any]:
    source, arguments = _source(a), a["other"][1]
    if source.observed and not source.settled(arguments):
        return seen
    given = source.model(None, arguments, list(source.build(None, arguments))) if source.observed else None
    others = source.model(None, arguments) if given is None else given
    if not p.exact:
        return seen
    pairs = zip(others, p.elements, strict=False) if a["first"] else zip(p.elements, others, strict=False)
    return _checked([_nested(a["nest"], x, y) for x, y in pairs], seen, "zip")


def _settled_zip(a: Arguments) -> bool:
    return not _source(a).observed or _source(a).settled(a["other"][1])


def _checked(expected: list[Any], seen: list[Any], op: str) -> list[Any]:
    if [exact(e) for e in expected] != [exact(e) for e in seen]:
        raise AssertionError(f"{op}: gave {seen!r}, expected {expected!r}")
    return expected


def _model_enumerate(p: Pipeline, a: Arguments) -> list[Any]:
    return [(np.int64(a["start"] + i), element) for i, element in enumerate(p.elements)]


def _draw_choose(draw: Draw, _: Pipeline) -> Arguments:
    return {
        "others": draw(st.lists(_VARIANTS, max_size=2)),
        "choices": draw(st.lists(st.integers(0, 2), max_size=30)),
        "stop": draw(st.booleans()),
    }


def _choices(a: Arguments) -> list[int]:
    return [choice % (1 + len(a["others"])) for choice in a["choices"]]


def _sources_of(ds: Dataset, a: Arguments) -> list[Dataset]:
    return [ds, *[_variant(ds, word, lambda: _copied(ds)) for word in a["others"]]]


def _build_choose(ds: Dataset, a: Arguments) -> Dataset:
    selector = Dataset.from_tensor_slices(np.array(_choices(a), np.int64))
    return Dataset.choose_from_datasets(_sources_of(ds, a), selector, stop_on_empty_dataset=a["stop"])


def _model_choose(p: Pipeline, a: Arguments) -> list[Any]:
    queues = [list(p.elements), *[list(_variant_model(p.elements, word)) for word in a["others"]]]
    given = []
    for choice in _choices(a):
        if queues[choice]:
            given.append(queues[choice].pop(0))
        elif a["stop"]:
            break
    return given


def _draw_sample(draw: Draw, _: Pipeline) -> Arguments:
    return {
        "others": draw(st.lists(_VARIANTS, min_size=1, max_size=2)),
        "weights": draw(st.sampled_from([None, [1.0, 2.0, 0.5], [0.0, 1.0, 1.0]])),
        "seed": draw(st.integers(0, 9)),
        "stop": draw(st.booleans()),
        "each": draw(st.booleans()),
    }


def _build_sample(ds: Dataset, a: Arguments) -> Dataset:
    weights: Any = None if a["weights"] is None else a["weights"][: 1 + len(a["others"])]
    if a.get("each") and weights is not None and all(weights):  # where one is 0, endless weights never use it up
        weights = Dataset.from_tensors(np.array(weights)).repeat()
    return Dataset.sample_from_datasets(_sources_of(ds, a), weights, a["seed"], stop_on_empty_dataset=a["stop"])


def _model_sample(p: Pipeline, a: Arguments, seen: list[Any]) -> list[Any]:
    """Each dataset in its own order, and all of them to their ends unless an end stops the rest."""
    if not p.exact:
        return seen
    queues = [list(p.elements), *[list(_variant_model(p.elements, word)) for word in a["others"]]]
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


# --- again, kept, ahead


def _build_endless(ds: Dataset, a: Arguments) -> Dataset:
    return ds.repeat(None if a["none"] else -1).take(a["count"])


def _model_endless(p: Pipeline, a: Arguments) -> list[Any]:
    if not p.elements:
        return []
    count: int = a["count"]
    return (p.elements * (count // len(p.elements) + 1))[:count]


def _options(a: Arguments) -> Options:
    options = Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[a["policy"]]
    return options


# --- random order


def _draw_shuffle(draw: Draw, _: Pipeline) -> Arguments:
    return {
        "buffer": draw(st.sampled_from([1, 2, 3, 5, 8, 30, 100])),
        "seed": draw(st.one_of(st.none(), st.integers(-2, 9))),
        "again": draw(st.sampled_from([None, True, False, False])),
    }


def _settled_shuffle(a: Arguments) -> bool:
    return a.get("buffer") == 1 or (a["seed"] is not None and a["again"] is False)


def _model_shuffle(p: Pipeline, a: Arguments, seen: list[Any]) -> list[Any]:
    return checked_shuffle(p.elements, seen, a.get("buffer")) if p.exact else seen


def _global_fits(p: Pipeline) -> bool:
    node = p.build().node
    n = node.cardinality
    return n == 0 or (n > 0 and (node.random_access or node.start_at(0, 0) is not None))


# --- datasets from elements


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


def _draw_interleave(draw: Draw, p: Pipeline) -> Arguments:
    cycle = draw(st.sampled_from([None, 1, 2, 3, 5]))
    return {
        "function": draw(st.sampled_from(_inner_words(p))),
        "cycle": cycle,
        "block": draw(st.sampled_from([None, 1, 2, 3])),
        "parallel": draw(st.sampled_from([None, None, -1, 1])),
    }


def _build_interleave(ds: Dataset, a: Arguments) -> Dataset:
    return ds.interleave(_inner(a["function"]), a["cycle"], a["block"], num_parallel_calls=a["parallel"])


def _model_interleave(p: Pipeline, a: Arguments) -> list[Any]:
    return interleaved(_inner_lists(p, a["function"]), a["cycle"] or default_cycle(a["parallel"]), a["block"] or 1)


# --- groups by key


def _key(modulus: int) -> Callable[..., Any]:
    return lambda *args: np.int64(digest(*args) % modulus - 1)


_REDUCES = ("same", "batch", "take", "number")


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
        return [_stacked(p, group) for group in _groups(window, size, drop=False)]
    if word == "take":
        return window[:1]
    if word == "number":
        return [(np.int64(key), np.int64(applied(digest, element))) for element in window]
    return window


def _draw_group(draw: Draw, p: Pipeline) -> Arguments:
    words = [word for word in _REDUCES if word != "batch" or p.stackable]
    return {
        "modulus": draw(st.integers(1, 4)),
        "window": draw(_SMALL),
        "by_key": draw(st.booleans()),
        "reduce": draw(st.sampled_from(words)),
        "size": draw(_SMALL),
    }


def _window_size(a: Arguments, key: int) -> int:
    return int(a["window"] + (key % 2 if a["by_key"] else 0))


def _build_group(ds: Dataset, a: Arguments) -> Dataset:
    sizes: Arguments = {"window_size": a["window"]}
    if a["by_key"]:
        sizes = {"window_size_func": lambda key: np.int64(_window_size(a, int(key)))}
    return ds.group_by_window(_key(a["modulus"]), _reduced(a["reduce"], a["size"]), **sizes)


def _model_group(p: Pipeline, a: Arguments) -> list[Any]:
    groups: dict[int, list[Any]] = {}
    given: list[Any] = []
    for element in p.elements:
        key = int(applied(_key(a["modulus"]), element))
        groups.setdefault(key, []).append(element)
        if len(groups[key]) == _window_size(a, key):
            given += _reduced_list(p, a["reduce"], a["size"], key, groups.pop(key))
    for key in sorted(groups):
        given += _reduced_list(p, a["reduce"], a["size"], key, groups[key])
    return given


def _draw_bucket(draw: Draw, p: Pipeline) -> Arguments:
    boundaries = draw(st.lists(st.integers(1, 9), max_size=3, unique=True).map(sorted))
    sizes = draw(st.lists(_SMALL, min_size=len(boundaries) + 1, max_size=len(boundaries) + 1))
    return {
        "boundaries": boundaries,
        "sizes": sizes,
        "drop": draw(st.booleans()),
        "plain": draw(st.booleans()) if p.stackable else False,
    }


def _length(*args: Any) -> Any:
    return np.int64(digest(*args) % 10)


def _build_bucket(ds: Dataset, a: Arguments) -> Dataset:
    return ds.bucket_by_sequence_length(
        _length, a["boundaries"], a["sizes"], no_padding=a["plain"], drop_remainder=a["drop"]
    )


def _model_bucket(p: Pipeline, a: Arguments) -> list[Any]:
    def batches(bucket: int, group: list[Any]) -> list[Any]:
        held = Pipeline((), group, True, p.table)
        held.__dict__["spec"] = p.spec
        arguments = {"size": a["sizes"][bucket], "drop": a["drop"], "fill": None, "wide": False}
        return (_model_batch if a["plain"] else _model_padded)(held, arguments)

    groups: dict[int, list[Any]] = {}
    given: list[Any] = []
    for element in p.elements:
        bucket = sum(boundary <= applied(_length, element) for boundary in a["boundaries"])
        groups.setdefault(bucket, []).append(element)
        if len(groups[bucket]) == a["sizes"][bucket]:
            given += batches(bucket, groups.pop(bucket))
    for bucket in sorted(groups):
        given += batches(bucket, groups[bucket])
    return given


# --- the table


def _tensors(p: Pipeline) -> bool:
    return p.tensors


def _counted(draw: Draw, _: Pipeline) -> Arguments:
    return {"count": draw(_COUNTS)}


OPS: tuple[Ingredient, ...] = (
    Ingredient("batch", (Batch,), _build_batch, _model_batch, _draw_batch, lambda p: p.stackable, weight=2),
    Ingredient(
        "assert_cardinality",
        (AssertCardinality,),
        lambda ds, a: ds.apply(assert_cardinality(a["count"])),
        _unchanged,
        lambda _, p: {"count": len(p.elements)},
        lambda p: p.exact,
    ),
    Ingredient(
        "bucket_by_sequence_length",
        (BucketBySequenceLength,),
        _build_bucket,
        _model_bucket,
        _draw_bucket,
        lambda p: p.ranked,
    ),
    Ingredient("cache", (Cache,), lambda ds, _: ds.cache(), _unchanged, nothing),
    Ingredient("choose", (Choose,), _build_choose, _model_choose, _draw_choose),
    Ingredient("concatenate", (Concatenate, SlicesInTurn), _build_concatenate, _model_concatenate, _draw_concatenate),
    Ingredient("copied", (Copied,), lambda ds, _: ds.copied(), _unchanged, nothing),
    Ingredient(
        "endless",
        (Repeat,),
        _build_endless,
        _model_endless,
        lambda draw, _: {"none": draw(st.booleans()), "count": draw(st.integers(0, 30))},
        # As TensorFlow says, an endless repeat is infinite unless its input is known to be empty.
        lambda p: bool(p.elements) or p.build().cardinality() == 0,
    ),
    Ingredient(
        "enumerate",
        (Zip, Range),
        lambda ds, a: ds.enumerate(a["start"]),
        _model_enumerate,
        lambda draw, _: {"start": draw(st.integers(-2, 9))},
    ),
    Ingredient(
        "filter",
        (Filter,),
        lambda ds, a: ds.filter(_predicate(a)),
        lambda p, a: [element for element in p.elements if applied(_predicate(a), element)],
        _draw_predicate,
    ),
    Ingredient(
        "flat_map",
        (FlatMap,),
        lambda ds, a: ds.flat_map(_inner(a["function"])),
        lambda p, a: [row for rows in _inner_lists(p, a["function"]) for row in rows],
        lambda draw, p: {"function": draw(st.sampled_from(_inner_words(p)))},
    ),
    Ingredient(
        "global_shuffle",
        (GlobalShuffle,),
        lambda ds, a: ds.global_shuffle(a["seed"], a["again"]),
        _model_shuffle,
        lambda draw, p: {k: v for k, v in _draw_shuffle(draw, p).items() if k != "buffer"},
        _global_fits,
        weight=2,
        observed=True,
        settled=_settled_shuffle,
    ),
    Ingredient("group_by_window", (GroupByWindow,), _build_group, _model_group, _draw_group, _tensors),
    Ingredient("interleave", (Interleave,), _build_interleave, _model_interleave, _draw_interleave),
    Ingredient(
        "legacy_rebatch",
        (LegacyRebatch,),
        lambda ds, a: Dataset(LegacyRebatch(ds.node, a["pieces"])),
        _model_legacy,
        lambda draw, _: {"pieces": draw(_SMALL)},
        lambda p: p.regular,
        weight=5,
    ),
    Ingredient(
        "map",
        (FusedMap, Map),
        _build_map,
        _model_map,
        lambda draw, _: {"function": draw(st.sampled_from(sorted(MAPS))), "parallel": draw(_PARALLEL)},
        _tensors,
    ),
    Ingredient(
        "map_rows",
        (FusedMapRows, MapRows),
        _build_rows,
        _model_rows,
        lambda draw, _: {"function": draw(st.sampled_from(sorted(ROW_MAPS)))},
        lambda p: p.static,
    ),
    Ingredient("padded_batch", (PaddedBatch,), _build_padded, _model_padded, _draw_padded, _padded_fits),
    Ingredient(
        "parse_example",
        (ParseExample,),
        lambda ds, _: ds.map(_encoded).parse_example(_FEATURES),
        lambda p, _: [_parsed(element) for element in p.elements],
        nothing,
        _serializable,
    ),
    Ingredient(
        "prefetch",
        (Prefetch,),
        lambda ds, a: ds.prefetch(a["size"]),
        _unchanged,
        lambda draw, _: {"size": draw(st.sampled_from([-1, 0, 1, 3]))},
    ),
    Ingredient(
        "rebatch",
        (Rebatch,),
        lambda ds, a: ds.rebatch(a["sizes"], drop_remainder=a["drop"]),
        _model_rebatch,
        _draw_rebatch,
        lambda p: p.regular,
        weight=5,
    ),
    Ingredient(
        "repeat",
        (Repeat,),
        lambda ds, a: ds.repeat(a["count"]),
        lambda p, a: p.elements * a["count"],
        lambda draw, _: {"count": draw(st.integers(0, 3))},
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
    Ingredient(
        "scan",
        (Scan,),
        lambda ds, _: ds.scan(_SCAN_START, _scanned),
        _model_scan,
        nothing,
        _tensors,
    ),
    Ingredient(
        "shard",
        (Shard,),
        lambda ds, a: ds._followed_by(Shard(ds.node, a["shards"], a["index"])),  # which warns of no seed that is drawn
        lambda p, a: p.elements[a["index"] :: a["shards"]],
        _draw_shard,
    ),
    Ingredient(
        "shard_batches",
        (ShardBatches, OwnShares),
        lambda ds, a: ds._followed_by(ShardBatches(ds.node, a["shards"], a["index"])),
        _model_share,
        _draw_share,
        lambda p: p.batched,
        weight=3,
    ),
    Ingredient(
        "shuffle",
        (Shuffle,),
        lambda ds, a: ds.shuffle(a["buffer"], a["seed"], a["again"]),
        _model_shuffle,
        _draw_shuffle,
        observed=True,
        settled=_settled_shuffle,
    ),
    Ingredient("skip", (Skip,), lambda ds, a: ds.skip(a["count"]), _model_skip, _counted),
    Ingredient("take", (Take,), lambda ds, a: ds.take(a["count"]), _model_take, _counted),
    Ingredient(
        "take_while", (TakeWhile,), lambda ds, a: ds.take_while(_predicate(a)), _model_take_while, _draw_predicate
    ),
    Ingredient(
        "unbatch", (Unbatch,), lambda ds, _: ds.unbatch(), _model_unbatch, nothing, lambda p: p.batched, weight=5
    ),
    Ingredient("ignore_errors", (IgnoreErrors,), lambda ds, _: ds.ignore_errors(), lambda p, _: p.elements, nothing),
    Ingredient("unique", (Unique,), lambda ds, _: ds.unique(), _model_unique, nothing, _unique_fits),
    Ingredient(
        "window",
        (Window, Slices),
        lambda ds, a: ds.window(a["size"], a["shift"], a["stride"], a["drop"]),
        _model_window,
        _draw_window,
        _tensors,
    ),
    Ingredient(
        "with_options",
        (WithOptions,),
        lambda ds, a: ds.with_options(_options(a)),
        _unchanged,
        lambda draw, _: {"policy": draw(st.sampled_from(["AUTO", "DATA", "OFF"]))},
    ),
    Ingredient("worker", (OwnPieces, OwnRows), _build_worker, _model_worker, _draw_worker, lambda p: p.stackable),
    Ingredient("zip", (Zip,), _build_zip, _model_zip, _draw_zip, observed=True, settled=_settled_zip),
)
"""What random pipelines go through."""
