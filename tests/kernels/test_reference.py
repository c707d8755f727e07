# SPDX-License-Identifier: Apache-2.0
"""Law 6: every compiled kernel does what its reference does, for good arguments and for bad ones."""

from __future__ import annotations

import copy
import importlib
import pkgutil
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from distinput import kernels
from distinput.kernels import dealing, example_values, plain_csv, random_orders, tar_samples
from distinput.kernels.kernel import KERNELS
from tests.archives import strange_archive
from tests.checksum import masked_checksum
from tests.depth import cases

for _module in pkgutil.iter_modules(kernels.__path__, "distinput.kernels."):
    importlib.import_module(_module.name)  # so that all kernels are declared, whichever tests run beside these

Draw = Callable[..., Any]
SMALL = st.integers(0, 40)
KEYS_64 = st.one_of(st.integers(0, 3), st.integers(0, 2**64 - 1))


def to_array(content: bytes) -> np.ndarray:
    return np.frombuffer(content, np.uint8)  # read-only, as what comes from files is


def ints(values: Any) -> np.ndarray:
    return np.array(values, np.int64)


def out_of(size: int, dtype: Any = np.int64) -> np.ndarray:
    return np.full(size, 77, dtype)


def offsets_of(lengths: Any) -> np.ndarray:
    return np.concatenate(([0], np.cumsum(lengths))).astype(np.int64)


@st.composite
def spoilt(draw: Draw, arrays: st.SearchStrategy[np.ndarray]) -> np.ndarray:
    """An array that now and then holds a number which does not belong there."""
    array = draw(arrays)
    if array.size and draw(st.integers(0, 5)) == 0:
        array, at = array.copy(), draw(st.integers(0, array.size - 1))
        right, most = int(array[at]), int(array.max())
        # One beyond what is there is the border of what a kernel must refuse.
        wrong = [right + 1, right + 1, right - 1, most, most + 1, array.size, -1, 10**6, 2**62, 2**63 - 1, -(2**63)]
        array[at] = draw(st.sampled_from(wrong) if array.dtype == np.int64 else st.integers(0, 255))
    return array


# TFRecord


def frame(payload: bytes, spoil: int = -1) -> bytes:
    length = len(payload).to_bytes(8, "little")
    framed = bytearray(length + masked_checksum(length) + payload + masked_checksum(payload))
    if spoil >= 0:
        framed[spoil % len(framed)] ^= 1 << spoil % 8
    return bytes(framed)


@st.composite
def scans(draw: Draw) -> list[Any]:
    payloads = draw(st.lists(st.binary(max_size=500), max_size=5))
    spoils = st.one_of(st.just(-1), st.just(-1), st.integers(0, 10**6))
    content = b"".join(frame(payload, draw(spoils)) for payload in payloads) + draw(st.binary(max_size=20))
    content = content[: draw(st.one_of(st.none(), st.integers(0, len(content))))]
    room = draw(st.integers(0, 6))
    start = draw(st.sampled_from([0, 0, 0, 1, len(content), len(content) + 1, -1]))
    return [to_array(content), start, out_of(room), out_of(room)]


@st.composite
def frames(draw: Draw) -> list[Any]:
    payloads = draw(st.lists(st.binary(max_size=400), max_size=5))
    data = to_array(b"".join(payloads))
    offsets = draw(spoilt(st.just(offsets_of([len(each) for each in payloads]))))
    return [data, offsets, out_of(data.size + 16 * len(payloads) + draw(st.integers(-1, 3)) + 1, np.uint8)]


# Tar


@st.composite
def sample_scans(draw: Draw) -> list[Any]:
    content = to_array(strange_archive(draw(st.integers(0, 10**9))))
    room = draw(st.integers(0, 6))
    start = draw(st.sampled_from([0, 0, 0, 512, content.size, content.size + 1, -1]))
    return [content, start, out_of(room), out_of(room), draw(st.booleans())]


@st.composite
def member_searches(draw: Draw) -> list[Any]:
    content = to_array(strange_archive(draw(st.integers(0, 10**9))))
    starts, sizes = np.empty((2, 20), np.int64)
    n = tar_samples.scan_reference(content, 0, starts, sizes, True)[0]
    spans = [draw(spoilt(st.just(each[:n].copy()))) for each in (starts, sizes)]
    ends, columns = (draw(spoilt(st.just(ints(each)))) for each in ([3, 6, 10, 17], [0, 1, 1, 2]))
    named = [to_array(b"clsjpgjsonseg.png"), ends, columns]
    room = draw(st.sampled_from([5000, 5000, 10, 0]))
    places = [out_of(3 * n), np.full(3 * n + draw(st.sampled_from([0] * 9 + [1])), -1)]
    return [content, *spans, *named, draw(st.booleans()), *places, out_of(room, np.uint8), out_of(n)]


# Example


