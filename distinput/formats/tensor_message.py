# SPDX-License-Identifier: Apache-2.0
"""Arrays as `TensorProto` messages, in which TensorFlow's programs keep them in records; without the protobuf library."""

from math import prod
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError
from distinput.formats.example_encoding import field, message_of
from distinput.kernels.protobuf import MalformedError, read_fields, read_varint, read_varints, varint_bytes
from distinput.values.leaves import STRING, Array, as_dtype, as_leaf, dtype_name
from distinput.values.sparse_tensor import SparseTensor

_NUMBERS: dict[np.dtype[Any], int] = {
    np.dtype(name): number
    for name, number in {
        "float32": 1, "float64": 2, "int32": 3, "uint8": 4, "int16": 5, "int8": 6, "complex64": 8, "int64": 9, "bool": 10,
        "uint16": 17, "complex128": 18, "float16": 19, "uint32": 22, "uint64": 23,
    }.items()
}  # fmt: skip
"""The number of each dtype in a message."""

_TEXT = 7
_DTYPES = {number: dtype for dtype, number in _NUMBERS.items()} | {_TEXT: STRING}

_DTYPE, _SHAPE, _CONTENT, _STRINGS = 1, 2, 4, 8

_FIXED = {5: "<f4", 6: "<f8", 9: "<f4", 12: "<f8"}
"""Lists of floating-point numbers: float_val, double_val, and the halves of scomplex_val and dcomplex_val."""

_WHOLE = {7, 10, 11, 13, 16, 17}
"""Lists of integers: int_val, int64_val, bool_val, half_val (the bits), uint32_val, uint64_val."""

_MOST_FILLED = 1 << 28
"""Bytes of an array that a message may leave to be filled with its last value: a few bytes must not ask for all memory."""


def serialize_tensor(tensor: Any, name: str | None = None) -> bytes:
    r"""An array as a `TensorProto` message; the bytes are those that TensorFlow writes.

    Args:
      tensor: an array, number, text or list.
      name: ignored.

    Raises:
      InvalidArgumentError: no message can hold its dtype.

    >>> serialize_tensor(np.array([1, 2], np.int8))
    b'\x08\x06\x12\x04\x12\x02\x08\x02"\x02\x01\x02'

    Source: `tf.io.serialize_tensor`.
    """
    del name
    leaf = as_leaf(tensor)
    array = np.asarray(leaf, object) if isinstance(leaf, bytes) else np.asarray(leaf)
    shape = b"".join([field(2, b"\x08" + varint_bytes(size) if size else b"") for size in array.shape])
    if array.dtype == STRING:
        values = b"".join([field(_STRINGS, item) for item in array.reshape(-1).tolist()])
        return b"\x08" + varint_bytes(_TEXT) + field(_SHAPE, shape) + values
    number = _NUMBERS.get(array.dtype.newbyteorder("="))
    if number is None:
        raise InvalidArgumentError(f"serialize_tensor: no message holds {array.dtype}; cast it to another dtype")
    content = array.astype(array.dtype.newbyteorder("<"), copy=False).tobytes()
    return b"\x08" + varint_bytes(number) + field(_SHAPE, shape) + (field(_CONTENT, content) if content else b"")


