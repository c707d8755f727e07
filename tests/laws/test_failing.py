# SPDX-License-Identifier: Apache-2.0
"""Random pipelines with failing elements: errors are where a model in plain Python has them, from every state on."""

import json
from collections.abc import Callable
from contextlib import nullcontext
from itertools import count
from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.data.iterator import DatasetIterator
from distinput.rewrite import Running
from distinput.testing.block_sizes import small_blocks
from tests.depth import cases

D = di.data.Dataset
INT = di.TensorSpec([], "int64")
E = "E"
"""Stands in the model for an element that is an error."""

Items = list[Any]


def failing(bad: frozenset[int], result: Callable[[Any], Any] = lambda x: x) -> Callable[..., Any]:
    """A function of an integer; an error for some."""

    def function(x: Any) -> Any:
        if int(x) % 16 in bad:
            raise ValueError(f"bad {int(x)}")
        return result(x)

    return function


def tried(items: Items, function: Callable[[Any], Any]) -> Items:
    found = []
    for item in items:
        try:
            found.append(E if item is E else function(item))
        except ValueError:
            found.append(E)
    return found


def batched(items: Items, size: int, drop: bool, whole: bool) -> Items:
    """Rows are gathered until one fails; `whole`: until there are so many, of which one may fail."""
    found, rows = [], []
    for item in items:
        rows.append(item)
        if item is E and not whole:
            found.append(E)
            rows = []
        elif len(rows) == size:
            found.append(E if E in rows else rows)
            rows = []
    if rows and (E in rows or not drop):
        found.append(E if E in rows else rows)
    return found


def rebatched(items: Items, sizes: list[int]) -> Items:
    found, rows, turn = [], [], 0
    for item in items:
        if item is E:
            found.append(E)
            rows = []
            continue
        for row in item:
            rows.append(row)
            if len(rows) == sizes[turn]:
                found.append(rows)
                rows, turn = [], (turn + 1) % len(sizes)
    return [*found, rows] if rows else found


def zipped(sources: list[Items]) -> Items:
    found: Items = []
    for place in count():
        row: Items = []
        for source in sources:
            if place >= len(source):
                break
            row.append(source[place])
        failed = E in row
        if len(row) < len(sources) and not failed:
            return found
        found.append(E if failed else sum(row))
        if len(row) < len(sources):
            return found
    return found


def taken(items: Items, number: int) -> Items:
    found: Items = []
    for item in items:
        if number == 0:
            break
        found.append(item)
        number -= item is not E
    return found


def sharded(items: Items, shards: int, index: int) -> Items:
    found, place = [], 0
    for item in items:
        if item is E or place % shards == index:
            found.append(item)
        place += item is not E
    return found


def summed(items: Items, bad: frozenset[int]) -> Items:
    total, found = 0, []
    for item in items:
        if item is E or item % 16 in bad:
            found.append(E)
        else:
            total += item
            found.append(total)
    return found


def windows(items: Items, size: int, shift: int, stride: int, drop: bool) -> Items:
    found = []
    needed = 1 + (size - 1) * stride
    for first in range(0, len(items), shift):
        held = items[first : first + needed]
        if drop and len(held) < needed:
            break
        picked = held[::stride]
        found.append(E if E in picked else picked)
    return found


def once(items: Items) -> Items:
    found: Items = []
    for item in items:
        if item is E or item not in found:
            found.append(item)
    return found


def made(items: Items, bad: frozenset[int]) -> Items:
    """For each x: x, x + 1, x + 2, of which some fail, as x itself may."""
    found: Items = []
    for item in items:
        if item is E or item % 16 in bad:
            found.append(E)
        else:
            found += [E if x % 16 in bad else x for x in range(item, item + 3)]
    return found


def grouped(items: Items, size: int) -> Items:
    found: Items = []
    groups: dict[int, list[int]] = {}
    for item in items:
        if item is E:
            found.append(E)
            continue
        group = groups.setdefault(item % 2, [])
        group.append(item)
        if len(group) == size:
            found.append(groups.pop(item % 2))
    return found + [groups[key] for key in sorted(groups)]


