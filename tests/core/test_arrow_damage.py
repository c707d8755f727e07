# SPDX-License-Identifier: Apache-2.0
"""Numbers that lead outside of an array's memory are found at every depth; sound arrays pass."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from distinput.arrow.arrow import ArrowDamageError, check_array, check_batch

WRITTEN: list[tuple[Any, tuple[int, ...]]] = []
"""Memory of offsets and what is written there later: pyarrow makes no array from wrong ones."""


def offsets(*values: int, wide: bool = False) -> Any:
    memory = np.zeros(len(values), np.int64 if wide else np.int32)
    WRITTEN.append((memory, values))
    return pa.py_buffer(memory)


def write() -> None:
    while WRITTEN:
        memory, values = WRITTEN.pop()
        memory[:] = values


def texts(*values: int, data: bytes = b"abc", wide: bool = False) -> Any:
    kind = pa.large_binary() if wide else pa.binary()
    return pa.Array.from_buffers(kind, len(values) - 1, [None, offsets(*values, wide=wide), pa.py_buffer(data)])


def lists(*values: int, inner: Any = None) -> Any:
    inner = pa.array([1, 2, 3]) if inner is None else inner
    return pa.Array.from_buffers(pa.list_(inner.type), len(values) - 1, [None, offsets(*values)], children=[inner])


def views(starts: list[int], sizes: list[int]) -> Any:
    inner = pa.array([1, 2, 3])
    buffers = [None, offsets(*starts), offsets(*sizes)]
    return pa.Array.from_buffers(pa.list_view(inner.type), len(starts), buffers, children=[inner])


def words(*indices: int) -> Any:
    return pa.DictionaryArray.from_arrays(pa.array(indices, pa.int8()), pa.array(["a", "b"]), safe=False)


def inside(array: Any) -> list[Any]:
    """The same array at other depths."""
    return [
        array,
        pa.chunked_array([array]),
        pa.StructArray.from_arrays([array], ["a"]),
        lists(0, len(array), inner=array),
        pa.FixedSizeListArray.from_arrays(array, len(array)),
    ]


SOUND = [
    lambda: texts(0, 1, 3), lambda: texts(0, 0, 0), lambda: texts(1, 2), lambda: texts(0, 1, 3, wide=True),
    lambda: lists(0, 1, 3), lambda: lists(1, 1, 2), lambda: views([2, 0], [1, 3]), lambda: views([3], [0]),
    lambda: words(0, 1, 1), lambda: pa.array([1, None]), lambda: pa.array(["a", None]),
    lambda: pa.array([None, None], pa.dictionary(pa.int8(), pa.string())),
]  # fmt: skip


@pytest.mark.parametrize("make", SOUND)
def test_sound_arrays_pass(make: Any) -> None:
    found = inside(make())
    write()
    for each in found:
        check_array(each, "x")


DAMAGED = [
    lambda: texts(0, 1, 4), lambda: texts(0, 2, 1), lambda: texts(-1, 2), lambda: texts(0, 1 << 30),
    lambda: texts(0, 1, 4, wide=True), lambda: texts(0, 1 << 62, wide=True), lambda: texts(0, 5, 3),
    lambda: lists(0, 1, 4), lambda: lists(0, 2, 1), lambda: lists(-1, 2), lambda: lists(0, 9, 3),
    lambda: views([0], [4]), lambda: views([-1], [1]), lambda: views([3], [1]), lambda: views([0], [-1]),
    lambda: views([(1 << 31) - 1], [(1 << 31) - 1]), lambda: words(0, 2), lambda: words(-1),
]  # fmt: skip


@pytest.mark.parametrize("make", DAMAGED)
def test_damaged_arrays_are_refused_at_every_depth(make: Any) -> None:
    found = inside(make())
    write()
    for each in found:
        with pytest.raises(ArrowDamageError, match="column 'x': "):
            check_array(each, "x")


def test_a_slice_is_judged_by_its_own_rows() -> None:
    array = texts(0, 1, 3, 99)
    first, last = array.slice(0, 2), array.slice(2, 1)
    write()
    check_array(first, "x")
    with pytest.raises(ArrowDamageError):
        check_array(last, "x")


def test_the_column_of_a_batch_is_named() -> None:
    batch = pa.RecordBatch.from_arrays([pa.array([1]), texts(0, 9)], ["good", "bad"])
    write()
    with pytest.raises(ArrowDamageError, match="column 'bad': "):
        check_batch(batch)
    check_batch(batch.select(["good"]))


@pytest.mark.parametrize("refused", [False, True])
def test_a_batch_is_validated_by_one_call_and_its_columns_tell_what_is_wrong(refused: bool) -> None:
    batch, calls = pa.record_batch({"a": [1, 2], "b": ["x", None]}), []

    def validate() -> None:
        calls.append(batch)
        if refused:
            raise pa.ArrowInvalid("the batch says so, of no column")

    check_batch(SimpleNamespace(schema=batch.schema, columns=batch.columns, validate=validate))
    assert calls == [batch]
