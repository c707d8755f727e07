# SPDX-License-Identifier: Apache-2.0
import io
import zipfile
from typing import Any

import numpy as np
import pytest

from distinput.decoders import arrays
from distinput.decoders.arrays import decode_npy, decode_npz
from distinput.errors import DataLossError, DistinputError, InvalidArgumentError


def saved(save: Any, *args: Any, **kwargs: Any) -> bytes:
    file = io.BytesIO()
    save(file, *args, **kwargs)
    return file.getvalue()


@pytest.mark.parametrize(
    "array", [np.arange(6).reshape(2, 3), np.array(1.5), np.arange(3, dtype=">f4"), np.array([], bool)]
)
def test_arrays_as_numpy_saves_them(array: Any) -> None:
    found = decode_npy(saved(np.save, array))
    assert found.dtype == array.dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, array)
    for save in (np.savez, np.savez_compressed):
        several = decode_npz(saved(save, x=array, y=array))
        assert list(several) == ["x", "y"]
        np.testing.assert_array_equal(several["y"], array)


class Harm:
    def __reduce__(self) -> Any:
        return pytest.fail, ("it was executed",)


def test_pickles_are_never_read() -> None:
    harm = np.array([Harm()], object)
    for decode, content in (
        (decode_npy, saved(np.save, harm, allow_pickle=True)),
        (decode_npz, saved(np.savez, harm)),
    ):
        with pytest.raises(InvalidArgumentError, match="only pickle reads"):
            decode(content)


def test_what_is_no_array_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    npz = saved(np.savez, x=np.zeros(1000))
    other = io.BytesIO()
    with zipfile.ZipFile(other, "w") as archive:
        archive.writestr("../x.txt", b"")
    for decode, content, error, says in (
        (decode_npy, b"", DataLossError, "not a .npy file, or damaged"),
        (decode_npy, npz, DataLossError, "an archive of several"),
        (decode_npy, saved(np.save, np.array(["x"])), InvalidArgumentError, "dtype <U1, which no element has"),
        (
            decode_npy,
            2 * saved(np.save, np.arange(3)),
            DataLossError,
            "another array begins at byte 152, behind the first",
        ),
        (decode_npz, b"PK", DataLossError, "not a .npz file, or damaged"),
        (decode_npz, other.getvalue(), InvalidArgumentError, "'../x.txt', which is no array"),
    ):
        with pytest.raises(error, match=says):
            decode(content)
    monkeypatch.setattr(arrays, "MOST_BYTES", 4000)
    with pytest.raises(InvalidArgumentError, match="take 8128 bytes, more than 4000"):
        decode_npz(npz)


def test_damage_is_an_error_of_ours() -> None:
    for content, decode in ((saved(np.save, np.arange(5)), decode_npy), (saved(np.savez, x=np.arange(5)), decode_npz)):
        for at in range(0, len(content), 3):
            for damaged in (content[:at], content[:at] + b"\xff" + content[at + 1 :]):
                try:
                    decode(damaged)
                except DistinputError:
                    continue
