# SPDX-License-Identifier: Apache-2.0
"""Ops that stack elements, cut them again, or pack them."""

from collections.abc import Sequence
from itertools import cycle
from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.data.experimental import auto_shard_dataset, rebatch_for_worker
from distinput.ops.rebatch import LegacyRebatch
from distinput.ops.shard_batches import ShardBatches
from distinput.testing.pipeline import (
    EITHER,
    PARALLEL,
    SMALL,
    DrawFrom,
    Ingredient,
    OpArguments,
    Pipeline,
    applied,
    drawing,
    token_count,
    with_policy,
)
from distinput.values.leaves import STRING
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.sparse_tensor import SparseTensor
from distinput.values.spec import Spec, TensorSpec

# ----------------------------------------------------------------------------
# Groups of elements as one element, stacked or padded: what the batching ops must give, in plain NumPy.
# ----------------------------------------------------------------------------


def cut(elements: list[Any], size: int, *, drop: bool) -> list[list[Any]]:
    """Elements in groups of `size`; the last one may be shorter, and is left out then if `drop`."""
    groups = [elements[i : i + size] for i in range(0, len(elements), size)]
    return [group for group in groups if len(group) == size] if drop else groups


def stack(leaves: list[Any]) -> Any:
    """Leaves of one shape as one array with a first axis: [...] of each -> [n, ...]."""
    if isinstance(leaves[0], bytes) or leaves[0].dtype == object:
        made = np.empty((len(leaves), *getattr(leaves[0], "shape", ())), object)
        for index, leaf in enumerate(leaves):
            made[index] = leaf
        return made
    return np.stack(leaves)


def ragged_stack(leaves: list[Any], ragged_rank: int, spec: TensorSpec) -> RaggedTensor:
    """Arrays or ragged tensors as the rows of one ragged tensor: made of lists.

    Args:
      leaves: the rows.
      ragged_rank: of the whole.
      spec: of a row.
    """
    rows: list[Any] = [leaf.to_list() if isinstance(leaf, RaggedTensor) else list(leaf) for leaf in leaves]
    splits = []
    for _ in range(ragged_rank):
        splits.append(np.cumsum([0, *map(len, rows)]))
        rows = [item for row in rows for item in row]
    inner = tuple([d or 0 for d in (spec.shape or ())[ragged_rank:]])
    if rows and spec.dtype != object:
        inner = np.shape(rows[0])  # where the spec does not know it
    elif leaves and isinstance(leaves[0], RaggedTensor):
        inner = leaves[0].flat_values.shape[1:]
    values: Any = np.empty((len(rows), *inner), spec.dtype)
    for place, item in enumerate(rows):
        values[place] = item
    for each in reversed(splits):
        values = RaggedTensor.from_row_splits(values, each)
    return values  # type: ignore[no-any-return]


def stacked_leaf(leaves: list[Any], spec: TensorSpec) -> Any:
    """Leaves of a spec as one, with a first axis."""
    return stack(leaves) if spec.ragged_rank is None else ragged_stack(leaves, spec.ragged_rank + 1, spec)


def stacked(spec: Spec, elements: list[Any]) -> Any:
    """Elements as one, with a first axis."""
    columns = zip(*map(spec.structure.flatten, elements), strict=True)
    made = zip(columns, spec.tensors("pipelines"), strict=True)
    return spec.structure.build([stacked_leaf(list(leaves), leaf) for leaves, leaf in made])


def padded(spec: Spec, elements: list[Any], fill: Any = None, width: int | None = None) -> Any:
    """Elements as one, each leaf padded to the largest of the group.

    Args:
      spec: what an element looks like.
      elements: at least one.
      fill: what to pad with; zeros or empty text when None.
      width: how large every unknown dimension becomes; None: the largest of the group.
    """
    columns = []
    for leaves, leaf_spec in zip(
        zip(*map(spec.structure.flatten, elements), strict=True), spec.tensors("padded"), strict=True
    ):
        arrays = [leaf.to_padded(fill) if isinstance(leaf, RaggedTensor) else leaf for leaf in leaves]
        shape = _padded_shape(arrays, leaf_spec, width)
        columns.append(stack([_pad(array, shape, fill) for array in arrays]))
    return spec.structure.build(columns)


def _padded_shape(leaves: Sequence[Any], spec: TensorSpec, width: int | None) -> tuple[int, ...]:
    wanted = [width if d is None else d for d in spec.shape or ()]
    dims = [max(getattr(leaf, "shape", ())[axis] for leaf in leaves) for axis in range(len(wanted))]
    return tuple([dim if want is None else want for dim, want in zip(dims, wanted, strict=True)])