BAD = st.frozensets(st.integers(0, 15), max_size=4)
LARGE = frozenset(range(9, 16))
"""Of these, functions that are called with made-up elements, to find out what they give, are not given any."""

SIZE = st.integers(1, 4)


class Built:
    """A pipeline: how to make it, and what the model gives."""

    def __init__(self, make: Callable[[], Any], items: Items, *, rows: bool = False, mapped: bool = False) -> None:
        self.make, self.items, self.rows, self.mapped = make, items, rows, mapped

    def __repr__(self) -> str:
        return f"{self.make().explain()}\nof which the model gives {self.items}"

    def then(self, op: Callable[[Any], Any], items: Items, *, rows: bool = False, mapped: bool = False) -> "Built":
        return Built(lambda make=self.make: op(make()), items, rows=rows, mapped=mapped)


def source(draw: Any) -> Built:
    n, bad = draw(st.integers(0, 14)), draw(BAD)
    return Built(
        lambda: D.range(n).map(failing(bad), output_signature=INT), tried(list(range(n)), failing(bad)), mapped=True
    )


def _of_rows(draw: Any, p: Built) -> Built:
    op = draw(st.sampled_from(["unbatch", "unbatch", "rebatch", "rebatch of sizes"]))
    if op == "unbatch":
        return p.then(lambda ds: ds.unbatch(), [x for row in p.items for x in ([E] if row is E else row)])
    sizes = [draw(SIZE)] if op == "rebatch" else [draw(SIZE), draw(SIZE)]
    return p.then(lambda ds: ds.rebatch(sizes if len(sizes) > 1 else sizes[0]), rebatched(p.items, sizes), rows=True)


def _same(draw: Any, p: Built) -> Built:
    op = draw(st.sampled_from(["prefetch", "copied", "ignore_errors", "shard of one", "filter"]))
    if op == "ignore_errors":
        return p.then(lambda ds: ds.ignore_errors(), [x for x in p.items if x is not E], rows=p.rows)
    if op == "shard of one":
        return p.then(lambda ds: ds.shard(1, 0), p.items, rows=p.rows, mapped=p.mapped)
    ops: dict[str, Callable[[Any], Any]] = {
        "prefetch": lambda ds: ds.prefetch(2),
        "copied": lambda ds: ds.copied(),
        "filter": lambda ds: ds.filter(lambda *_: True),
    }
    return p.then(ops[op], p.items, rows=p.rows)