def parse_tensor(serialized: bytes, out_type: Any, name: str | None = None) -> Any:
    """The array in a `TensorProto` message.

    Args:
      serialized: the message.
      out_type: the dtype that it must have.
      name: ignored.

    Raises:
      InvalidArgumentError: it is no such message, or holds another dtype.

    >>> parse_tensor(serialize_tensor([[1.5, 2.0]]), "float32")
    array([[1.5, 2. ]], dtype=float32)

    Source: `tf.io.parse_tensor`.
    """
    del name
    wanted = as_dtype(out_type)
    try:
        dtype, shape, values = _read(message_of(serialized))
    except MalformedError as error:
        raise InvalidArgumentError(
            f"parse_tensor: serialized must be a TensorProto message, got {serialized!r:.60}"
        ) from error
    if dtype != wanted:
        raise InvalidArgumentError(
            f"parse_tensor: Type mismatch between parsed tensor ({dtype_name(dtype)}) and dtype ({dtype_name(wanted)})"
        )
    size = prod(shape)
    if len(values) > size:
        raise InvalidArgumentError(
            f"parse_tensor: a tensor of shape {list(shape)} must have {size} values, got {len(values)}"
        )
    if len(values) < size:
        if size * max(1, dtype.itemsize) > _MOST_FILLED:
            raise InvalidArgumentError(
                f"parse_tensor: a tensor of shape {list(shape)} must have {size} values, got {len(values)}; only smaller "
                f"tensors, of {_MOST_FILLED} bytes, are filled with the last one"
            )
        whole = np.empty(size, dtype)
        whole[: len(values)] = values
        whole[len(values) :] = values[-1] if len(values) else b"" if dtype == STRING else 0
        values = whole
    made = values.reshape(shape)
    return made if shape else made[()]


def _read(message: bytes) -> tuple[np.dtype[Any], tuple[int, ...], Array]:
    """Dtype, shape and values.

    Raises:
      MalformedError: it is no such message.
    """
    message = bytes(message)
    number, content = 0, None
    shape: tuple[int, ...] = ()
    texts: list[bytes] = []
    numbers: list[Any] = []
    form = ""
    for tag, start, stop in read_fields(message):
        place, wire, part = tag >> 3, tag & 7, message[start:stop]
        if place == _DTYPE and wire == 0:
            number, _ = read_varint(part, 0)
        elif place == _SHAPE and wire == 2:
            shape = _shape(part)
        elif place == _CONTENT and wire == 2:
            content = part
        elif place == _STRINGS and wire == 2:
            texts.append(part)
        elif place in _FIXED and wire in (1, 2, 5):
            form = _FIXED[place]
            if len(part) % np.dtype(form).itemsize:
                raise MalformedError
            numbers += np.frombuffer(part, form).tolist()
        elif place in _WHOLE and wire in (0, 2):
            numbers += read_varints(part)
    dtype = _DTYPES.get(number)
    if dtype is None:
        raise MalformedError
    if dtype == STRING:
        return dtype, shape, np.array(texts, object)
    if content is not None:
        if len(content) % dtype.itemsize:
            raise MalformedError
        return dtype, shape, np.frombuffer(content, dtype.newbyteorder("<")).astype(dtype)
    return dtype, shape, _values(numbers, dtype)


def _values(numbers: list[Any], dtype: np.dtype[Any]) -> Array:
    """The numbers of a list as an array."""
    if dtype.kind == "c":
        if len(numbers) % 2:
            raise MalformedError
        return (np.array(numbers[::2]) + 1j * np.array(numbers[1::2])).astype(dtype)
    if dtype == np.float16:
        return np.array([number & 0xFFFF for number in numbers], np.uint16).view(np.float16)
    if dtype.kind == "f":
        return np.array(numbers, dtype)
    if any(isinstance(number, float) for number in numbers):
        raise MalformedError
    return np.array(numbers, np.uint64).astype(dtype)


def _shape(message: bytes) -> tuple[int, ...]:
    sizes = []
    for tag, start, stop in read_fields(message):
        if tag >> 3 == 3 and tag & 7 == 0 and read_varint(message[start:stop], 0)[0]:
            raise MalformedError  # an unknown rank, which no value has
        if tag != 2 << 3 | 2:
            continue
        size = 0
        for inner, first, end in read_fields(message[start:stop]):
            if inner == 1 << 3:
                size, _ = read_varint(message[start:stop][first:end], 0)
        if size >= 1 << 63:
            raise MalformedError
        sizes.append(size)
    return tuple(sizes)