def _pad(leaf: Any, shape: tuple[int, ...], fill: Any) -> Any:
    if isinstance(leaf, bytes) or not leaf.shape:
        return leaf
    missing = b"" if leaf.dtype == object else leaf.dtype.type(fill or 0)
    made = np.full(shape, missing, leaf.dtype)
    made[tuple(slice(0, size) for size in leaf.shape)] = leaf
    return made


# ----------------------------------------------------------------------------
# Ops that group rows, or take groups of them apart.
# ----------------------------------------------------------------------------


def _draw_padded(draw: DrawFrom, p: Pipeline) -> OpArguments:
    one = len({leaf.dtype for leaf in p.leaves}) == 1 and p.leaves[0].dtype.kind in "if"
    fill = st.sampled_from([None, 7]) if one else st.none()
    return drawing(size=SMALL, drop=EITHER, fill=fill, wide=EITHER)(draw, p)


WIDE = 60
"""A width that no element of a random pipeline reaches."""


def _model_padded(p: Pipeline, a: OpArguments) -> list[Any]:
    width = WIDE if a["wide"] else None
    return [padded(p.spec, group, a["fill"], width) for group in cut(p.elements, a["size"], drop=a["drop"])]


def _build_padded(ds: Dataset, a: OpArguments) -> Dataset:
    spec, shapes = ds.node.spec, None
    if a["wide"]:
        leaves = spec.tensors("pipelines")
        shapes = spec.structure.build([tuple([WIDE if d is None else d for d in leaf.shape or ()]) for leaf in leaves])
    return ds.padded_batch(a["size"], shapes, a["fill"], drop_remainder=a["drop"])


def padded_fits(p: Pipeline) -> bool:
    """Whether elements can be padded to one shape."""
    return p.ranked and all(dim < WIDE for element in p.elements for leaf in p.flat(element) for dim in _dims(leaf))


def _dims(leaf: Any) -> Any:
    return leaf.dense_shape if isinstance(leaf, RaggedTensor) else getattr(leaf, "shape", ())


def _ragged_rank(leaf: TensorSpec) -> int | None:
    """The ragged rank of batches of a leaf, None if they are arrays."""
    if leaf.ragged_rank is not None:
        return leaf.ragged_rank + 1
    unknown = [axis for axis, size in enumerate(leaf.shape or ()) if size is None]
    return unknown[-1] + 1 if unknown else None


def ragged_group(p: Pipeline, group: list[Any]) -> Any:
    """Elements as one, each leaf of which is ragged if dimensions of it are unknown."""
    made = []
    for leaves, leaf in zip(zip(*map(p.flat, group), strict=True), p.leaves, strict=True):
        rank = _ragged_rank(leaf)
        made.append(stack(list(leaves)) if rank is None else ragged_stack(list(leaves), rank, leaf))
    return p.spec.structure.build(made)


def _model_sparse(p: Pipeline, a: OpArguments) -> list[Any]:
    given = []
    for group in cut(p.elements, a["size"], drop=False):
        places = [(row, *place) for row, leaf in enumerate(group) for place in np.ndindex(np.shape(leaf))]
        values = [np.asarray(leaf, p.leaves[0].dtype).reshape(-1).tolist() for leaf in group]
        flat = np.array([item for row in values for item in row], p.leaves[0].dtype)
        largest = np.array([np.shape(leaf) for leaf in group]).max(axis=0).tolist()
        shape = [len(group), *([WIDE] * len(largest) if a["wide"] else largest)]
        indices = np.array(places, np.int64).reshape(-1, len(shape))
        given.append(SparseTensor(indices, flat, np.array(shape, np.int64)))
    return given


def _build_sparse(ds: Dataset, a: OpArguments) -> Dataset:
    (leaf,) = ds.node.spec.tensors("pipelines")
    return ds.sparse_batch(a["size"], [WIDE if a["wide"] else None] * len(leaf.shape or ()))


def _rows(p: Pipeline, element: Any) -> list[list[Any]]:
    """The leaves of each row of a batch."""
    leaves = p.flat(element)
    return [[leaf[i] for leaf in leaves] for i in range(len(leaves[0]))]


def _model_unbatch(p: Pipeline, _: OpArguments) -> list[Any]:
    return p.like([row for element in p.elements for row in _rows(p, element)])