def varint(value: int, padding: int = 0) -> bytes:
    value %= 1 << 64
    written = bytearray()
    while value >= 128:
        written.append(value & 127 | 128)
        value >>= 7
    written.append(value)
    for _ in range(padding):  # longer than needed, and still right
        written[-1] |= 128
        written.append(0)
    return bytes(written)


def field(number: int, content: bytes) -> bytes:
    return varint(number << 3 | 2) + varint(len(content)) + content


@st.composite
def lists_of(draw: Draw, kind: int) -> bytes:
    """A BytesList, FloatList or Int64List, packed, not packed, or both."""
    written = b""
    for packed in draw(st.lists(st.booleans(), max_size=3)):
        if draw(st.integers(0, 8)) == 0:
            written += draw(unknown_fields())
        if kind == example_values.BYTES:
            written += field(1, draw(st.binary(max_size=40)))
        elif kind == example_values.FLOAT:
            floats = np.array(draw(st.lists(st.floats(width=32), max_size=5)), "<f4")
            written += field(1, floats.tobytes()) if packed else b"".join(b"\x0d" + each.tobytes() for each in floats)
        else:
            numbers = draw(st.lists(st.integers(-(2**63), 2**63 - 1) | st.integers(0, 200), max_size=90))
            digits = [varint(each, draw(st.sampled_from([0, 0, 0, 1])) if each == 5 else 0) for each in numbers]
            written += field(1, b"".join(digits)) if packed else b"".join(b"\x08" + each for each in digits)
    return written


def unknown_fields() -> st.SearchStrategy[bytes]:
    return st.sampled_from(
        [field(7, b"whatever"), b"\x18\x96\x01", b"\x3d1234", b"\x3912345678", field(5, field(1, b"x")), b"\x10\x01"]
    )


WANTED = [b"x", b"label", b"", b"exactly8", b"sixteen bytes ..", b"a name of more than sixteen bytes", b"label2"]
OTHERS = [b"y", b"labels", b"exactly9", b"a name of more than sixteen Bytes", b"a nAme of more than sixteen bytes"]


@st.composite
def features(draw: Draw) -> bytes:
    kind = draw(st.integers(0, 3))
    written = field(kind, draw(lists_of(kind))) if kind else b""
    if draw(st.integers(0, 9)) == 0:
        again = draw(st.integers(1, 3))
        written += field(again, draw(lists_of(again)))
    return draw(unknown_fields()) + written if draw(st.integers(0, 9)) == 0 else written