def serialize_sparse(sp_input: SparseTensor, out_type: Any = STRING, name: str | None = None) -> Array:
    """A sparse tensor as three messages [3]: its indices, its values and its shape.

    Args:
      sp_input: the sparse tensor.
      out_type: "string".
      name: ignored.

    Raises:
      InvalidArgumentError: it is no sparse tensor, or another `out_type`.

    >>> import distinput as di
    >>> made = serialize_sparse(di.SparseTensor(np.array([[0, 1]]), np.array([7]), np.array([2, 2])))
    >>> parse_tensor(made[1], "int64")
    array([7])

    Source: `tf.io.serialize_sparse`.
    """
    del name
    _check_sparse("serialize_sparse", sp_input, out_type)
    places, shape = np.asarray(sp_input.indices, np.int64), np.asarray(sp_input.dense_shape, np.int64)
    return np.array([serialize_tensor(part) for part in (places, sp_input.values, shape)], object)


def serialize_many_sparse(sp_input: SparseTensor, out_type: Any = STRING, name: str | None = None) -> Array:
    """The rows of a sparse tensor, three messages [n, 3] for each.

    Args:
      sp_input: the sparse tensor, of rank 2 or more.
      out_type: "string".
      name: ignored.

    Raises:
      InvalidArgumentError: it is no sparse tensor, its rank is below 2, or another `out_type`.

    >>> import distinput as di
    >>> made = serialize_many_sparse(di.SparseTensor(np.array([[0, 1], [1, 0]]), np.array([7, 8]), np.array([2, 2])))
    >>> deserialize_many_sparse(made, "int64").to_dense().tolist()
    [[0, 7], [8, 0]]

    Source: `tf.io.serialize_many_sparse`.
    """
    del name
    _check_sparse("serialize_many_sparse", sp_input, out_type)
    shape = np.asarray(sp_input.dense_shape, np.int64)
    if len(shape) < 2:
        raise InvalidArgumentError(
            f"serialize_many_sparse: sp_input must have rank 2 or more, got shape {shape.tolist()}"
        )
    indices, values = np.asarray(sp_input.indices, np.int64), np.asarray(sp_input.values)
    rows = [
        serialize_sparse(SparseTensor(indices[where, 1:], values[where], shape[1:]))
        for where in (np.flatnonzero(indices[:, 0] == row) for row in range(int(shape[0])))
    ]
    return np.stack(rows) if rows else np.empty((0, 3), object)


def deserialize_many_sparse(
    serialized_sparse: Any, dtype: Any, rank: int | None = None, name: str | None = None
) -> SparseTensor:
    """The sparse tensor whose rows are given as three messages each.

    Args:
      serialized_sparse: [n, 3], as `serialize_many_sparse` makes them.
      dtype: of the values.
      rank: of a row; None: as the messages say.
      name: ignored.

    Raises:
      InvalidArgumentError: these are no such messages, or rows differ in rank.

    Source: `tf.io.deserialize_many_sparse`.
    """
    del name
    rows = np.asarray(serialized_sparse, object)
    if rows.ndim != 2 or rows.shape[1] != 3 or not len(rows):
        raise InvalidArgumentError(
            f"deserialize_many_sparse: serialized_sparse must have the shape [n, 3], n at least 1, got {list(rows.shape)}"
        )
    parts = [
        (parse_tensor(a, np.int64), parse_tensor(b, dtype), parse_tensor(c, np.int64)) for a, b, c in rows.tolist()
    ]
    ranks = {len(shape) for _, _, shape in parts} | ({rank} if rank is not None else set())
    if len(ranks) > 1 or any(indices.shape != (len(values), len(shape)) for indices, values, shape in parts):
        raise InvalidArgumentError("deserialize_many_sparse: rows must have one rank, and a place for each value")
    indices = [np.column_stack([np.full(len(each), row, np.int64), each]) for row, (each, _, _) in enumerate(parts)]
    largest = np.max([shape for _, _, shape in parts], axis=0)
    values = np.concatenate([each for _, each, _ in parts])
    return SparseTensor(np.concatenate(indices), values, np.array([len(parts), *largest.tolist()], np.int64))


def _check_sparse(op: str, sp_input: Any, out_type: Any) -> None:
    if not isinstance(sp_input, SparseTensor):
        raise InvalidArgumentError(f"{op}: sp_input must be a SparseTensor, got {type(sp_input).__name__}")
    if as_dtype(out_type) != STRING:
        raise InvalidArgumentError(f"{op}: out_type must be string, got {out_type!r}")