def _model_rebatch(p: Pipeline, a: OpArguments) -> list[Any]:
    rows = [row for element in p.elements for row in _rows(p, element)]
    elements: list[Any] = []
    for size in cycle(a["sizes"] if isinstance(a["sizes"], list) else [a["sizes"]]):
        if size == 0:
            elements.append(p.spec.structure.build([_no_rows(leaf) for leaf in p.leaves]))
            continue
        if not rows or (len(rows) < size and a["drop"]):
            break
        part, rows = rows[:size], rows[size:]
        made = zip(zip(*part, strict=True), p.leaves, strict=True)
        elements.append(p.spec.structure.build([stacked_rows(leaf, list(rows)) for rows, leaf in made]))
        if len(part) < size:
            break
    return elements


def stacked_rows(leaf: TensorSpec, rows: list[Any]) -> Any:
    """Rows of batches of a spec as another batch of it."""
    return ragged_stack(rows, leaf.ragged_rank, leaf.with_shape(leaf.shape[1:])) if leaf.ragged_rank else stack(rows)  # type: ignore[index]


def _no_rows(leaf: TensorSpec) -> Any:
    if leaf.ragged_rank:
        return stacked_rows(leaf, [])
    return np.empty((0, *[d or 0 for d in (leaf.shape or ())[1:]]), leaf.dtype)


