# SPDX-License-Identifier: Apache-2.0
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.decoders import DECODERS, EXTENSIONS, decoder_for
from distinput.decoders.members import MemberDecoder
from distinput.errors import InvalidArgumentError
from tests.archives import write_tar


def test_every_extension_has_a_decoder() -> None:
    assert set(EXTENSIONS.values()) <= set(DECODERS)
    assert all(callable(DECODERS.find(name)) for name in DECODERS)
    assert [decoder_for(name) for name in ("pyd", "pickle", "pkl", "pth", "pt", "x")] == ["bytes"] * 6


def test_samples_are_decoded_by_their_extensions(tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image").fromarray(np.arange(12, dtype=np.uint8).reshape(2, 2, 3))
    png, npy = io.BytesIO(), io.BytesIO()
    image.save(png, "PNG")
    np.save(npy, np.arange(3))
    files = {
        "0.cls": b"7",
        "0.json": b'{"a": 1}',
        "0.npy": npy.getvalue(),
        "0.pkl": b"?",
        "0.png": png.getvalue(),
        "0.txt": b"x",
    }
    made = di.data.WebDataset(write_tar(tmp_path / "a.tar", files), decode=True)
    assert made.element_spec["png"] == di.TensorSpec([None, None, None], "uint8")
    (found,) = made.to_list()
    assert found == {
        "__key__": b"0",
        "cls": 7,
        "json": {"a": 1},
        "npy": [0, 1, 2],
        "pkl": b"?",
        "png": np.asarray(image).tolist(),
        "txt": b"x",
    }


def test_members_are_decoded_as_the_user_says(tmp_path: Path) -> None:
    path = write_tar(
        tmp_path / "a.tar", {"0.a": b"7", "0.json": b'{"x": 1, "y": null}', "0.cls": b"5", "1.a": b"8", "1.cls": b"9"}
    )
    members = {"label": "cls", "n": "a", "meta": "json"}
    decode = {"label": True, "n": "class", "meta": {"x": di.TensorSpec([], "float32")}}
    assert di.data.WebDataset(path, members, decode=decode, missing="skip").to_list() == [
        {"label": 5, "n": 7, "meta": {"x": 1.0}}
    ]
    assert di.data.WebDataset(path, ["__url__", "cls"], decode={"cls": "class"}).to_list() == [
        {"__url__": path.encode(), "cls": 5},
        {"__url__": path.encode(), "cls": 9},
    ]


def test_an_error_names_the_archive_the_key_and_the_member(tmp_path: Path) -> None:
    path = write_tar(tmp_path / "a.tar", {"a/0.cls": b"7", "a/1.cls": b"cat"})
    with pytest.raises(InvalidArgumentError, match=rf"^{path}: sample 'a/1': member 'cls': it must be an integer"):
        di.data.WebDataset(path, ["cls"], decode=True).to_list()


@pytest.mark.parametrize(
    "decode, says", [({"x": 3}, "must give the name of a decoder"), ({"x": "pickle"}, "unknown decoder 'pickle'")]
)
def test_what_is_no_decoder_is_refused(decode: Any, says: str) -> None:
    with pytest.raises(ValueError, match=says):
        MemberDecoder(decode, {}, "__key__", "__url__")
    with pytest.raises(InvalidArgumentError, match="decode must be a bool, or a dict"):
        di.data.WebDataset("a.tar", decode="rgb8")
