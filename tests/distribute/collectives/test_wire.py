# SPDX-License-Identifier: Apache-2.0
"""Arrays as bytes and back, records, folds: what crosses between workers, without any."""

import importlib
import math

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from distinput.distribute.collectives.call import ABOUT, INLINE, RECORD, Call
from distinput.distribute.collectives.collectives import _pieces
from distinput.distribute.collectives.fold import check_reducible, fold, native_view
from distinput.distribute.collectives.seat import Seat
from distinput.distribute.collectives.wire import as_array, describe, from_bytes, parse, to_bytes
from distinput.distribute.engines.address import own_address, split_address

SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@given(hnp.arrays(hnp.scalar_dtypes(), SHAPES))
def test_an_array_comes_back(array: npt.NDArray[np.generic]) -> None:
    sent = as_array(array, "test")
    assert sent.shape == array.shape
    back = from_bytes(to_bytes(sent).copy(), *parse(describe(sent)))
    assert (back.dtype, back.shape) == (array.dtype.newbyteorder("="), array.shape)
    assert back.flags.c_contiguous
    assert back.flags.writeable
    assert back.tobytes() == sent.tobytes()


@given(st.lists(st.one_of(st.binary(), st.text(st.characters(exclude_categories=["Cs"])))), st.booleans())
def test_words_come_back(words: list[bytes | str], rows: bool) -> None:
    array = np.empty(len(words), object)
    array[:] = words
    array = array.reshape((-1, 1) if rows else (-1,))
    back = from_bytes(to_bytes(as_array(array, "test")), *parse(describe(array)))
    assert (back.dtype, back.shape, back.tolist()) == (array.dtype, array.shape, array.tolist())


def test_extension_numbers_come_back() -> None:
    try:
        bfloat16 = importlib.import_module("ml_dtypes").bfloat16
    except ModuleNotFoundError:
        pytest.skip("ml_dtypes is not installed; it comes with JAX")
    array = np.array([1.5, -2], bfloat16)
    check_reducible(array.dtype, "sum")
    back = from_bytes(to_bytes(as_array(array, "test")), *parse(describe(array)))
    assert back.dtype == bfloat16
    assert fold([back, back], "sum").tolist() == [3, -4]


@pytest.mark.parametrize(
    "value, says",
    [
        ([None], "may hold bytes and str only, got NoneType"),
        (np.zeros(2, [("a", "i4")]), "send the fields one by one"),
        (np.zeros(2, "V3"), "needs numbers"),
    ],
)
def test_what_cannot_travel(value: object, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        as_array(value, "test")


def test_an_unknown_dtype_of_the_root() -> None:
    with pytest.raises(TypeError, match="'float5' of the root is not known here; import ml_dtypes"):
        parse("float5 2")


@given(
    st.integers(0, 2**60),
    st.text(max_size=200),
    st.text(max_size=ABOUT // 4),
    st.binary(max_size=INLINE),
    st.booleans(),
)
def test_a_record_comes_back(number: int, same: str, about: str, data: bytes, refused: bool) -> None:
    call = Call(number, same, about, len(data), refused, data)
    record = call.encode()
    assert len(record) == RECORD
    back = Call.decode(record)
    assert (back.number, back.about, back.nbytes, back.refused, back.inline) == (
        number,
        about,
        len(data),
        refused,
        data,
    )
    if len(same.encode()) <= 128:
        assert back.same == same


def test_long_calls_that_differ_at_the_end_stay_different() -> None:
    one, other = (Call.decode(Call(0, "all_gather " + "1," * 100 + end).encode()) for end in "23")
    assert one.same != other.same


def test_a_record_of_another_version() -> None:
    record = Call(0, "barrier").encode()
    record[2] += 1
    with pytest.raises(ValueError, match="the same version of distinput"):
        Call.decode(record)


@given(st.integers(1, 5), st.integers(0, 5), st.sampled_from(["u1", "u2", "u4", "u8", "c8", "c16", "i8", "f4"]))
def test_the_native_view_reduces_to_the_same_bytes(size: int, length: int, dtype: str) -> None:
    generator = np.random.default_rng([size, length])
    parts = [generator.integers(0, 2**62, length).astype(dtype) for _ in range(size)]
    for op in ("sum", "prod"):
        native = fold([native_view(part, op) for part in parts], op).view(dtype)
        assert native.tobytes() == fold(parts, op).tobytes()


def test_a_fold_goes_in_rank_order() -> None:
    parts = [np.array(value, "f4") for value in (1e8, 1.0, -1e8)]
    assert fold(parts, "sum") == np.float32(0)  # (1e8 + 1) - 1e8, in which the 1 is lost
    assert fold(parts[::-1], "sum") == np.float32(0)
    assert fold([parts[0], parts[2], parts[1]], "sum") == np.float32(1)


def test_a_fold_of_one_is_a_copy() -> None:
    part = np.zeros(2)
    fold([part], "sum")[:] = 1
    assert part.tolist() == [0, 0]


@pytest.mark.parametrize("dtype, op", [("?", "sum"), ("?", "prod"), ("S1", "max"), ("M8[s]", "min"), ("O", "sum")])
def test_what_cannot_be_reduced(dtype: str, op: str) -> None:
    with pytest.raises(TypeError, match=r"all_reduce: op .* needs numbers"):
        check_reducible(np.dtype(dtype), op)


def test_an_unknown_operation() -> None:
    with pytest.raises(ValueError, match="op must be one of max, min, prod, sum, got 'mean'"):
        check_reducible(np.dtype("f4"), "mean")


@given(st.integers(0, 100), st.integers(1, 20), st.sampled_from([1, 2, 8]))
def test_pieces_cover_everything_once(items: int, limit: int, item: int) -> None:
    pieces = list(_pieces(items * item, limit, item))
    assert [i for piece in pieces for i in range(items)[piece]] == list(range(items))
    assert all((piece.stop - piece.start) * item <= max(limit, item) for piece in pieces)
    assert len(pieces) <= math.ceil(items / max(1, limit // item))


def test_the_own_seat() -> None:
    seat = Seat.mine()
    assert Seat.decode(seat.encode()) == seat
    elsewhere = Seat(b"another machine!", seat.process, seat.started)
    assert seat.state(elsewhere) == "unknown"
    if not seat.started:
        pytest.skip("this system does not show when a process was started")
    assert seat.state(seat) == "alive"
    assert seat.state(Seat(seat.machine, seat.process, seat.started + 1)) == "dead"


@pytest.mark.parametrize("address", ["", "host", "host:", ":80", "host:x", "host:70000", "host:-1"])
def test_what_is_not_an_address(address: str) -> None:
    with pytest.raises(ValueError, match="must be host:port"):
        split_address(address)


def test_the_own_address_towards_this_machine() -> None:
    assert own_address("127.0.0.1", 9) == "127.0.0.1"
    assert own_address("no-such-host.invalid", 9) is None