def _model_legacy(p: Pipeline, a: OpArguments) -> list[Any]:
    given = []
    for element in p.elements:
        leaves = p.flat(element)
        for piece in range(a["pieces"]):
            sizes = [-(-len(leaf) // a["pieces"]) for leaf in leaves]
            given.append([leaf[piece * s : (piece + 1) * s] for leaf, s in zip(leaves, sizes, strict=True)])
    return p.like(given)


def _draw_share(draw: DrawFrom, _: Pipeline) -> OpArguments:
    shards = draw(st.integers(1, 3))
    return {"shards": shards, "index": draw(st.integers(0, shards - 1))}


def _model_share(p: Pipeline, a: OpArguments) -> list[Any]:
    given = []
    for element in p.elements:
        leaves = []
        for leaf in p.flat(element):
            each, more = divmod(len(leaf), a["shards"])
            begin = each * a["index"] + min(more, a["index"])
            leaves.append(leaf[begin : begin + each + (a["index"] < more)])
        given.append(leaves)
    return p.like(given)


def _draw_worker(draw: DrawFrom, _: Pipeline) -> OpArguments:
    workers = draw(st.integers(1, 3))
    rest = drawing(size=SMALL, drop=EITHER, replicas=st.integers(1, 3), worker=st.integers(0, workers - 1))
    return {"workers": workers, **rest(draw, _)}


def _is_alike_on_workers(p: Pipeline) -> bool:
    """Whether workers make batches of it in the order of a process alone.

    They agree on how many datasets an `interleave` opens that does not say it; a process alone asks its machine.
    """
    return p.stackable and "'cycle': None" not in repr(p.recipe)


def _build_worker(ds: Dataset, a: OpArguments) -> Dataset:
    batches = ds.batch(a["size"], drop_remainder=a["drop"]).with_options(with_policy("DATA"))
    cut = rebatch_for_worker(batches, a["workers"], a["replicas"], a["worker"])
    return auto_shard_dataset(cut, a["workers"], a["worker"], a["workers"] * a["replicas"])


def _model_worker(p: Pipeline, a: OpArguments) -> list[Any]:
    """Each batch in pieces of equal size, rounded up; piece j goes to worker j modulo the number of workers."""
    pieces = a["workers"] * a["replicas"]
    given = []
    for group in cut(p.elements, a["size"], drop=a["drop"]):
        rows = -(-len(group) // pieces)
        leaves = p.flat(stacked(p.spec, group))
        mine = [slice(piece * rows, (piece + 1) * rows) for piece in range(a["worker"], pieces, a["workers"])]
        given += [[leaf[piece] for leaf in leaves] for piece in mine]
    return p.like(given)


def _model_window(p: Pipeline, a: OpArguments) -> list[Any]:
    given = []
    needed = 1 + (a["size"] - 1) * a["stride"]
    for begin in range(0, len(p.elements), a["shift"] or a["size"]):
        held = p.elements[begin : begin + needed : a["stride"]]
        if len(held) == a["size"] or not a["drop"]:
            given.append(p.spec.structure.build([list(leaves) for leaves in zip(*map(p.flat, held), strict=True)]))
    return given


BATCHING: tuple[Ingredient, ...] = (
    Ingredient(
        "batch",
        lambda ds, a: ds.batch(a["size"], drop_remainder=a["drop"], num_parallel_calls=a["parallel"]),
        lambda p, a: [stacked(p.spec, group) for group in cut(p.elements, a["size"], drop=a["drop"])],
        drawing(size=SMALL, drop=EITHER, parallel=PARALLEL),
        lambda p: p.stackable,
        weight=2,
    ),
    Ingredient(
        "legacy_rebatch",
        lambda ds, a: Dataset(LegacyRebatch(ds.node, a["pieces"])),
        _model_legacy,
        drawing(pieces=SMALL),
        lambda p: p.regular,
        weight=5,
    ),
    Ingredient("padded_batch", _build_padded, _model_padded, _draw_padded, padded_fits),
    Ingredient(
        "ragged_batch",
        lambda ds, a: ds.ragged_batch(a["size"], drop_remainder=a["drop"]),
        lambda p, a: [ragged_group(p, group) for group in cut(p.elements, a["size"], drop=a["drop"])],
        drawing(size=SMALL, drop=EITHER),
        lambda p: p.ranked,
        weight=2,
    ),
    Ingredient(
        "rebatch",
        lambda ds, a: ds.rebatch(a["sizes"], drop_remainder=a["drop"]),
        _model_rebatch,
        drawing(sizes=st.one_of(SMALL, st.lists(st.integers(0, 4), min_size=1, max_size=4).filter(any)), drop=EITHER),
        lambda p: p.regular,
        weight=5,
    ),
    Ingredient(
        "shard_batches",
        lambda ds, a: ds._followed_by(ShardBatches(ds.node, a["shards"], a["index"])),
        _model_share,
        _draw_share,
        lambda p: p.batched,
        weight=3,
    ),
    Ingredient(
        "sparse_batch",
        _build_sparse,
        _model_sparse,
        drawing(size=SMALL, wide=EITHER),
        lambda p: padded_fits(p) and p.spec.structure.is_leaf and p.leaves[0].ragged_rank is None,
    ),
    Ingredient("unbatch", lambda ds, _: ds.unbatch(), _model_unbatch, fits=lambda p: p.batched, weight=5),
    Ingredient(
        "window",
        lambda ds, a: ds.window(a["size"], a["shift"], a["stride"], a["drop"]),
        _model_window,
        drawing(size=SMALL, shift=st.one_of(st.none(), SMALL), stride=st.integers(1, 3), drop=EITHER),
        lambda p: p.tensors and not p.sparse,
    ),
    Ingredient("worker", _build_worker, _model_worker, _draw_worker, _is_alike_on_workers),
)
"""Ops that group rows, or take groups apart."""


# ----------------------------------------------------------------------------
# Ops that put sequences together by how many tokens they have.
# ----------------------------------------------------------------------------


def _is_sequence(leaf: TensorSpec) -> bool:
    return bool(leaf.shape) and None not in leaf.shape[1:] and leaf.dtype != STRING and not leaf.ragged_rank  # type: ignore[index]


def _fits_pack(p: Pipeline) -> bool:
    taken = p.spec.structure.kind == "dict" and "segment_ids" in p.spec.nest
    return p.batched and not taken and all(map(_is_sequence, p.leaves))


def _draw_pack(draw: DrawFrom, p: Pipeline) -> OpArguments:
    longest = max([len(p.flat(element)[0]) for element in p.elements], default=1)
    longer = draw(st.sampled_from(["split", "truncate", "raise"])) if p.exact else "split"
    return {
        "length": max(1, longest + draw(st.integers(0, 9))) if longer == "raise" else draw(st.integers(1, 12)),
        "best": draw(st.booleans()),
        "longer": longer,
        "window": draw(SMALL),
    }


def _build_pack(ds: Dataset, a: OpArguments) -> Dataset:
    strategy = "best_fit" if a["best"] else "first_fit"
    return ds.pack(a["length"], strategy, on_longer=a["longer"], window=a["window"])


def _windows(p: Pipeline, most: int) -> list[list[list[Any]]]:
    """Consecutive elements of at most so many tokens, or one element; one without tokens counts as if it had one."""
    windows: list[list[list[Any]]] = []
    room = 0
    for element in p.elements:
        leaves = p.flat(element)
        size = max(1, len(leaves[0]))
        if not windows or size > room:
            windows.append([])
            room = most
        windows[-1].append(leaves)
        room -= size
    return windows


def _planned(sequences: list[list[Any]], length: int, best: bool) -> list[list[list[Any]]]:
    """The sequences of each row, rows and sequences in the order in which the sequences came."""
    rows: list[list[int]] = []
    sizes = [len(leaves[0]) for leaves in sequences]
    latest: list[list[int]] = []  # rows that have room, the one that got a sequence last at the end
    for i in sorted(range(len(sequences)), key=lambda i: -sizes[i]):
        found = [row for row in (latest if best else rows) if sum(sizes[k] for k in row) + sizes[i] <= length]
        if not found:
            rows.append([])
            found = [rows[-1]]
        row = max(reversed(found), key=lambda row: sum(sizes[k] for k in row)) if best else found[0]
        row.append(i)
        latest = [other for other in latest if other is not row] + [row]
    return [[sequences[i] for i in sorted(row)] for row in sorted(rows, key=min)]


def _model_pack(p: Pipeline, a: OpArguments) -> list[Any]:
    length, given = a["length"], []
    for window in _windows(p, length * a["window"]):
        pieces = []
        for leaves in window:
            ends = min(1, len(leaves[0])) if a["longer"] == "truncate" else -(-len(leaves[0]) // length)
            pieces += [[leaf[k * length : (k + 1) * length] for leaf in leaves] for k in range(ends)]
        given += [_row(p, row, length) for row in _planned(pieces, length, a["best"])]
    return given


def _row(p: Pipeline, sequences: list[list[Any]], length: int) -> Any:
    """Sequences as one row."""
    packed = []
    for parts, leaf in zip(zip(*sequences, strict=True), p.leaves, strict=True):
        made = np.zeros((length, *leaf.shape[1:]), leaf.dtype)  # type: ignore[index]
        joined = np.concatenate(parts)
        made[: len(joined)] = joined
        packed.append(made)
    segments, positions = np.zeros(length, np.int32), np.zeros(length, np.int32)
    at = 0
    for number, leaves in enumerate(sequences):
        size = len(leaves[0])
        segments[at : at + size] = number + 1
        positions[at : at + size] = range(size)
        at += size
    nest = p.spec.structure.build(packed)
    if p.spec.structure.kind == "dict":
        return {**nest, "segment_ids": segments, "positions": positions}
    return nest, segments, positions


def _draw_tokens(draw: DrawFrom, p: Pipeline) -> OpArguments:
    layout = draw(st.sampled_from(["padded", "ragged"] if padded_fits(p) else ["ragged"]))
    own = not any(leaf.shape for leaf in p.leaves) or draw(EITHER)
    return {"layout": layout, "own": own, **drawing(most=st.integers(1, 30), rows=st.one_of(st.none(), SMALL))(draw, p)}


def _build_tokens(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.batch_by_tokens(
        a["most"], a["layout"], token_count if a["own"] else None, max_rows=a["rows"], on_longer="alone"
    )


def _first_dimension(p: Pipeline, element: Any) -> int:
    leaves = [(leaf, spec) for leaf, spec in zip(p.flat(element), p.leaves, strict=True) if spec.shape]
    unknown = [leaf for leaf, spec in leaves if spec.shape and spec.shape[0] is None]
    return max(map(len, unknown or [leaf for leaf, _ in leaves]))


def _model_tokens(p: Pipeline, a: OpArguments) -> list[Any]:
    groups: list[list[Any]] = []
    sizes: list[int] = []
    for element in p.elements:
        size = int(applied(token_count, element)) if a["own"] else _first_dimension(p, element)
        tokens = (len(sizes) + 1) * max([size, *sizes]) if a["layout"] == "padded" else size + sum(sizes)
        if not groups or tokens > a["most"] or len(sizes) == a["rows"]:
            groups.append([])
            sizes = []
        groups[-1].append(element)
        sizes.append(size)
    return [padded(p.spec, group) if a["layout"] == "padded" else ragged_group(p, group) for group in groups]


PACKING: tuple[Ingredient, ...] = (
    Ingredient(
        "batch_by_tokens",
        _build_tokens,
        _model_tokens,
        _draw_tokens,
        lambda p: p.ranked,
        weight=2,
    ),
    Ingredient("pack", _build_pack, _model_pack, _draw_pack, _fits_pack, weight=5),
)
"""Ops that put sequences together by how many tokens they have."""
