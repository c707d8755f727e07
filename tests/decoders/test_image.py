# SPDX-License-Identifier: Apache-2.0
import io
import itertools
import struct
import sys
import zlib
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.decoders import image as decoding
from distinput.decoders.image import decode_gray, decode_rgb
from distinput.errors import DistinputError, EngineMissing, InvalidArgumentError, UnimplementedError

Image = pytest.importorskip("PIL.Image")
RGB = np.random.default_rng(1).integers(0, 256, (17, 23, 3), np.uint8)
SMOOTH = np.add.outer(np.arange(40), np.arange(60)).astype(np.uint8)[..., None] + np.arange(3, dtype=np.uint8)


def encoded(pixels: Any, format: str, mode: str | None = None, **options: Any) -> bytes:
    file = io.BytesIO()
    image = Image.fromarray(pixels)
    (image if mode is None else image.convert(mode)).save(file, format, **options)
    return file.getvalue()


@pytest.mark.parametrize("format", ["PNG", "BMP", "WEBP"])
def test_pixels_come_back(format: str) -> None:
    content = encoded(RGB, format, **({"lossless": True} if format == "WEBP" else {}))
    whole = di.io.decode_image(content)
    for found in (whole[0] if format == "WEBP" else whole, di.io.decode_png(content, 3), decode_rgb(content)):
        assert found.dtype == np.uint8
        np.testing.assert_array_equal(found, RGB)


def test_jpegs_are_as_pillow_decodes_them() -> None:
    for mode, depth in (("RGB", 3), ("L", 1)):
        content = encoded(SMOOTH, "JPEG", mode, quality=95)
        with Image.open(io.BytesIO(content)) as image:
            expected = np.asarray(image).reshape(40, 60, depth).astype(int)
        for found in (di.io.decode_jpeg(content), di.io.decode_image(content)):
            assert found.shape == (40, 60, depth)
            assert np.abs(found - expected).max() <= 2  # versions of libjpeg round in their own ways
    assert decode_gray(content).shape == (40, 60, 1)
    assert decode_rgb(content).shape == (40, 60, 3)


def test_without_simplejpeg_pillow_decodes(monkeypatch: pytest.MonkeyPatch) -> None:
    content = encoded(SMOOTH, "JPEG", quality=95)
    expected = di.io.decode_jpeg(content).astype(int)
    monkeypatch.setitem(sys.modules, "simplejpeg", None)
    assert np.abs(di.io.decode_jpeg(content) - expected).max() <= 2
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(EngineMissing, match=r"Pillow is not installed; `pip install 'distinput\[images\]'`"):
        di.io.decode_jpeg(content)


def test_channels() -> None:
    rgba = np.concatenate([RGB, np.arange(17 * 23, dtype=np.uint8).reshape(17, 23, 1)], -1)
    content = encoded(rgba, "PNG")
    np.testing.assert_array_equal(di.io.decode_png(content), rgba)
    np.testing.assert_array_equal(di.io.decode_png(content, 3), RGB)
    assert di.io.decode_png(content, 1).shape == (17, 23, 1)
    np.testing.assert_array_equal(di.io.decode_png(encoded(RGB, "PNG"), 4)[..., 3], 255)
    assert di.io.decode_png(encoded(RGB, "PNG", "P")).shape == (17, 23, 3)
    assert di.io.decode_png(encoded(RGB, "PNG", "1")).shape == (17, 23, 1)
    assert di.io.decode_image(encoded(RGB, "JPEG", "CMYK")).shape == (17, 23, 3)


@pytest.mark.parametrize("height", [2, -2])  # below zero: rows from the top down
def test_a_bmp_of_32_bits_has_an_alpha(height: int) -> None:
    pixels = np.arange(24, dtype=np.uint8).reshape(2, 3, 4)
    header = struct.pack("<IiiHHIIiiII", 40, 3, height, 1, 32, 0, pixels.nbytes, 0, 0, 0, 0)
    content = b"BM" + struct.pack("<IHHI", 54 + pixels.nbytes, 0, 0, 54) + header + pixels.tobytes()
    wanted = pixels[:: -1 if height > 0 else 1, :, [2, 1, 0, 3]]
    for channels in (0, 3, 4):
        found = di.io.decode_image(content, channels)
        np.testing.assert_array_equal(found, wanted[..., :channels] if channels else wanted)
    with pytest.raises(InvalidArgumentError, match="the BMP image is damaged"):
        di.io.decode_image(content[:-2])