@st.composite
def messages(draw: Draw) -> bytes:
    entries = []
    for _ in range(draw(st.integers(0, 6))):
        parts = [field(1, draw(st.sampled_from(WANTED + OTHERS))), field(2, draw(features()))]
        oddity = draw(st.integers(0, 30))
        if oddity == 0:
            parts.append(draw(st.sampled_from([b"", field(2, b""), field(1, b"x")])))
        elif oddity == 1:
            parts.append(draw(unknown_fields()))
        if draw(st.integers(0, 3)) == 0:
            parts.reverse()
        entries.append(field(1, b"".join(parts)))
    cut = draw(st.sampled_from([0, 0, 0, len(entries) // 2]))
    written = field(1, b"".join(entries[cut:]))
    if cut:
        written = field(1, b"".join(entries[:cut])) + draw(unknown_fields().filter(lambda f: f[0] != 0x0A)) + written
    return written


@st.composite
def broken(draw: Draw, contents: st.SearchStrategy[bytes]) -> bytes:
    """Bytes that now and then are cut short, changed or made up."""
    content = draw(contents)
    damage = draw(st.integers(0, 24))
    if damage == 0:
        return draw(st.binary(max_size=60))
    if damage == 1 and content:
        return content[: draw(st.integers(0, len(content) - 1))]
    if damage == 2 and content:
        changed = bytearray(content)
        changed[draw(st.integers(0, len(content) - 1))] ^= draw(st.integers(1, 255))
        return bytes(changed)
    if damage == 3:
        return content + b"\x80" * draw(st.integers(0, 12)) + b"\x01"
    if damage in (4, 5, 6):
        return content + b"\x0a\x7f"  # a field that ends behind them
    return content


def pack(contents: list[bytes], between: bytes) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The contents in one piece of memory, where each begins, and how long each is."""
    starts, data = [], bytearray()
    for content in contents:
        data += between
        starts.append(len(data))
        data += content
    return to_array(bytes(data)), ints(starts), ints([len(each) for each in contents])


@st.composite
def alike(draw: Draw) -> list[bytes]:
    """Messages of one program: the same keys in the same order, with lists of one kind each, but now and then broken."""
    entries = draw(st.lists(st.tuples(st.sampled_from(WANTED + OTHERS), st.integers(1, 3)), min_size=1, max_size=4))
    contents = []
    for _ in range(draw(st.integers(2, 5))):
        parts = [field(1, key) + field(2, field(kind, draw(lists_of(kind)))) for key, kind in entries]
        contents.append(draw(broken(st.just(field(1, b"".join(field(1, part) for part in parts))))))
    return contents


@st.composite
def locates(draw: Draw) -> list[Any]:
    contents = draw(alike() | st.lists(broken(messages()), max_size=4))
    data, starts, lengths = pack(contents * draw(st.sampled_from([1, 1, 3])), draw(st.binary(max_size=3)))
    keys = draw(st.lists(st.sampled_from(WANTED), unique=True))
    n, columns, room, rows = starts.size, [], 0, 0
    for _ in keys:
        kind, size = draw(st.integers(1, 3)), draw(st.sampled_from([-1, -1, 0, 1, 1, 2, 3, example_values.ANY]))
        more = draw(st.sampled_from([0, 0, 10, 200, 2000]))
        columns += [kind, size, rows if size == -1 else room, more]
        rows += size == -1
        table = n * (16 if size == example_values.ANY else max(0, size) * example_values.WIDTHS[kind])
        room += -(-(table + more) // 8) * 8
    return [
        data,
        draw(spoilt(st.just(starts))),
        draw(spoilt(st.just(lengths))),
        to_array(b"".join(keys)),
        draw(spoilt(st.just(offsets_of([len(each) for each in keys])))),
        draw(spoilt(st.just(ints(columns)))),
        out_of(n * len(keys), np.uint8),
        out_of(n * rows),
        out_of(n * rows),
        out_of(room, np.uint8),
    ]


@st.composite
def key_searches(draw: Draw) -> list[Any]:
    contents = draw(alike() | st.lists(broken(messages()), max_size=4))
    data, starts, lengths = pack(contents, draw(st.binary(max_size=3)))
    keys = draw(st.lists(st.sampled_from(WANTED + OTHERS), unique=True) | st.just(WANTED + OTHERS))
    return [
        data,
        draw(spoilt(st.just(starts))),
        draw(spoilt(st.just(lengths))),
        draw(st.sampled_from([0, 0, 0, 1, 5, -1])),
        to_array(b"".join(keys)),
        draw(spoilt(st.just(offsets_of([len(each) for each in keys])))),
    ]


@st.composite
def lists(draw: Draw, kind: int) -> list[Any]:
    """data, kinds, starts, lengths."""
    n = draw(st.integers(0, 4))
    kinds = [draw(st.sampled_from([kind] * 9 + [0, 0, draw(st.integers(0, 3))])) for _ in range(n)]
    data, starts, lengths = pack([draw(broken(lists_of(kind))) for _ in range(n)], draw(st.binary(max_size=3)))
    return [data, np.array(kinds, np.uint8), draw(spoilt(st.just(starts))), draw(spoilt(st.just(lengths)))]


@st.composite
def counts(draw: Draw) -> list[Any]:
    kind = draw(st.integers(1, 3))
    data, *found = draw(lists(kind))
    return [data, draw(st.sampled_from([kind] * 9 + [0, 4])), *found, out_of(found[0].size)]


@st.composite
def fills(draw: Draw, kind: int, dtype: Any, outs: int = 1) -> list[Any]:
    data, *found = draw(lists(kind))
    counted = np.zeros(found[0].size, np.int64)
    try:
        example_values.count_values.reference(data, kind, *found, counted)
    except ValueError:
        counted[:] = 1
    offsets = draw(spoilt(st.just(offsets_of(counted))))
    size = max(0, int(counted.sum()) + draw(st.sampled_from([0, 0, 0, 0, 3, -1])))
    return [data, *found, offsets, *(out_of(size, dtype) for _ in range(outs))]


@st.composite
def sequences(draw: Draw) -> bytes:
    """A SequenceExample: lists of steps in one map or two, beside a context, with unknown fields here and there."""
    maps: list[list[bytes]] = [[], []]
    for _ in range(draw(st.integers(0, 5))):
        pieces: list[bytes] = [b""]
        for step in draw(st.lists(features(), max_size=4)):
            oddity = draw(st.integers(0, 30))
            if oddity == 0:
                pieces.append(b"")
            pieces[-1] += (draw(unknown_fields()) if oddity == 1 else b"") + field(1, step)
        if draw(st.integers(0, 20)) == 0:
            pieces = []
        parts = [field(1, draw(st.sampled_from(WANTED + OTHERS))), *(field(2, piece) for piece in pieces)]
        if draw(st.integers(0, 5)) == 0:
            parts.reverse()
        maps[draw(st.integers(0, 9)) == 0].append(field(1, b"".join(parts)))
    context = field(1, field(1, draw(features()))) if draw(st.booleans()) else b""
    written = [context, *(field(2, b"".join(entries)) for entries in maps if entries)]
    return (draw(unknown_fields()) if draw(st.integers(0, 9)) == 0 else b"").join(written)


@st.composite
def step_searches(draw: Draw) -> list[Any]:
    contents = draw(st.lists(broken(sequences()), max_size=4))
    data, starts, lengths = pack(contents, draw(st.binary(max_size=3)))
    keys = draw(st.lists(st.sampled_from(WANTED), unique=True))
    rooms = [draw(st.sampled_from([0, 1, 4] + [40] * 9)) for _ in keys]
    total, more = sum(rooms), draw(st.sampled_from([0] * 9 + [1]))
    return [
        data,
        draw(spoilt(st.just(starts))),
        draw(spoilt(st.just(lengths))),
        to_array(b"".join(keys)),
        draw(spoilt(st.just(offsets_of([len(each) for each in keys])))),
        draw(spoilt(st.just(offsets_of(rooms)))),
        out_of(starts.size * len(keys)),
        out_of(total, np.uint8),
        out_of(total + more),
        out_of(total),
    ]


# Lines, ragged


@st.composite
def texts(draw: Draw) -> list[Any]:
    pieces = [b"\n", b"\r\n", b"\r\r\n", b"a", b"some words", b"\r", b"x" * 70, b"x" * 600]
    buffer = to_array(b"".join(draw(st.lists(st.sampled_from(pieces), max_size=60))))
    start, end = draw(
        st.one_of(st.just((0, buffer.size)), st.tuples(st.integers(-1, 9), st.integers(0, buffer.size + 1)))
    )
    room = draw(st.integers(0, 70) | st.integers(64, 200))
    return [buffer, start, end, out_of(room), out_of(room)]


@st.composite
def pads(draw: Draw) -> list[Any]:
    item = draw(st.sampled_from([1, 2, 3, 4, 8, 8, 12]))
    batches = draw(st.lists(st.lists(st.integers(0, 6), max_size=5), max_size=3))
    sizes = [size for batch in batches for size in batch]
    widths = [max([0, *batch]) + draw(st.sampled_from([0, 0, 1, 5, -1])) for batch in batches]
    items = max([0, *sizes]) + draw(st.integers(0, 5) | st.just(30))  # with many behind a row it is written in words
    starts = [draw(st.integers(0, items - size)) for size in sizes]
    values = np.arange(items * item + draw(st.integers(0, 1)), dtype=np.uint8)
    fill = to_array(draw(st.sampled_from([bytes(item), b"\xff" * item, bytes(range(1, item + 1)), b""])))
    room = sum([len(batch) * width for batch, width in zip(batches, widths, strict=True)])
    out = max(0, room * fill.size + draw(st.sampled_from([0] * 9 + [1])))
    widths = draw(st.sampled_from([widths] * 9 + [[2**62] * len(widths)]))
    parts = (starts, sizes, [len(batch) for batch in batches], widths)
    rows = [draw(spoilt(st.just(ints(each)))) for each in parts]
    return [values, *rows, out_of(out, np.uint8), fill]


@st.composite
def gathered_rows(draw: Draw) -> list[Any]:
    width = draw(st.sampled_from([8, 8, 16, 4, 0, 1, 3, 20, 300, -1]))
    data = to_array(bytes(i % 251 for i in range(draw(st.sampled_from([400, 20, 1, 0])))))
    unit = draw(st.sampled_from([1, max(1, width)]))  # rows side by side, or anywhere
    starts = ints(
        draw(st.lists(st.integers(0, max(0, data.size - width) // unit).map(lambda at: at * unit), max_size=8))
    )
    out = out_of(max(0, width) * len(starts) + draw(st.sampled_from([0, 0, 0, 1])), np.uint8)
    return [data, draw(spoilt(st.just(starts))), width, out]


@st.composite
def placed_rows(draw: Draw) -> list[Any]:
    ends = offsets_of(draw(st.lists(st.sampled_from([3, 3, 3, 0, 1, 7]), max_size=8)))
    begins = ints(draw(st.lists(st.integers(0, 900), min_size=len(ends) - 1, max_size=len(ends) - 1)))
    shift = draw(st.integers(0, 6))
    near = np.searchsorted(ends, np.arange(0, ends[-1], 1 << shift), "right") - 1
    near = near[: draw(st.sampled_from([None] * 9 + [-1]))]
    rows = ints(draw(st.lists(st.integers(0, max(0, int(ends[-1]) - 1)), max_size=8)))
    out = out_of(len(rows) + draw(st.sampled_from([0, 0, 0, 1])))
    width = draw(st.sampled_from([8, 4, 0, 1, 2**31]))
    shift = draw(st.sampled_from([shift] * 9 + [64, -1]))
    return [begins, ends, near, shift, width, draw(spoilt(st.just(rows))), out]


@st.composite
def gathers(draw: Draw) -> list[Any]:
    data = to_array(draw(st.binary(max_size=200)))
    starts = ints(draw(st.lists(st.integers(0, data.size), max_size=6)))
    lengths = ints([draw(st.integers(0, data.size - start)) for start in starts])
    out = out_of(int(lengths.sum()) + draw(st.integers(0, 2)), np.uint8)
    return [data, draw(spoilt(st.just(starts))), draw(spoilt(st.just(lengths))), out, offsets_of(lengths)]


@st.composite
def copies(draw: Draw) -> list[Any]:
    data = to_array(draw(st.binary(max_size=400)))
    to = draw(st.integers(-1, 130) | st.sampled_from([-(2**63), 2**63 - 1]))
    return [data, out_of(data.size + draw(st.integers(0, 130)), np.uint8), to]


@st.composite
def window_fills(draw: Draw) -> list[Any]:
    sizes = draw(st.lists(st.integers(1, 4), max_size=4))
    waiting = [draw(st.integers(0, size - 1)) for size in sizes]
    groups = draw(st.lists(st.integers(0, len(sizes) - 1), max_size=30)) if sizes else []
    inputs = [draw(spoilt(st.just(ints(each)))) for each in (groups, waiting, sizes)]
    inputs[1] = np.array(inputs[1])
    room = len(groups) + draw(st.sampled_from([0] * 9 + [1]))
    return [*inputs, out_of(room), out_of(len(groups) + len(sizes)), out_of(len(groups))]


# Shuffles


def many_slots(draw: Draw, width: int) -> int:
    """So many more rows of a buffer: none, or as many as it takes to be far from the processor."""
    return draw(st.sampled_from([0] * 9 + [-(-random_orders.FAR // width)]))


def some_slots(draw: Draw) -> np.ndarray:
    """What is in the slots of a buffer, which is seldom a large one."""
    few = ints(draw(st.lists(st.integers(0, 99), max_size=9)))
    return np.concatenate((few, np.arange(many_slots(draw, 8))))


@st.composite
def steps(draw: Draw) -> list[Any]:
    slots = some_slots(draw)
    incoming = ints(draw(st.lists(st.integers(100, 199), max_size=20)))
    position = draw(st.integers(-1, 2**62))
    return [slots, draw(KEYS_64), position, incoming, out_of(incoming.size + draw(st.sampled_from([0] * 9 + [1])))]


@st.composite
def exchanges(draw: Draw) -> list[Any]:
    width = draw(st.sampled_from([1, 3, 8, 16, 24, 80]))
    slots = draw(st.integers(0, 9)) + many_slots(draw, width)
    stored = np.arange(slots * width + draw(st.sampled_from([0] * 9 + [1]))).astype(np.uint8)
    incoming = np.arange(draw(st.integers(0, 20)) * width + draw(st.sampled_from([0] * 9 + [1]))).astype(np.uint8)
    room = incoming.size + draw(st.sampled_from([0] * 9 + [1]))
    position = draw(st.integers(-1, 2**62))
    return [stored, draw(KEYS_64), position, draw(st.sampled_from([width] * 9 + [0])), incoming, out_of(room, np.uint8)]


@st.composite
def row_drains(draw: Draw) -> list[Any]:
    width = draw(st.sampled_from([1, 3, 8, 16, 24, 80]))
    slots = draw(st.integers(0, 9)) + many_slots(draw, width)
    left = draw(st.integers(max(-1, slots - 9), slots + 1))
    out = out_of(draw(st.integers(0, 10)) * width + draw(st.sampled_from([0] * 9 + [1])), np.uint8)
    stored = np.arange(slots * width).astype(np.uint8)
    width = draw(st.sampled_from([width] * 9 + [0]))
    return [stored, draw(KEYS_64), draw(st.integers(-1, 2**62)), left, width, out]


@st.composite
def drains(draw: Draw) -> list[Any]:
    slots = some_slots(draw)
    left = draw(st.integers(max(-1, slots.size - 20), slots.size + 1))
    return [slots, draw(KEYS_64), draw(st.integers(-1, 2**62)), left, out_of(draw(st.integers(0, 12)))]


@st.composite
def rebuilds(draw: Draw) -> list[Any]:
    total = draw(st.integers(-1, 60))
    position = draw(st.integers(-1, 2**50 if total < 0 else total + 1))
    return [draw(KEYS_64), position, total, out_of(draw(st.integers(0, 20)) + many_slots(draw, 8))]


@st.composite
def permutes(draw: Draw) -> list[Any]:
    n = draw(st.integers(0, 300) | st.integers(0, 2**20) | st.integers(2**40, 2**62 + 1))
    rows = ints(draw(st.lists(st.integers(0, n - 1), max_size=300))) if n else ints([])
    return [draw(spoilt(st.just(rows))), draw(KEYS_64), n, out_of(rows.size)]


@st.composite
def deals(draw: Draw) -> list[Any]:
    sizes = draw(spoilt(st.lists(st.integers(0, 5) | st.integers(0, 10**6), max_size=60).map(ints)))
    loads = np.zeros(draw(st.integers(0, 12)), np.int64)
    if loads.size and draw(st.integers(0, 9)) == 0:
        loads[0] = 1
    return [sizes, loads, out_of(sizes.size + (draw(st.integers(0, 9)) == 0))]


@st.composite
def row_plans(draw: Draw) -> list[Any]:
    length = draw(st.sampled_from([0, 1, 5, 40, 64, 130, 5000]))
    sizes = draw(spoilt(st.lists(st.integers(1, max(1, length)) | st.integers(1, 3), max_size=60).map(ints)))
    more = draw(st.integers(0, 9)) == 0
    return [sizes, length, draw(st.booleans()), out_of(sizes.size), out_of(sizes.size + 1 + more)]


@st.composite
def token_cuts(draw: Draw) -> list[Any]:
    sizes = draw(spoilt(st.lists(st.integers(0, 9), max_size=40).map(ints)))
    begun = draw(st.integers(0, 4)), draw(st.integers(0, 9))
    limits = draw(st.integers(0, 40)), draw(st.sampled_from([0, 1, 2, 3, 10**9, 2**31 - 1]))
    return [sizes, *begun, *limits, draw(st.booleans()), out_of(sizes.size + (draw(st.integers(0, 9)) == 0))]


@st.composite
def fair_choices(draw: Draw) -> list[Any]:
    k, pieces = draw(st.integers(1, 6)), draw(st.integers(1, 4))
    rows = []
    for _ in range(pieces):
        weights = draw(st.lists(st.integers(0, 9), min_size=k, max_size=k).filter(any))
        row = [dealing.WHOLE * weight // sum(weights) for weight in weights]
        row[row.index(max(row))] += dealing.WHOLE - sum(row)
        rows += row
    steps = draw(spoilt(st.lists(st.integers(1, 20), min_size=pieces, max_size=pieces).map(ints)))
    owed = draw(st.lists(st.integers(-dealing.MOST_OWED, dealing.MOST_OWED), min_size=k // 2, max_size=k // 2))
    debts = draw(spoilt(st.just(ints([*owed, *[-debt for debt in owed], *[0] * (k % 2)]))))
    return [debts, draw(spoilt(st.just(ints(rows)))), steps, out_of(draw(st.integers(0, 60)))]


@st.composite
def row_numbers(draw: Draw) -> list[Any]:
    length = draw(st.integers(0, 9))
    rows = draw(st.lists(st.lists(st.integers(0, 4), max_size=3), max_size=6))
    sizes, bounds = ints([size for row in rows for size in row]), offsets_of([len(row) for row in rows])
    total = len(rows) * length + (draw(st.integers(0, 9)) == 0)
    starts, segments, positions = out_of(sizes.size), out_of(total, np.int32), out_of(total, np.int32)
    return [draw(spoilt(st.just(sizes))), draw(spoilt(st.just(bounds))), length, starts, segments, positions]


@st.composite
def span_fills(draw: Draw) -> list[Any]:
    item, items = draw(st.sampled_from([1, 2, 3, 4, 8, 12])), draw(SMALL)
    spans = [
        sorted(pair) for pair in draw(st.lists(st.tuples(st.integers(0, items), st.integers(0, items)), max_size=5))
    ]
    starts = draw(spoilt(st.just(ints([start for start, _ in spans]))))
    ends = draw(spoilt(st.just(ints([end for _, end in spans]))))
    fill = draw(st.one_of(st.just(bytes(item)), st.binary(min_size=item, max_size=item)))
    return [starts, ends, to_array(fill), out_of(item * items, np.uint8)]


def any_bytes() -> st.SearchStrategy[list[Any]]:
    return st.tuples(st.integers(0, 8000) | SMALL, st.integers(0, 2**32)).map(
        lambda given: [np.random.default_rng(given[1]).integers(0, 256, given[0], np.uint8)]
    )


def sums_on() -> st.SearchStrategy[list[Any]]:
    return st.tuples(any_bytes(), st.integers(0, 2**32 - 1)).map(lambda given: [*given[0], given[1]])


@st.composite
def record_scans(draw: Draw, *rules: Any) -> list[Any]:
    parts = [b",", b"\n", b"\r\n", b"abc", b'"a,b"', b'"a""b"', b'"', b"\r", b"{}", b" ", b"x" * 70]
    buffer = to_array(b"".join(draw(st.lists(st.sampled_from(parts), max_size=40))))
    start = draw(st.sampled_from([0, 0, 0, -1, 1, 70]))
    end = draw(st.sampled_from([buffer.size] * 3 + [buffer.size + 1, buffer.size // 2]))
    most = st.sampled_from([2**63 - 1, 0, 1, 5, 64, 100])
    return [buffer, start, end, draw(most), draw(most), *map(draw, rules)]


@st.composite
def plain_rows(draw: Draw) -> list[Any]:
    kinds = draw(st.lists(st.integers(0, 5), min_size=1, max_size=4))
    numbers = [
        b"0",
        b"7",
        b"-12",
        b"1234567",
        b"123456789012",
        b"-2147483649",
        b"00012345678",
        b"1e5",
        b"-1.5E-3",
        b"16777217",
        b"-00.5",
        b"9007199254740993",
    ]
    numbers += [
        b"0.12345678901234567",
        b"1.7976931348623157e308",
        b"123456789012345678901",
        b"0.00000000000000000001234567890123",
    ]
    words = [*numbers, b"", b"some words", b"x" * 70, b"-", b".", b"1x", b"1.5e", b"abcdefgh12345678"]
    written, count, bare = [], draw(st.integers(0, 6)), draw(st.booleans())  # text without quotes has a way of its own
    ends = [b"\n", b"\n", b"\r\n", *([] if bare else [b"\n\n", b"\n\r\n"])]
    for _ in range(count):
        values = [
            draw(st.sampled_from(words if kind in (0, 5) or draw(st.integers(0, 30)) == 0 else numbers))
            for kind in kinds
        ]
        values = [b'"%s"' % value if not bare and draw(st.integers(0, 4)) == 0 else value for value in values]
        written.append(b",".join(values) + draw(st.sampled_from(ends)))
    content = draw(broken(st.just(b"".join(written))))
    if draw(st.integers(0, 9)) == 0:
        content += draw(
            st.sampled_from([b'"a""b"\n', b'"', b'a"b\n', b'"a"b\n', b'"\n', b'""\n', b",", b"\r", b'"a"\r'])
        )
    n, columns, size = count + draw(st.sampled_from([0] * 9 + [1, -1])), [], 0
    written_as = draw(st.sampled_from([0, 0, plain_csv.AS_WRITTEN]))
    for kind in kinds:
        columns += [kind + written_as * (plain_csv.LEFT_OUT < kind < plain_csv.TEXT), size]
        size += -(-max(0, n) * plain_csv.WIDTHS[kind] // 8) * 8
    out = out_of(max(0, size - draw(st.sampled_from([0] * 19 + [8]))), np.uint8)
    return [
        to_array(content),
        n,
        44,
        draw(st.sampled_from([34, 34, 34, -1])),
        draw(spoilt(st.just(ints(columns)))),
        out,
    ]


@st.composite
def plain_objects(draw: Draw) -> list[Any]:
    kinds = draw(st.lists(st.integers(0, 6), min_size=1, max_size=4))
    names = [b'"%s"' % name for name in (b"a", b"long key of bytes", b"bb", b"c\xc3\xa9")][: len(kinds)]
    wholes = [b"0", b"-0", b"7", b"-12", b"1234567", b"123456789012345678", b"2147483648", b"-2147483648"]
    decimals = [
        b"1e5",
        b"-1.5E-3",
        b"16777217",
        b"9007199254740993",
        b"0.12345678901234567",
        b"1.7976931348623157e308",
        b"0.0",
    ]
    odd = [
        b"007",
        b"1.",
        b".5",
        b"-",
        b"1e1234",
        b"0e5",
        b"NaN",
        b"null",
        b"[1]",
        b"{}",
        b"12345678901234567890",
        b"1x",
    ]
    texts = [b"", b"some words", b"x" * 70, b"\xff\xc3\xa9", b"12345678"]
    escapes = [rb"a\nb\"c\\", rb"\u00e9\u20AC\/", rb"\ud83d\ude00 far", rb"abcdefgh\t"]
    broken_texts = [rb"\ud83d", rb"\udc00", rb"\u12g4", rb"\x", rb"\u0000", b"a\tb", rb"\ud83d\u0041"]
    strings = [b'"%s"' % each for each in texts * 3 + (escapes if draw(st.booleans()) else [])]
    values = [strings + wholes + [b"true", b"null"], wholes, wholes + decimals, wholes + decimals, wholes, strings]
    values += [[b"true", b"false"]]
    strange = [*odd, *(b'"%s"' % each for each in broken_texts), b"tru", b"fals", b'"open']
    blanks = st.sampled_from([b"", b"", b" ", b"\t \r"])
    written, count = [], draw(st.integers(0, 5))
    for _ in range(count):
        fields = []
        for name, kind in zip(names, kinds, strict=True):
            value = draw(st.sampled_from(values[kind] if draw(st.integers(0, 30)) else strange))
            fields.append(draw(blanks) + name + draw(blanks) + b":" + draw(blanks) + value + draw(blanks))
        if draw(st.integers(0, 5)) == 0:
            fields = draw(st.permutations(fields))
        if draw(st.integers(0, 30)) == 0:
            fields = draw(st.sampled_from([fields[1:], [*fields, fields[0]], [*fields, b'"new":1'], [*fields, b""]]))
        written.append(
            b"{" + b",".join(fields) + b"}" + draw(st.sampled_from([b"\n", b"\n", b" \r\n", b"\n\n \n", b"}\n"]))
        )
    content = draw(broken(st.just(b"".join(written))))
    n, columns, size, ends = count + draw(st.sampled_from([0] * 9 + [1, -1])), [], 0, np.cumsum([*map(len, names)])
    written_as = draw(st.sampled_from([0, 0, plain_csv.AS_WRITTEN]))
    for kind, end in zip(kinds, ends.tolist(), strict=True):
        columns += [end, kind + written_as * (plain_csv.LEFT_OUT < kind < plain_csv.TEXT), size]
        size += -(-max(0, n) * plain_csv.WIDTHS[kind] // 8) * 8
    out = out_of(max(0, size - draw(st.sampled_from([0] * 19 + [8]))), np.uint8)
    text = to_array(content).copy()[: draw(st.sampled_from([0, None, None, 1]))]
    return [to_array(content), n, to_array(b"".join(names)), draw(spoilt(st.just(ints(columns)))), out, text]


STRATEGIES: dict[str, st.SearchStrategy[list[Any]]] = {
    "choose_fairly": fair_choices(),
    "copy_past_caches": copies(),
    "count_values": counts(),
    "crc32": sums_on(),
    "crc32c": any_bytes(),
    "crc32c_portable": any_bytes(),
    "csv_records": record_scans(st.just(44), st.sampled_from([34, -1]), st.integers(0, 7)),
    "cut_by_tokens": token_cuts(),
    "deal_by_size": deals(),
    "deal_evenly": deals(),
    "drain_rows": row_drains(),
    "drain_steps": drains(),
    "exchange_rows": exchanges(),
    "fill_bytes_spans": fills(example_values.BYTES, np.int64, 2),
    "fill_floats": fills(example_values.FLOAT, np.float32),
    "fill_int64s": fills(example_values.INT64, np.int64),
    "fill_spans": span_fills(),
    "fill_windows": window_fills(),
    "frame_records": frames(),
    "gather_rows": gathered_rows(),
    "gather_spans": gathers(),
    "json_lines": record_scans(),
    "locate_features": locates(),
    "locate_members": member_searches(),
    "locate_steps": step_searches(),
    "masked_crc32c": any_bytes(),
    "number_rows": row_numbers(),
    "pad_spans": pads(),
    "permute": permutes(),
    "place_rows": placed_rows(),
    "plain_csv": plain_rows(),
    "plain_json": plain_objects(),
    "plan_rows": row_plans(),
    "scan_lines": texts(),
    "scan_records": scans(),
    "scan_samples": sample_scans(),
    "shuffle_steps": steps(),
    "slots_at": rebuilds(),
    "unknown_key": key_searches(),
}
MANY = cases(120, 2000)
# Those whose first result is a status: unless it is OK, what the outputs hold is not told.
WITH_STATUS = {
    "count_values",
    "fill_bytes_spans",
    "fill_floats",
    "fill_int64s",
    "locate_features",
    "locate_steps",
    "plain_csv",
    "plain_json",
}


def outcome(function: Callable[..., Any], args: list[Any]) -> tuple[Any, list[Any]]:
    """What a call returns or raises, and what it leaves in its arguments."""
    args = [each if isinstance(each, np.ndarray) and not each.flags.writeable else copy.copy(each) for each in args]
    try:
        result = function(*args)
    except ValueError as error:
        return str(error), []
    return result, [each for each in args if isinstance(each, np.ndarray)]


def clear_unused_rooms(arrays: list[Any]) -> None:
    """What is behind the last step of a key is not told: the steps of an earlier entry, which the last one replaces."""
    rooms, counts = arrays[5], arrays[6]
    keys = rooms.size - 1
    for j, found in enumerate(np.split(counts, keys) if keys else ()):
        for out in arrays[-3:]:
            out[rooms[j] + found[found > 0].sum() : rooms[j + 1]] = 0


def check(name: str, function: Callable[..., Any], examples: int) -> None:
    """Law 6, for one implementation."""
    statuses = set()

    @settings(max_examples=examples, deadline=None, derandomize=True, database=None)
    @given(args=STRATEGIES[name])
    def run(args: list[Any]) -> None:
        expected, expected_arrays = outcome(KERNELS[name].reference, args)
        result, arrays = outcome(function, args)
        assert result == expected
        if name in WITH_STATUS:
            statuses.add(result if isinstance(result, str) else result[0])
            if isinstance(result, str) or result[0] != example_values.OK:
                return
        if name == "locate_steps":
            clear_unused_rooms(arrays)
            clear_unused_rooms(expected_arrays)
        if name == "scan_lines" and not isinstance(result, str):  # what is behind the lines is not told
            arrays, expected_arrays = [[each[: result[0]] for each in made[1:]] for made in (arrays, expected_arrays)]
        for array, other in zip(arrays, expected_arrays, strict=True):
            np.testing.assert_array_equal(array, other)

    run()
    if name in WITH_STATUS and examples >= MANY:  # few examples may miss one of them
        assert {example_values.OK, example_values.MALFORMED} <= statuses


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_compiled_does_what_the_reference_does(name: str) -> None:
    check(name, KERNELS[name].compiled(timeout=300), MANY if name in WITH_STATUS else cases(40, MANY))


@pytest.mark.parametrize("name", sorted(KERNELS))
def test_the_source_never_leaves_its_arrays(name: str) -> None:
    # As plain Python every access is checked, those of `machine` included.
    with np.errstate(over="ignore"):
        check(name, KERNELS[name].source, cases(30, 400))


def test_every_kernel_has_a_strategy() -> None:
    assert sorted(STRATEGIES) == sorted(KERNELS)
