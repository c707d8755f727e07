# SPDX-License-Identifier: Apache-2.0
"""A JSON value and arrays as one array of bytes."""

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from distinput.distribute.collectives.channel import packed, unpacked

ARRAYS = hnp.arrays(hnp.scalar_dtypes(), hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3))
NOTES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text()),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)


@given(NOTES, st.lists(ARRAYS, max_size=4))
def test_a_note_and_arrays_come_back(note: object, arrays: list[npt.NDArray[np.generic]]) -> None:
    back, received = unpacked(packed(note, arrays))
    assert back == note
    assert len(received) == len(arrays)
    for array, mine in zip(received, arrays, strict=True):
        assert (array.dtype, array.shape) == (mine.dtype.newbyteorder("="), mine.shape)
        assert array.tobytes() == mine.astype(array.dtype).tobytes()
        assert array.flags.writeable


def test_bytes_and_texts_come_back_in_their_shape() -> None:
    words = np.array([[b"a", b""], ["\N{SNOWMAN}", b"\xff\0"]], object)
    _, (numbers, back, empty) = unpacked(packed(None, [np.float32(2.5), words, np.zeros((0, 2), object)]))
    assert back.tolist() == words.tolist()
    assert (numbers.shape, numbers.tolist(), empty.shape) == ((), 2.5, (0, 2))


def test_extension_dtypes_keep_their_names() -> None:
    ml_dtypes = pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed; it comes with JAX")
    _, (back,) = unpacked(packed(None, [np.array([1.5, -2], ml_dtypes.bfloat16)]))
    assert back.dtype == ml_dtypes.bfloat16
    assert back.tolist() == [1.5, -2]


def test_other_objects_are_refused() -> None:
    with pytest.raises(TypeError, match="an object array may hold bytes and str only, got dict"):
        packed(None, [np.array([{}], object)])