def test_dtypes() -> None:
    wide = (np.arange(17 * 23) * 160).astype(np.uint16).reshape(17, 23)
    content = encoded(wide, "PNG")
    np.testing.assert_array_equal(di.io.decode_png(content, dtype="uint16")[..., 0], wide)
    np.testing.assert_array_equal(di.io.decode_png(content)[..., 0], wide >> 8)
    np.testing.assert_array_equal(di.io.decode_png(content, 3)[..., 2], wide >> 8)
    np.testing.assert_allclose(di.io.decode_image(content, dtype="float32")[..., 0], wide / 65535, rtol=1e-6)
    eight = encoded(RGB, "PNG")
    np.testing.assert_array_equal(di.io.decode_png(eight, dtype="uint16"), RGB.astype(np.uint16) * 257)
    assert di.io.decode_image(eight, dtype=np.float32).max() <= 1


def test_animations() -> None:
    frames = [Image.fromarray(np.full((5, 6, 3), value, np.uint8)) for value in (0, 255)]
    file = io.BytesIO()
    frames[0].save(file, "GIF", save_all=True, append_images=frames[1:])
    found = di.io.decode_image(file.getvalue())
    assert found.shape == (2, 5, 6, 3)
    assert found[:, 0, 0, 0].tolist() == [0, 255]
    assert di.io.decode_image(file.getvalue(), 3, expand_animations=False).shape == (5, 6, 3)
    with pytest.raises(InvalidArgumentError, match="at most max_pixels=59"):
        di.io.decode_image(file.getvalue(), max_pixels=59)


def test_webps_have_an_axis_of_frames_as_gifs_have() -> None:
    for mode, depth in (("RGB", 3), ("RGBA", 4)):
        frames = [Image.new(mode, (6, 5), (value,) * depth) for value in (10, 100, 200)]
        file = io.BytesIO()
        frames[0].save(file, "WEBP", save_all=True, append_images=frames[1:], lossless=True)
        found = di.io.decode_image(file.getvalue())
        assert found.shape == (3, 5, 6, depth)
        assert found[:, 0, 0, 0].tolist() == [10, 100, 200]
        assert di.io.decode_image(file.getvalue(), expand_animations=False).shape == (5, 6, depth)
        assert di.io.decode_image(encoded(np.full((5, 6, depth), 9, np.uint8), "WEBP")).shape == (1, 5, 6, depth)


def test_frames_may_be_parts_of_the_screen() -> None:
    first, second = np.zeros((8, 9, 3), np.uint8), np.zeros((8, 9, 3), np.uint8)
    second[2:4, 3:6] = (255, 0, 0)
    file = io.BytesIO()
    Image.fromarray(first).save(file, "GIF", save_all=True, append_images=[Image.fromarray(second)])
    np.testing.assert_array_equal(di.io.decode_image(file.getvalue()), [first, second])


@pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")
def test_frames_that_lead_out_of_the_screen_are_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    pixels = RGB[:, :, :1].repeat(3, -1)
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "GIF", save_all=True, append_images=[Image.fromarray(pixels[::-1].copy())])
    content = bytearray(file.getvalue())
    second = content.rindex(b"\x2c" + struct.pack("<HHHH", 0, 0, 23, 17))
    content[second + 1 : second + 5] = struct.pack("<HH", 5, 4)  # further right and further down
    found = di.io.decode_image(bytes(content))
    assert found.shape == (2, 17, 23, 3)
    np.testing.assert_array_equal(found[0], pixels)
    with Image.open(io.BytesIO(content)) as opened:
        opened.seek(1)
        assert opened.size == (28, 21)
        np.testing.assert_array_equal(found[1], np.asarray(opened.convert("RGB"))[:17, :23])
    monkeypatch.setattr(Image, "MAX_IMAGE_PIXELS", 220)
    with pytest.raises(InvalidArgumentError, match="the GIF image cannot be read: Image size"):
        di.io.decode_image(bytes(content))


def test_memory_that_is_not_there_is_no_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(*_: Any, **__: Any) -> Any:
        raise MemoryError

    content = encoded(RGB, "PNG")
    monkeypatch.setattr(Image, "open", lacking)
    with pytest.raises(MemoryError):
        di.io.decode_image(content)


def test_bmps_of_os2_have_a_short_header() -> None:
    content = encoded(RGB, "BMP")
    header = content[:2] + struct.pack("<IHHIIHHHH", len(content) - 28, 0, 0, 26, 12, 23, 17, 1, 24)
    np.testing.assert_array_equal(di.io.decode_image(header + content[54:]), RGB)
    with pytest.raises(InvalidArgumentError, match="17 x 23 pixels"):
        di.io.decode_image(header + content[54:], max_pixels=390)


