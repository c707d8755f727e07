# SPDX-License-Identifier: Apache-2.0
"""Images are turned as Pillow turns them."""

import io
import sys

import numpy as np
import pytest

import distinput as di
from distinput.decoders.image import orientation_of_exif, orientation_of_jpeg

Image = pytest.importorskip("PIL.Image")
ImageOps = pytest.importorskip("PIL.ImageOps")
SMOOTH = np.add.outer(np.arange(40), 2 * np.arange(60)).astype(np.uint8)[..., None] + np.arange(3, dtype=np.uint8)


def encoded(orientation: int | None, format: str = "JPEG", order: str = "II") -> bytes:
    exif = Image.Exif()
    exif.endian = "<" if order == "II" else ">"
    exif[271] = "a camera"
    if orientation is not None:
        exif[274] = orientation
    file = io.BytesIO()
    options = {"quality": 95} if format == "JPEG" else {"lossless": True} if format == "WEBP" else {}
    Image.fromarray(SMOOTH).save(file, format, exif=exif, **options)
    return file.getvalue()


@pytest.mark.parametrize("engine", ["simplejpeg", "Pillow"])
@pytest.mark.parametrize("orientation", [*range(1, 9), None, 0, 9])
def test_jpegs_are_turned(monkeypatch: pytest.MonkeyPatch, orientation: int | None, engine: str) -> None:
    if engine == "Pillow":
        monkeypatch.setitem(sys.modules, "simplejpeg", None)
    content = encoded(orientation)
    plain = di.io.decode_image(content)
    assert plain.shape == (40, 60, 3)  # as TensorFlow
    with Image.open(io.BytesIO(content)) as image:
        image.load()
        turned = Image.fromarray(plain)
        turned.getexif()[274] = image.getexif().get(274, 1)
        expected = np.asarray(ImageOps.exif_transpose(turned))
    for found in (
        di.io.decode_image(content, exif_orientation=True),
        di.io.decode_jpeg(content, exif_orientation=True),
        di.io.decode_image(content, dtype="float32", exif_orientation=True) * 255,
    ):
        np.testing.assert_array_equal(np.round(found), expected)
        assert found.flags.c_contiguous


@pytest.mark.parametrize("format", ["PNG", "WEBP"])
@pytest.mark.parametrize("orientation", range(1, 9))
def test_others_are_turned(format: str, orientation: int) -> None:
    content = encoded(orientation, format)
    with Image.open(io.BytesIO(content)) as image:
        expected = np.asarray(ImageOps.exif_transpose(image))
    for animated in True, False:
        found = di.io.decode_image(content, expand_animations=animated, exif_orientation=True)
        framed = animated and format == "WEBP"
        np.testing.assert_array_equal(found, expected[None] if framed else expected)
        found = di.io.decode_image(content, expand_animations=animated)
        np.testing.assert_array_equal(found, SMOOTH[None] if framed else SMOOTH)


def test_both_byte_orders_and_what_is_cut_or_changed() -> None:
    for order in ("II", "MM"):
        content = encoded(6, order=order)
        assert content[content.index(b"Exif") + 6 :].startswith(order.encode())
        assert orientation_of_jpeg(content) == 6
        begin = content.index(b"Exif")
        for end in range(0, 300, 3):
            assert orientation_of_jpeg(content[:end]) in (1, 6)
            assert orientation_of_exif(content[begin : begin + end]) in (1, 6)
            changed = bytearray(content)
            changed[min(end, len(changed) - 1)] ^= 0xFF
            assert orientation_of_jpeg(bytes(changed)) in range(1, 9)
    assert orientation_of_exif(b"") == orientation_of_jpeg(b"") == 1