def _of_numbers(draw: Any, p: Built) -> Built:  # noqa: C901 - a table would be longer
    op = draw(st.sampled_from(OPS))
    bad, size, drop = draw(BAD), draw(SIZE), draw(st.booleans())
    if op in ("scan", "flat_map"):
        bad &= LARGE
    call = failing(bad)
    match op:
        case "map":
            calls = draw(st.sampled_from([None, None, 2, di.data.AUTOTUNE]))
            function = failing(bad, lambda x: x + 1)
            return p.then(
                lambda ds: ds.map(function, num_parallel_calls=calls, output_signature=INT),
                tried(p.items, function),
                mapped=True,
            )
        case "map_rows":

            def rows(x: Any) -> Any:
                if any(int(v) % 16 in bad for v in x):
                    raise ValueError("bad")
                return x + 1

            return p.then(
                lambda ds: ds.map_rows(rows, output_signature=INT), tried(p.items, failing(bad, lambda x: x + 1))
            )
        case "filter":
            kept = tried(p.items, failing(bad, lambda x: x if x % 3 else None))
            return p.then(lambda ds: ds.filter(failing(bad, lambda x: bool(x % 3))), [x for x in kept if x is not None])
        case "batch":
            return p.then(lambda ds: ds.batch(size, drop), batched(p.items, size, drop, p.mapped), rows=True)
        case "padded_batch":
            return p.then(
                lambda ds: ds.padded_batch(size, drop_remainder=drop), batched(p.items, size, drop, False), rows=True
            )
        case "take":
            return p.then(lambda ds: ds.take(2 * size), taken(p.items, 2 * size))
        case "shard":
            index = draw(st.integers(0, size - 1))
            return p.then(
                lambda ds: ds.shard(size, index), sharded(p.items, size, index), mapped=p.mapped and size == 1
            )
        case "scan":
            return p.then(lambda ds: ds.scan(np.int64(0), lambda s, x: (s + call(x), s + x)), summed(p.items, bad))
        case "window":
            shift, stride = draw(SIZE), draw(st.integers(1, 2))
            return p.then(
                lambda ds: ds.window(size, shift, stride, drop).flat_map(lambda w: w.batch(size)),
                windows(p.items, size, shift, stride, drop),
                rows=True,
            )
        case "repeat":
            return p.then(lambda ds: ds.repeat(2), 2 * p.items)
        case "concatenate":
            other = source(draw)
            return p.then(lambda ds: ds.concatenate(other.make()), p.items + other.items)
        case "zip":
            other = source(draw)
            first, second = (p, other) if draw(st.booleans()) else (other, p)
            return Built(
                lambda: D.zip((first.make(), second.make())).map_rows(lambda a, b: a + b, output_signature=INT),
                zipped([first.items, second.items]),
            )
        case "enumerate":
            return p.then(
                lambda ds: ds.enumerate().map_rows(lambda i, x: i + x, output_signature=INT),
                [E if x is E else i + x for i, x in enumerate(p.items)],
            )
        case "unique":
            return p.then(lambda ds: ds.unique(), once(p.items))
        case "flat_map":

            def three(x: Any) -> Any:
                first = int(call(x))
                return D.range(first, first + 3).map(call, output_signature=INT)

            return p.then(lambda ds: ds.flat_map(three), made(p.items, bad))
        case _:
            return p.then(
                lambda ds: ds.group_by_window(lambda x: x % 2, lambda _, group: group.batch(size), size),
                grouped(p.items, size),
                rows=True,
            )


OPS = (
    "map", "map_rows", "filter", "batch", "padded_batch", "take", "shard", "scan", "window", "repeat", "concatenate", "zip",
    "enumerate", "unique", "flat_map", "group_by_window",
)  # fmt: skip


@st.composite
def pipelines(draw: Any) -> Built:
    made_so_far = source(draw)
    for _ in range(draw(st.integers(0, 4))):
        if draw(st.integers(0, 4)) == 0:
            made_so_far = _same(draw, made_so_far)
        else:
            made_so_far = (_of_rows if made_so_far.rows else _of_numbers)(draw, made_so_far)
    return made_so_far


def looped(iterator: Any, states: list[Any] | None = None) -> Items:
    found: Items = []
    while True:
        if states is not None:
            states.append(json.loads(json.dumps(iterator.state())))
        try:
            found.append(np.asarray(next(iterator)).tolist())
        except StopIteration:
            return found
        except ValueError:
            found.append(E)


@given(pipelines(), st.sampled_from([None, 1, 3]))
@settings(max_examples=cases(25, 600))
def test_errors_are_where_the_model_has_them(built: Built, block: int | None) -> None:
    with small_blocks(block) if block else nullcontext():
        states: list[Any] = []
        assert looped(iter(built.make()), states) == built.items
        node = built.make().node
        assert looped(DatasetIterator(node, Running(node), {"at": node.start(0), "epoch": 0, "skip": 0})) == built.items
        for place, state in enumerate(states):
            assert looped(built.make().restore(state)) == built.items[place:]


@given(pipelines(), st.sampled_from([None, 1, 3]))
@settings(max_examples=cases(25, 600))
def test_ignored_errors_leave_the_others(built: Built, block: int | None) -> None:
    expected = [item for item in built.items if item is not E]
    with small_blocks(block) if block else nullcontext():
        states: list[Any] = []
        assert looped(iter(built.make().ignore_errors()), states) == expected
        for place, state in enumerate(states):
            assert looped(built.make().ignore_errors().restore(state)) == expected[place:]