def test_a_jpeg_whose_colors_are_sampled_as_simplejpeg_does_not_know() -> None:
    content = encoded(np.full((32, 8, 3), 128, np.uint8), "JPEG", subsampling=0)
    head, scan, rest = content.partition(b"\xff\xda")
    sampled = head.replace(b"\x01\x11\x00", b"\x01\x14\x00")  # four blocks of light to one of each color
    content = sampled + scan + rest[:12] + b"\x28\xa2\x8a\x00\xff\xd9"
    for found in di.io.decode_image(content), di.io.decode_jpeg(content):
        np.testing.assert_array_equal(found, np.full((32, 8, 3), 128))


def test_gray_gifs_have_three_channels_as_in_tensorflow() -> None:
    content = encoded(np.arange(64, dtype=np.uint8).reshape(8, 8), "GIF")
    assert di.io.decode_image(content, expand_animations=False).shape == (8, 8, 3)
    assert di.io.decode_image(content).shape == (1, 8, 8, 3)


def test_what_is_not_drawn_in_a_gif_is_black_as_in_tensorflow() -> None:
    image = Image.fromarray(np.array([[0, 1], [1, 2]], np.uint8), "P")
    image.putpalette([9, 9, 9, 50, 60, 70, 200, 200, 200])
    file = io.BytesIO()
    image.save(file, "GIF", transparency=1)
    want = [[[9, 9, 9], [0, 0, 0]], [[0, 0, 0], [200, 200, 200]]]
    assert di.io.decode_image(file.getvalue()).tolist() == [want]
    assert di.io.decode_png(file.getvalue()).tolist() == want
    assert di.io.decode_image(file.getvalue(), 1)[0, ..., 0].tolist() == [[9, 0], [0, 200]]
    assert di.io.decode_image(file.getvalue(), 4)[0, 0].tolist() == [[9, 9, 9, 255], [50, 60, 70, 0]]
    first, second = np.full((3, 3, 4), 255, np.uint8), np.full((3, 3, 4), 255, np.uint8)
    first[0, :2], second[:2, 0] = 0, 0
    second[..., 0] = 0
    file = io.BytesIO()
    Image.fromarray(first).save(file, "GIF", save_all=True, append_images=[Image.fromarray(second)], disposal=1)
    frames = di.io.decode_image(file.getvalue())
    assert [frame[0, 0].tolist() for frame in frames] == [[0, 0, 0]] * 2  # drawn by neither
    assert frames[:, 0, 1].tolist() == [[0, 0, 0], [0, 255, 255]]  # drawn by the second
    assert frames[:, 1, 0].tolist() == [[255, 255, 255]] * 2  # drawn by the first


