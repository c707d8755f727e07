# SPDX-License-Identifier: Apache-2.0
"""A wrong number in an Arrow file is a `DataLossError` that names the file and the column; nothing is read outside of it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import ipc

import distinput as di

WRONG = (-1, -(2**31), 2**31 - 1, 1 << 20)
TEXTS = [b"first text, long enough", b"b", b"third text, just as long", b""]

# By name: an array, which of its buffers holds the numbers that lead somewhere, and which int32 of it to replace.
ARRAYS: dict[str, tuple[Callable[[], Any], Callable[[Any], Any], tuple[int, ...]]] = {
    "text": (lambda: pa.array(TEXTS, pa.binary()), lambda a: a.buffers()[1], (0, 1, 2, 3, 4)),
    "large text": (lambda: pa.array(TEXTS, pa.large_binary()), lambda a: a.buffers()[1], (0, 2, 3, 8, 9)),
    "text view": (lambda: pa.array(TEXTS, pa.binary_view()), lambda a: a.buffers()[1], (0, 2, 3, 4, 8, 10, 11, 12)),
    "list": (lambda: pa.array([[1, 2], [], [3]]), lambda a: a.buffers()[1], (0, 1, 2, 3)),
    "large list": (
        lambda: pa.array([[1, 2], [], [3]], pa.large_list(pa.int32())),
        lambda a: a.buffers()[1],
        (0, 2, 3, 4, 6),
    ),
    "list view starts": (
        lambda: pa.array([[1, 2], [], [3]], pa.list_view(pa.int32())),
        lambda a: a.buffers()[1],
        (0, 1, 2),
    ),
    "list view sizes": (
        lambda: pa.array([[1, 2], [], [3]], pa.list_view(pa.int32())),
        lambda a: a.buffers()[2],
        (0, 1, 2),
    ),
    "list of texts": (lambda: pa.array([TEXTS[:2], TEXTS[2:]]), lambda a: a.values.buffers()[1], (0, 1, 2, 3, 4)),
    "dictionary": (
        lambda: pa.array(TEXTS, pa.binary()).dictionary_encode(),
        lambda a: a.dictionary.buffers()[1],
        (0, 1, 4),
    ),
    "index": (lambda: pa.array(TEXTS, pa.binary()).dictionary_encode(), lambda a: a.indices.buffers()[1], (0, 1, 3)),
}


def damaged(path: Path, name: str, place: int, value: int, *, stream: bool) -> Path:
    """A file in which one int32 is another one."""
    make, numbers_of, _ = ARRAYS[name]
    array = make()
    batch = pa.record_batch({"fine": np.arange(len(array)), "column": array})
    sink = pa.BufferOutputStream()
    with (ipc.new_stream if stream else ipc.new_file)(sink, batch.schema) as writer:
        writer.write_batch(batch)
    content = bytearray(sink.getvalue().to_pybytes())
    numbers = numbers_of(array).to_pybytes()
    assert content.count(numbers) == 1, "the buffer must be found for sure"
    at = content.index(numbers) + 4 * place
    content[at : at + 4] = np.int32(value).tobytes()
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("name", ARRAYS)
def test_one_wrong_number(tmp_path: Path, name: str, stream: bool) -> None:
    for place in ARRAYS[name][2]:
        for value in WRONG:
            path = damaged(tmp_path / f"{place} {value}.arrow", name, place, value, stream=stream)
            dataset = di.data.ArrowDataset(str(path))
            with pytest.raises(
                di.errors.DataLossError, match=rf"{path.name}: record batch 0: damaged: column 'column': "
            ):
                dataset.to_list()
            # Columns that are not asked for are not looked at.
            assert len(di.data.ArrowDataset(str(path), columns=["fine"]).to_list()) == len(ARRAYS[name][0]())


def test_rows_by_their_numbers(tmp_path: Path) -> None:
    path = damaged(tmp_path / "a.arrow", "text", 2, 1 << 20, stream=False)
    with pytest.raises(di.errors.DataLossError, match=r"a\.arrow: record batch 0: damaged: column 'column'"):
        di.data.ArrowDataset(str(path)).global_shuffle(seed=1).to_list()


def test_a_trusted_file_is_not_looked_at(tmp_path: Path) -> None:
    path = damaged(tmp_path / "a.arrow", "text", 0, 1, stream=False)
    assert len(di.data.ArrowDataset(str(path)).take(0).to_list()) == 0
    di.io.write_arrow(tmp_path / "b.arrow", {"x": np.arange(3), "y": TEXTS[:3]})
    trusted = di.data.ArrowDataset(str(tmp_path / "b.arrow"), trusted=True)
    assert trusted.to_list() == di.data.ArrowDataset(str(tmp_path / "b.arrow")).to_list()


def test_a_wrong_count_of_nulls(tmp_path: Path) -> None:
    from distinput.arrow.arrow import ArrowDamageError, check_array

    bits, data = pa.py_buffer(bytes([0b0101])), pa.py_buffer(np.arange(4))
    check_array(pa.Array.from_buffers(pa.int64(), 4, [bits, data], 2), "x")
    with pytest.raises(ArrowDamageError, match="column 'x': 3 nulls are said to be there"):
        check_array(pa.Array.from_buffers(pa.int64(), 4, [bits, data], 3), "x")


def test_damaged_arrays_of_the_users_own() -> None:
    for wrong in ([0, 2, 1, 3], [0, 3, -1, 3]):
        buffers = [None, pa.py_buffer(np.array(wrong, np.int32)), pa.py_buffer(b"abc")]
        with pytest.raises(di.errors.InvalidArgumentError, match=r"the array is damaged: column .*: offsets must not"):
            di.data.Dataset.from_tensor_slices({"x": pa.Array.from_buffers(pa.binary(), 3, buffers)})
