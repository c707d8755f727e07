# SPDX-License-Identifier: Apache-2.0
"""Ops that put sequences together by how many tokens they have."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.leaves import STRING
from distinput.core.spec import TensorSpec
from distinput.data.dataset import Dataset
from distinput.ops.batch_by_tokens import BatchByTokens
from distinput.ops.pack import Pack
from distinput.testing.functions import applied, digest
from distinput.testing.ops.arguments import SMALL, OpArguments
from distinput.testing.ops.batching import padded_fits, ragged_group
from distinput.testing.ops.stacking import padded
from distinput.testing.pipeline import DrawFrom, Ingredient, Pipeline

__all__ = ["PACKING"]


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
    own = not any(leaf.shape for leaf in p.leaves) or draw(st.booleans())
    return {
        "most": draw(st.integers(1, 30)),
        "layout": layout,
        "own": own,
        "rows": draw(st.one_of(st.none(), SMALL)),
    }


def _tokens(*args: Any) -> Any:
    return np.int64(digest(*args) % 10)


def _build_tokens(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.batch_by_tokens(
        a["most"], a["layout"], _tokens if a["own"] else None, max_rows=a["rows"], on_longer="alone"
    )


def _first_dimension(p: Pipeline, element: Any) -> int:
    leaves = [(leaf, spec) for leaf, spec in zip(p.flat(element), p.leaves, strict=True) if spec.shape]
    unknown = [leaf for leaf, spec in leaves if spec.shape and spec.shape[0] is None]
    return max(map(len, unknown or [leaf for leaf, _ in leaves]))


def _model_tokens(p: Pipeline, a: OpArguments) -> list[Any]:
    groups: list[list[Any]] = []
    sizes: list[int] = []
    for element in p.elements:
        size = int(applied(_tokens, element)) if a["own"] else _first_dimension(p, element)
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
        (BatchByTokens,),
        _build_tokens,
        _model_tokens,
        _draw_tokens,
        lambda p: p.ranked,
        weight=2,
    ),
    Ingredient("pack", (Pack,), _build_pack, _model_pack, _draw_pack, _fits_pack, weight=5),
)
"""Ops that put sequences together by how many tokens they have."""