def png_of_16_bits(pixels: Any, clear: Any = None) -> bytes:
    """A PNG of the pixels; `clear` is its transparent color."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    height, width, channels = pixels.shape
    color = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 16, color, 0, 0, 0))
    transparent = b"" if clear is None else chunk(b"tRNS", np.asarray(clear, ">u2").tobytes())
    rows = chunk(b"IDAT", zlib.compress(b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)))
    return b"\x89PNG\r\n\x1a\n" + header + transparent + rows + chunk(b"IEND", b"")


@pytest.mark.parametrize("channels", [1, 2, 3, 4])
def test_pngs_of_16_bits_keep_them(channels: int) -> None:
    pixels = np.random.default_rng(channels).integers(0, 65536, (4, 5, channels)).astype(np.uint16)
    content = png_of_16_bits(pixels)
    np.testing.assert_array_equal(di.io.decode_image(content, dtype="uint16"), pixels)
    np.testing.assert_array_equal(di.io.decode_png(content), pixels >> 8)
    np.testing.assert_array_equal(di.io.decode_image(content, dtype="float32"), pixels / np.float32(65535))
    colors, alpha = (pixels, None) if channels % 2 else (pixels[..., :-1], pixels[..., -1:])
    three = np.broadcast_to(colors, (4, 5, 3))
    four = np.concatenate([three, np.full((4, 5, 1), 65535, np.uint16) if alpha is None else alpha], -1)
    np.testing.assert_array_equal(di.io.decode_image(content, 3, "uint16"), three)
    np.testing.assert_array_equal(di.io.decode_image(content, 4, "uint16"), four)
    gray = di.io.decode_image(content, 1, "uint16")
    assert np.abs(gray[..., 0] - three @ [0.299, 0.587, 0.114]).max() < 3  # the weights are rounded as in libpng


def test_a_transparent_color_of_16_bits_is_one_of_16_bits() -> None:
    """Values of TensorFlow 2.21."""
    pixels = np.array([[[0x1234, 0x5678, 0x9ABC], [0x12FF, 0x56FF, 0x9AFF]]])
    content = png_of_16_bits(pixels, [0x1234, 0x5678, 0x9ABC])
    assert di.io.decode_image(content, 4)[..., 3].tolist() == [[0, 255]]
    assert di.io.decode_image(content, 4, "uint16")[..., 3].tolist() == [[0, 65535]]
    assert di.io.decode_image(content, 1, "uint16").tolist() == [[[18904], [19052]]]


def spoilt_jpegs() -> dict[str, bytes]:
    """JPEGs that libjpeg reads with a warning."""
    right = encoded(RGB, "JPEG", quality=90)
    tables, scan = right.find(b"\xff\xdb"), right.find(b"\xff\xda")
    return {
        "bytes between segments": right[:tables] + b"\0\1\2\3" + right[tables:],
        "a broken profile": right[:2] + b"\xff\xe2\x00\x10ICC_PROFILE\0\x05\x01" + right[2:],
        "a marker too many": right[: scan + 30] + b"\xff\xd0" + right[scan + 30 :],
        "bytes behind the end": right + b"junk",
    }


@pytest.mark.parametrize("name", spoilt_jpegs())
def test_jpegs_that_are_not_quite_right_are_read_as_pillow_reads_them(
    name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    content = spoilt_jpegs()[name]
    monkeypatch.setattr(decoding, "_DOUBTFUL", itertools.count(1))
    with Image.open(io.BytesIO(content)) as opened:
        wanted = np.asarray(opened.convert("RGB"))
    with caplog.at_level("WARNING", "distinput"):
        for _ in range(12):
            np.testing.assert_array_equal(di.io.decode_image(content), wanted)
    if name == "bytes behind the end":
        return  # which nobody minds
    assert [record.getMessage().split(" JPEG")[0] for record in caplog.records if record.name == "distinput"] == [
        "decode_image: 1",
        "decode_image: 10",
    ]
    for call in di.io.decode_image, di.io.decode_jpeg:
        with pytest.raises(InvalidArgumentError, match="the JPEG image is damaged: Corrupt JPEG data"):
            call(content, strict=True)
    with pytest.raises(InvalidArgumentError, match=r"17 x 23 pixels; .* at most max_pixels=390"):
        di.io.decode_image(content, max_pixels=390)


def test_jpegs_that_are_cut_short_are_damaged() -> None:
    right = encoded(RGB, "JPEG")
    for size in len(right) - 2, len(right) * 3 // 4, len(right) // 2:
        with pytest.raises(InvalidArgumentError, match="the JPEG image is damaged"):
            di.io.decode_image(right[:size])


@pytest.mark.parametrize("format", ["PNG", "JPEG", "GIF", "BMP", "WEBP"])
def test_large_and_damaged_images_are_refused(format: str) -> None:
    content = encoded(RGB, format)
    with pytest.raises(InvalidArgumentError, match=r"has 17 x 23 pixels; .* at most max_pixels=390"):
        di.io.decode_image(content, max_pixels=390)
    with pytest.raises(InvalidArgumentError):
        di.io.decode_image(content[: len(content) // 2])
    for at in range(2, len(content), 41):
        try:
            di.io.decode_image(content[:at] + b"\xff" + content[at + 1 :], max_pixels=10_000)
        except DistinputError:
            continue


@pytest.mark.parametrize(
    "call, error, says",
    [
        (
            lambda: di.io.decode_image(b"text"),
            InvalidArgumentError,
            "must be a JPEG, PNG, GIF, BMP or WebP image, got 4 bytes",
        ),
        (lambda: di.io.decode_image(b""), InvalidArgumentError, "got no bytes; the file or the field is empty"),
        (lambda: di.io.decode_image(b"II*\0abc"), InvalidArgumentError, "with another library, such as Pillow, in map"),
        (lambda: di.io.decode_image(b"%!PS-Adobe-3.0 EPSF-3.0"), InvalidArgumentError, "must be a JPEG"),
        (lambda: di.io.decode_image("a.png"), InvalidArgumentError, "contents must be bytes, got a str"),
        (lambda: di.io.decode_image(b"", 5), InvalidArgumentError, "channels must be 0, 1, 3 or 4, got 5"),
        (
            lambda: di.io.decode_image(b"", dtype="int64"),
            InvalidArgumentError,
            "dtype must be uint8, uint16 or float32",
        ),
        (lambda: di.io.decode_jpeg(b"", ratio=2), UnimplementedError, "ratio=2"),
    ],
)
def test_what_cannot_be_is_refused(call: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        call()


def test_threads_of_map_decode_in_order() -> None:
    images = [np.full((8, 8, 3), i, np.uint8) for i in range(20)]
    made = di.data.Dataset.from_tensor_slices([encoded(image, "PNG") for image in images])
    found = made.map(di.io.decode_png, num_parallel_calls=2).batch(20)
    np.testing.assert_array_equal(next(iter(found)), images)


def gif_of_parts(disposal: int) -> bytes:
    """A GIF of four frames on a screen of 4 x 4, in red, green, blue and gray; the first one fills it."""
    content = b"GIF89a" + struct.pack("<HHBBB", 4, 4, 0x91, 0, 0) + bytes([255, 0, 0, 0, 255, 0, 0, 0, 255, 9, 9, 9])
    for x, y, size, color in ((0, 0, 4, 0), (1, 1, 2, 1), (2, 2, 2, 2), (0, 3, 1, 3)):
        # One pixel after the other, each behind a code that clears the table.
        bits = "".join(f"{code:03b}"[::-1] for code in [*[4, color] * (size * size), 5])
        packed = bytes(int(bits[at : at + 8][::-1], 2) for at in range(0, len(bits), 8))
        content += b"\x21\xf9\x04" + bytes([disposal << 2, 0, 0, 0, 0])
        content += b"\x2c" + struct.pack("<HHHHB", x, y, size, size, 0) + bytes([2, len(packed)]) + packed + b"\0"
    return content + b";"


FRAMES_OF_PARTS = ["rrrrrrrrrrrrrrrr", "rrrrrggrrggrrrrr", "rrrrrggrrgbbrrbb", "rrrrrggrrgbbxrbb"]


def told_colors(frames: Any) -> list[str]:
    names = {(255, 0, 0): "r", (0, 255, 0): "g", (0, 0, 255): "b", (9, 9, 9): "x"}
    return ["".join(names[tuple(pixel)] for pixel in frame.reshape(-1, 3).tolist()) for frame in frames]


@pytest.mark.parametrize("disposal", range(4))
def test_frames_of_a_gif_stay_where_they_were_drawn_as_in_tensorflow(disposal: int) -> None:
    assert told_colors(di.io.decode_image(gif_of_parts(disposal))) == FRAMES_OF_PARTS


def test_a_gif_that_is_cut_short_has_its_whole_frames_as_in_tensorflow() -> None:
    content = gif_of_parts(2)
    images = [at for at in range(len(content)) if content.startswith(b"\x21\xf9\x04", at)]
    ends = [*images[1:], len(content) - 1]
    for size in range(ends[0], len(content)):
        frames = told_colors(di.io.decode_image(content[:size]))
        assert frames == FRAMES_OF_PARTS[: sum(end <= size for end in ends)]
    for size in (13, images[0] + 12, ends[0] - 3):
        with pytest.raises(InvalidArgumentError, match="the GIF image"):
            di.io.decode_image(content[:size])


@pytest.mark.parametrize(
    "bits, clear, alphas", [(1, 1, [255, 0]), (2, 1, [255, 0, 255, 255]), (4, 11, [255] * 11 + [0])]
)
def test_a_transparent_gray_of_few_bits_is_one_of_as_many_bits(bits: int, clear: int, alphas: list[int]) -> None:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    row = "".join(f"{value:0{bits}b}" for value in range(len(alphas))).ljust(48, "0")
    content = b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", len(alphas), 1, bits, 0, 0, 0, 0))
    content += chunk(b"tRNS", struct.pack(">H", clear))
    content += chunk(b"IDAT", zlib.compress(b"\0" + int(row, 2).to_bytes(6, "big")[: -(-len(alphas) * bits // 8)]))
    found = di.io.decode_png(content + chunk(b"IEND", b""), 4)
    assert found[0, :, 3].tolist() == alphas
    assert found[0, :, 0].tolist() == [value * 255 // ((1 << bits) - 1) for value in range(len(alphas))]


@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
def test_the_gray_of_a_png_is_rounded_as_in_tensorflow(mode: str) -> None:
    colors = np.array([[[0, 91, 182], [37, 128, 219], [74, 165, 0], [111, 202, 37], [7, 7, 7]]], np.uint8)
    image = (
        Image.fromarray(colors).convert(mode)
        if mode != "P"
        else Image.fromarray(np.arange(5, dtype=np.uint8)[None], "P")
    )
    if mode == "P":
        image.putpalette(colors.reshape(-1).tolist())
    file = io.BytesIO()
    image.save(file, "PNG")
    assert di.io.decode_png(file.getvalue(), 1)[0, :, 0].tolist() == [74, 111, 118, 155, 7]
