# SPDX-License-Identifier: Apache-2.0
"""Arrays as messages: the bytes are those that TensorFlow 2.21 writes."""

from typing import Any

import numpy as np
import pytest

from distinput.errors import InvalidArgumentError
from distinput.formats.tensor_message import (
    deserialize_many_sparse,
    parse_tensor,
    serialize_many_sparse,
    serialize_sparse,
    serialize_tensor,
)
from distinput.values.sparse_tensor import SparseTensor

WRITTEN: list[tuple[Any, str]] = [
    (np.array([[1, 2], [3, 4]], np.int32), "080312081202080212020802221001000000020000000300000004000000"),
    (np.float32(1.5), "0801120022040000c03f"),
    (np.array([True, False]), "080a12041202080222020100"),
    (np.zeros((0, 3), np.float32), "08011206120012020803"),
    (np.array([1, 2], np.int8), "080612041202080222020102"),
    (np.array([1, 2], np.int16), "0805120412020802220401000200"),
    (np.array([1, 2], np.int64), "0809120412020802221001000000000000000200000000000000"),
    (np.array([1, 2], np.uint8), "080412041202080222020102"),
    (np.array([1, 2], np.uint16), "0811120412020802220401000200"),
    (np.array([1, 2], np.uint32), "081612041202080222080100000002000000"),
    (np.array([1, 2], np.uint64), "0817120412020802221001000000000000000200000000000000"),
    (np.array([1, 2], np.float16), "08131204120208022204003c0040"),
    (np.array([1, 2], np.float64), "08021204120208022210000000000000f03f0000000000000040"),
    (np.array([1, 2], np.complex64), "080812041202080222100000803f000000000000004000000000"),
]

SPARSE = SparseTensor(np.array([[0, 1], [1, 0]]), np.array([5, 6], np.int32), np.array([2, 3]))


@pytest.mark.parametrize("array, expected", WRITTEN, ids=lambda each: getattr(each, "dtype", ""))
def test_arrays_are_written_and_read_as_by_tensorflow(array: Any, expected: str) -> None:
    assert serialize_tensor(array).hex() == expected
    found = parse_tensor(bytes.fromhex(expected), array.dtype)
    assert (found.dtype, found.shape, found.tolist()) == (array.dtype, array.shape, array.tolist())


def test_texts_are_written_and_read() -> None:
    assert serialize_tensor(["a", "bc"]).hex() == "080712041202080242016142026263"
    assert parse_tensor(serialize_tensor(["a", "bc"]), "string").tolist() == [b"a", b"bc"]
    assert parse_tensor(serialize_tensor("x"), "string") == b"x"


@pytest.mark.parametrize(
    "message, dtype, expected",
    [
        ("080112041202080422100000803f000000400000004000000040", "float32", [1.0, 2.0, 2.0, 2.0]),
        ("08011204120208042a0400004040", "float32", [3.0] * 4),  # filled with the last value
        ("0809120412020803520207035203ac0201", "int64", None),  # more values than the shape has
        ("080912041202080352020703", "int64", [7, 3, 3]),
        ("080a120412020802580158005801", "bool", None),
        ("0813120412020802680168ff07", "float16", [5.960464477539063e-08, 6.097555160522461e-05]),
        ("08081204120208014a080000803f00000040", "complex64", [1 + 2j]),
        ("0803120412020802", "int32", [0, 0]),
        ("08071204120208024201" + "61", "string", [b"a", b"a"]),
    ],
)
def test_lists_of_values_are_read(message: str, dtype: str, expected: Any) -> None:
    if expected is None:
        with pytest.raises(
            InvalidArgumentError, match=r"parse_tensor: a tensor of shape \[\d\] must have \d values, got \d"
        ):
            parse_tensor(bytes.fromhex(message), dtype)
    else:
        assert parse_tensor(bytes.fromhex(message), dtype).tolist() == expected


def test_what_is_refused() -> None:
    with pytest.raises(
        InvalidArgumentError, match=r"Type mismatch between parsed tensor \(int32\) and dtype \(int64\)"
    ):
        parse_tensor(bytes.fromhex(WRITTEN[0][1]), "int64")
    for bad in (b"\xff", b"", b"\x08\x63", "text", bytes.fromhex(WRITTEN[0][1])[:-1]):
        with pytest.raises(InvalidArgumentError, match="parse_tensor: serialized must be a TensorProto message, got"):
            parse_tensor(bad, "int32")  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="serialize_tensor: no message holds datetime64"):
        serialize_tensor(np.array(["2020-01-01"], "datetime64[D]"))


def test_a_few_bytes_do_not_ask_for_all_memory() -> None:
    huge = bytes.fromhex("08011208120608") + b"\xff\xff\xff\xff\x7f" + bytes.fromhex("2a0400004040")
    with pytest.raises(
        InvalidArgumentError, match="only smaller tensors, of 268435456 bytes, are filled with the last one"
    ):
        parse_tensor(huge, "float32")


def test_sparse_tensors() -> None:
    three = serialize_sparse(SPARSE)
    assert [each.hex()[:60] for each in three] == [
        "080912081202080212020802222000000000000000000100000000000000",
        "080312041202080222080500000006000000",
        "0809120412020802221002000000000000000300000000000000",
    ]
    many = serialize_many_sparse(SPARSE)
    assert many.shape == (2, 3)
    found = deserialize_many_sparse(many, "int32", rank=1)
    assert found.to_dense().tolist() == SPARSE.to_dense().tolist()
    with pytest.raises(InvalidArgumentError, match="serialize_sparse: sp_input must be a SparseTensor, got list"):
        serialize_sparse([1])  # type: ignore[arg-type]
    with pytest.raises(InvalidArgumentError, match="serialize_many_sparse: out_type must be string"):
        serialize_many_sparse(SPARSE, np.int64)
    with pytest.raises(InvalidArgumentError, match="sp_input must have rank 2 or more"):
        serialize_many_sparse(SparseTensor(np.array([[1]]), np.array([1]), np.array([2])))
    with pytest.raises(InvalidArgumentError, match="rows must have one rank, and a place for each value"):
        deserialize_many_sparse(many, "int32", rank=2)
    with pytest.raises(InvalidArgumentError, match=r"serialized_sparse must have the shape \[n, 3\]"):
        deserialize_many_sparse(three, "int32")
