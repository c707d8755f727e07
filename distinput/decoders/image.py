# SPDX-License-Identifier: Apache-2.0
"""Images: JPEG through simplejpeg where that is installed, into memory that is used again, everything else through Pillow."""

import io
import struct
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from typing import Any

import numpy as np

from distinput.errors import InvalidArgumentError, UnimplementedError, importing
from distinput.values.buffers import empty

# ----------------------------------------------------------------------------
# How a camera was held, as an image says it (EXIF), and the pixels turned accordingly.
#
# Source: "Exchangeable image file format for digital still cameras: Exif Version 2.3", section 4.6.4 A, tag 274.
# ----------------------------------------------------------------------------


_MARK = b"Exif\0\0"
_TAG, _SHORT = 274, 3
_AS_IT_IS = 1


def orientation_of_jpeg(data: bytes) -> int:
    """The orientation that a JPEG states, from 1 to 8; 1, which is "as it is", if it states none that can be read."""
    at = 2
    while at + 4 <= len(data) and data[at] == 0xFF and data[at + 1] != 0xDA:  # until the pixels begin
        end = at + 2 + int.from_bytes(data[at + 2 : at + 4], "big")
        if data[at + 1] == 0xE1 and data.startswith(_MARK, at + 4):
            return orientation_of_exif(data[at + 4 : end])
        at = end
    return _AS_IT_IS


def orientation_of_exif(data: bytes) -> int:
    """The orientation in a block of EXIF, from 1 to 8; 1 if there is none that can be read."""
    tiff = data.removeprefix(_MARK)
    order = {b"II": "<", b"MM": ">"}.get(tiff[:2])
    if order is None:
        return _AS_IT_IS
    try:
        (first,) = struct.unpack_from(f"{order}I", tiff, 4)
        (count,) = struct.unpack_from(f"{order}H", tiff, first)
        for number in range(count):
            tag, kind, _, value = struct.unpack_from(f"{order}HHIH", tiff, first + 2 + 12 * number)
            if tag == _TAG:
                return value if kind == _SHORT and 1 <= value <= 8 else _AS_IT_IS
    except struct.error:  # it ends before that
        pass
    return _AS_IT_IS


def turned(pixels: Any, orientation: int) -> Any:
    """Pixels `[height, width, channels]` as they are looked at.

    >>> turned(np.array([[[1], [2]]]), 6)[..., 0].tolist()
    [[1], [2]]
    >>> turned(np.array([[[1], [2]]]), 8)[..., 0].tolist()
    [[2], [1]]
    """
    if orientation >= 5:  # rows become columns
        pixels = pixels.swapaxes(0, 1)
    if orientation in (3, 4, 7, 8):
        pixels = pixels[::-1]
    if orientation in (2, 3, 6, 7):
        pixels = pixels[:, ::-1]
    return np.ascontiguousarray(pixels)


MOST_PIXELS = 89_478_485
"""The most pixels of an image, unless the user allows more: those for which Pillow begins to warn."""

_BYTE = np.dtype(np.uint8)
_MODES = {1: "L", 2: "LA", 3: "RGB", 4: "RGBA"}
_CHANNELS = {"1": 1, "L": 1, "I": 1, "I;16": 1, "LA": 2, "RGB": 3, "P": 3, "CMYK": 3, "YCbCr": 3, "RGBA": 4, "PA": 4}
_MAGIC = ((b"\xff\xd8\xff", "JPEG"), (b"\x89PNG\r\n\x1a\n", "PNG"), (b"GIF8", "GIF"), (b"BM", "BMP"))

_SIZED = {"PNG": 24, "GIF": 10, "BMP": 26}
"""The bytes of a header up to the end of height and width."""

_CUT_SHORT = "Premature end of JPEG file"
_16_BITS, _GRAY_AND_ALPHA = b"\x10", b"\x04"
_OF_OS2 = 12
"""How long the header of a BMP of OS/2 is; its height and width have 16 bits."""
_GRAY_OF_RGB = np.array([9797, 19234, 3737], np.uint32)
"""What each color adds to gray, of 1 << 15."""


_DOUBTFUL = count(1)
"""Numbers of the images that were read though they are not quite right."""


def _tell_doubt(doubt: str) -> None:
    number = next(_DOUBTFUL)  # whole, whatever other threads do
    if str(number).strip("0") == "1":
        import logging

        logging.getLogger("distinput").warning(
            "decode_image: %d JPEG image%s so far not quite right, and read as Pillow reads %s; the last: %s; strict=True "
            "refuses them",
            number,
            " was" if number == 1 else "s were",
            "it" if number == 1 else "them",
            doubt,
        )


def decode_image(
    contents: Any,
    channels: int | None = None,
    dtype: Any = np.uint8,
    name: str | None = None,
    expand_animations: bool = True,
    *,
    max_pixels: int = MOST_PIXELS,
    exif_orientation: bool = False,
    strict: bool = False,
) -> Any:
    """The pixels of a JPEG, PNG, GIF, BMP or WebP image, `[height, width, channels]`.

    The GIL is released while an image is decoded, so threads of `map` decode several at a time.
    Transparency is left out where 1 or 3 channels are wanted, not mixed with a background. Frames of a GIF have the size of its
    screen, are black where nothing was drawn, and stay where they were drawn. One that is cut short is left out, with all
    behind it.

    A JPEG that is not quite right, such as one with bytes between its segments or a broken color profile, is read as Pillow and
    TensorFlow read it. The logger "distinput" tells how many there were, at the first, the tenth, the hundredth, and so on.

    Args:
      contents: the bytes of the file.
      channels: 1 for gray, 3 for RGB, 4 for RGBA; 0 or None: as the image has them.
      dtype: uint8; uint16, for PNGs of 16 bits, and others scaled; or float32 from 0 to 1.
      name: accepted as TensorFlow's.
      expand_animations: true if a GIF or WebP becomes `[frames, height, width, channels]`; otherwise its first frame is taken.
      max_pixels: the most pixels that an image may say it has, all frames together.
      exif_orientation: true to turn the image as the camera was held (EXIF), which TensorFlow does not do; what cannot be read
        of that is passed over. This is `PIL.ImageOps.exif_transpose`.
      strict: true to refuse a JPEG that is not quite right.

    Raises:
      InvalidArgumentError: it is no such image, damaged, or larger than `max_pixels`; or an argument has no meaning.
      EngineMissing: neither simplejpeg, which suffices for JPEG, nor Pillow is installed.

    >>> import io
    >>> from PIL import Image
    >>> file = io.BytesIO()
    >>> Image.fromarray(np.array([[0, 128, 255]], np.uint8)).save(file, "PNG")
    >>> decode_image(file.getvalue()).tolist()
    [[[0], [128], [255]]]
    >>> decode_image(file.getvalue(), channels=3, dtype="float32")[0, 2].tolist()
    [1.0, 1.0, 1.0]

    Source: `tf.io.decode_image`.
    """
    del name
    wanted, kind = channels or 0, np.dtype(dtype)
    if wanted not in (0, 1, 3, 4):
        raise InvalidArgumentError(f"decode_image: channels must be 0, 1, 3 or 4, got {channels}")
    if kind not in (np.uint8, np.uint16, np.float32):
        raise InvalidArgumentError(f"decode_image: dtype must be uint8, uint16 or float32, got {kind}")
    data = _bytes(contents)
    found = _format(data)
    doubt: str | None = None
    if found == "JPEG" and wanted != 4:
        pixels, doubt = _with_simplejpeg(data, wanted, max_pixels)
        if pixels is not None:
            pixels = _scaled(pixels, kind)
            return turned(pixels, orientation_of_jpeg(data)) if exif_orientation else pixels
        if doubt is not None and (strict or _CUT_SHORT in doubt):
            raise InvalidArgumentError(f"decode_image: the JPEG image is damaged: {doubt}")
    made = _with_pillow(data, found, wanted, kind, expand_animations, max_pixels, exif_orientation)
    if doubt is not None:
        _tell_doubt(doubt)
    return made


def decode_jpeg(
    contents: Any,
    channels: int = 0,
    ratio: int = 1,
    fancy_upscaling: bool = True,
    try_recover_truncated: bool = False,
    acceptable_fraction: float = 1,
    dct_method: str = "",
    name: str | None = None,
    *,
    max_pixels: int = MOST_PIXELS,
    exif_orientation: bool = False,
    strict: bool = False,
) -> Any:
    """The pixels of a JPEG image, uint8 `[height, width, channels]`; of PNGs and single images in GIFs too, as in TensorFlow.

    Args:
      contents: the bytes of the file.
      channels: 1 for gray, 3 for RGB; 0: as the image has them.
      ratio: only 1; reduce the image after it is decoded.
      fancy_upscaling: accepted as TensorFlow's: colors are always interpolated.
      try_recover_truncated: only False: an image that is cut short is an error.
      acceptable_fraction: only 1.
      dct_method: accepted as TensorFlow's: the exact one is always used.
      name: accepted as TensorFlow's.
      max_pixels: the most pixels that an image may say it has.
      exif_orientation: as for `decode_image`.
      strict: as for `decode_image`.

    Raises:
      InvalidArgumentError: it is not an image, is damaged, or is larger than `max_pixels`.
      UnimplementedError: a ratio, or an image that is to be recovered.

    Source: `tf.io.decode_jpeg`.
    """
    del fancy_upscaling, dct_method, name
    if ratio != 1 or try_recover_truncated or acceptable_fraction != 1:
        raise UnimplementedError(
            f"decode_jpeg: ratio={ratio}, try_recover_truncated={try_recover_truncated} and acceptable_fraction="
            f"{acceptable_fraction} must be 1, False and 1; resize images once they are decoded, and leave damaged ones out"
        )
    return decode_image(
        contents,
        channels,
        expand_animations=False,
        max_pixels=max_pixels,
        exif_orientation=exif_orientation,
        strict=strict,
    )


def decode_png(
    contents: Any, channels: int = 0, dtype: Any = np.uint8, name: str | None = None, *, max_pixels: int = MOST_PIXELS
) -> Any:
    """The pixels of a PNG image, `[height, width, channels]`; of other images too, as in TensorFlow.

    Args:
      contents: the bytes of the file.
      channels: 1 for gray, 3 for RGB, 4 for RGBA; 0: as the image has them.
      dtype: uint8 or uint16.
      name: accepted as TensorFlow's.
      max_pixels: the most pixels that an image may say it has.

    Raises:
      InvalidArgumentError: it is not an image, is damaged, or is larger than `max_pixels`.

    Source: `tf.io.decode_png`.
    """
    return decode_image(contents, channels, dtype, name, expand_animations=False, max_pixels=max_pixels)


def decode_rgb(contents: bytes) -> Any:
    """An image as uint8 `[height, width, 3]`, whatever its channels are."""
    return decode_image(contents, 3, expand_animations=False)


def decode_gray(contents: bytes) -> Any:
    """An image as uint8 `[height, width, 1]`."""
    return decode_image(contents, 1, expand_animations=False)


def _bytes(contents: Any) -> bytes:
    """The bytes of a file, which may come as a scalar or an array of bytes."""
    if isinstance(contents, np.ndarray):
        contents = contents.item() if contents.dtype == object and contents.size == 1 else contents.tobytes()
    if not isinstance(contents, bytes | bytearray | memoryview):
        raise InvalidArgumentError(f"decode_image: contents must be bytes, got a {type(contents).__name__}")
    return bytes(contents) if not isinstance(contents, bytes) else contents


def _format(data: bytes) -> str:
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return "WEBP"
    for magic, found in _MAGIC:
        if data.startswith(magic):
            return found
    known = "decode_image: it must be a JPEG, PNG, GIF, BMP or WebP image, got"
    if not data:
        raise InvalidArgumentError(f"{known} no bytes; the file or the field is empty")
    cure = "; decode it with another library, such as Pillow, in map" if data.startswith((b"II*\0", b"MM\0*")) else ""
    raise InvalidArgumentError(f"{known} {len(data)} bytes that begin with {data[:8]!r}{cure}")


def _check_size(height: int, width: int, max_pixels: int) -> None:
    if not 0 < height * width <= max_pixels:
        raise InvalidArgumentError(
            f"decode_image: the image has {height} x {width} pixels; it must have at least 1, and at most "
            f"max_pixels={max_pixels}; allow more if the image is right"
        )


def _with_simplejpeg(data: bytes, channels: int, max_pixels: int) -> tuple[Any, str | None]:
    """The pixels of a JPEG; None if simplejpeg is not installed or cannot read it, and what is not right with it."""
    try:
        import simplejpeg
    except ImportError:
        return None, None
    try:
        height, width, colors, _ = simplejpeg.decode_jpeg_header(data)
    except ValueError as error:
        return None, str(error)
    except KeyError:  # a subsampling of colors that it does not know
        return None, None
    _check_size(height, width, max_pixels)
    if colors in ("CMYK", "YCCK"):
        return None, None
    depth = channels or (1 if colors in ("Gray", "GRAY") else 3)
    buffer = empty((height, width, depth), _BYTE)
    try:
        simplejpeg.decode_jpeg(data, "GRAY" if depth == 1 else "RGB", buffer=buffer)
    except ValueError as error:  # a warning, perhaps, which Pillow passes over
        return None, str(error)
    return buffer, None  # which nobody else refers to, so it need not be copied


def _with_pillow(data: bytes, found: str, channels: int, dtype: Any, frames: bool, max_pixels: int, turns: bool) -> Any:
    with importing("decode_image: Pillow is not installed; `pip install 'distinput[images]'`"):
        from PIL import Image, ImageSequence
    _check_size(*_size(data, found), max_pixels)  # before Pillow looks at it: it warns of large ones
    with _by_pillow(found):
        image = Image.open(io.BytesIO(_as_drawn(data) if found == "GIF" and frames else data), formats=[found])
    with image:
        with _by_pillow(found):
            number = getattr(image, "n_frames", 1) if frames else 1
        _check_size(image.height * number, image.width, max_pixels)
        if found == "GIF":
            channels = channels or 3
        if found in ("GIF", "WEBP") and frames:
            whole, images, screen = [], ImageSequence.Iterator(image), (0, 0, *image.size)
            while True:
                with _by_pillow(found):
                    frame = next(images, None)
                    if frame is not None and frame.size != screen[2:]:
                        frame = frame.crop(screen)  # it leads out of the screen, which is never larger than at first
                if frame is None:
                    break
                whole.append(_pixels(frame, found, data, channels, dtype))
            way = _orientation(image, data, found) if turns else 1
            return np.stack([turned(each, way) for each in whole])
        pixels = _pixels(_with_alpha(image, data) if found == "BMP" else image, found, data, channels, dtype)
        return turned(pixels, _orientation(image, data, found)) if turns else pixels


@contextmanager
def _by_pillow(found: str) -> Iterator[None]:
    """Tell damage by one error. Only calls of Pillow belong inside: they raise anything for damaged images.

    Raises:
      InvalidArgumentError: the image is damaged, or Pillow refuses it.
    """
    try:
        yield
    except MemoryError:
        raise
    except Exception as error:
        from PIL import Image, UnidentifiedImageError

        refused = isinstance(error, UnidentifiedImageError | Image.DecompressionBombError)
        raise _damage(found, error, "cannot be read" if refused else "is damaged") from error


def _damage(found: str, why: object, what: str = "is damaged") -> InvalidArgumentError:
    return InvalidArgumentError(f"decode_image: the {found} image {what}: {why}")


def _orientation(image: Any, data: bytes, found: str) -> int:
    exif = image.info.get("exif")
    return orientation_of_jpeg(data) if found == "JPEG" else orientation_of_exif(exif) if isinstance(exif, bytes) else 1


def _size(data: bytes, found: str) -> tuple[int, int]:
    """Height and width in the header of an image; 1 and 1 where Pillow finds them without a warning."""
    if len(data) < _SIZED.get(found, 0):
        raise _damage(found, f"it ends after {len(data)} bytes")
    if found == "PNG":
        width, height = struct.unpack(">II", data[16:24])
    elif found == "GIF":
        width, height = struct.unpack("<HH", data[6:10])
    elif found == "BMP" and data[14] == _OF_OS2:
        width, height = struct.unpack("<HH", data[18:22])
    elif found == "BMP":
        width, height = struct.unpack("<ii", data[18:26])
    elif found == "WEBP" and data[12:16] == b"VP8X":
        width, height = (1 + int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
    elif found == "JPEG":
        return _size_of_jpeg(data)
    else:
        return 1, 1
    return abs(height), abs(width)


def _size_of_jpeg(data: bytes) -> tuple[int, int]:
    """Height and width in the first frame header of a JPEG."""
    at = 2
    while at + 9 <= len(data):
        if data[at] != 0xFF or data[at + 1] in (0, 0xFF):  # bytes between two segments
            at += 1
            continue
        kind, length = data[at + 1], int.from_bytes(data[at + 2 : at + 4], "big")
        if 0xC0 <= kind <= 0xCF and kind not in (0xC4, 0xC8, 0xCC):
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return height, width
        at += 2 + length
        if at >= len(data):
            break
    return 1, 1


def _with_alpha(image: Any, data: bytes) -> Any:
    """A BMP of 32 bits with the fourth byte of each pixel as its alpha, as TensorFlow has it; Pillow leaves that byte out."""
    bits, packing = struct.unpack("<HI", data[28:34]) if len(data) >= 34 and data[14] >= 40 else (0, 0)
    if bits != 32 or packing or image.mode != "RGB":
        return image
    from PIL import Image

    order = 1 if int.from_bytes(data[22:26], "little", signed=True) < 0 else -1  # rows from the bottom up
    first, size = int.from_bytes(data[10:14], "little"), 4 * image.height * image.width
    if first + size > len(data):
        raise _damage("BMP", f"it has {max(0, len(data) - first)} bytes of pixels, expected {size}")
    alpha = np.frombuffer(data, np.uint8, size, first)[3::4].reshape(image.height, image.width)
    with _by_pillow("BMP"):
        image.load()
        made = image.convert("RGBA")
        made.putalpha(Image.fromarray(np.ascontiguousarray(alpha[::order])))
    return made


def _pixels(image: Any, found: str, data: bytes, channels: int, dtype: Any) -> Any:
    """The pixels of an open image."""
    if found == "PNG" and data[24:25] == _16_BITS:
        return _of_16_bits(image, data, channels, dtype)
    if found == "GIF" and channels != 4 and (image.mode == "RGBA" or "transparency" in image.info):
        image = _on_black(image)
    depth = channels or (4 if "transparency" in image.info and image.mode == "P" else _CHANNELS.get(image.mode, 3))
    if depth == 1 and found == "PNG" and image.mode in ("P", "RGB", "RGBA"):  # Pillow rounds, libpng does not
        return _scaled((_array(image, found, "RGB") @ _GRAY_OF_RGB >> 15).astype(np.uint8)[..., None], dtype)
    if found == "PNG" and image.mode == "L" and "transparency" in image.info:  # a value of as many bits as the file has
        image.info["transparency"] = image.info["transparency"] * 255 // ((1 << data[24]) - 1)
    made = _array(image, found, _MODES[depth])
    return _scaled(made[..., None] if made.ndim == 2 else made, dtype)


_EXTENSION, _IMAGE = 0x21, 0x2C
_CONTROL = b"\xf9\x04"
_STAYS, _OTHERS = 0x04, 0xE3


def _as_drawn(data: bytes) -> bytes:
    """A GIF up to its last whole frame, each of whose frames stays where it was drawn, as TensorFlow has it.

    Source: "Graphics Interchange Format, version 89a", sections 15, 20 and 23.
    """
    made, at, whole = bytearray(data), 13 + _colors(data, 10), 0
    while at < len(data) and data[at] in (_EXTENSION, _IMAGE):
        if data[at] == _IMAGE:
            at = _behind_blocks(data, at + 11 + _colors(data, at + 9))
            whole = at if at <= len(data) else whole
            continue
        if data.startswith(_CONTROL, at + 1) and at + 3 < len(data):
            made[at + 3] = made[at + 3] & _OTHERS | _STAYS
        at = _behind_blocks(data, at + 2)
    return bytes(made) if at < len(data) or not whole else bytes(made[:whole]) + b";"


def _colors(data: bytes, at: int) -> int:
    """The bytes of the table of colors that a byte of flags says."""
    return 6 << (data[at] & 7) if at < len(data) and data[at] & 0x80 else 0


def _behind_blocks(data: bytes, at: int) -> int:
    """Behind blocks of bytes, each with its size before it; more than there are bytes where they are cut short."""
    while at < len(data) and data[at]:
        at += data[at] + 1
    return at + 1


def _on_black(image: Any) -> Any:
    """A frame of a GIF that is black where nothing was drawn, as TensorFlow has it; Pillow has any color of the palette."""
    from PIL import Image

    with _by_pillow("GIF"):
        drawn = image.convert("RGBA")
        return Image.alpha_composite(Image.new("RGBA", drawn.size, (0, 0, 0, 255)), drawn)


def _of_16_bits(image: Any, data: bytes, channels: int, dtype: Any) -> Any:
    """The pixels of a PNG of 16 bits, of which Pillow's conversions would lose half."""
    clear = image.info.get("transparency")  # the color that is transparent
    if image.mode.startswith("I"):
        wide = _array(image, "PNG").astype(np.uint16)[..., None]
    elif data[25:26] == _GRAY_AND_ALPHA:
        wide = _gray_and_alpha(data)
    else:
        low = _opened(data)
        if low.tile:
            codec, extents, offset, rawmode = low.tile[0][:4]
            # Which takes the other byte of the two.
            low.tile = [(codec, extents, offset, rawmode.replace(";16B", ";16L"))]
        wide = _array(image, "PNG").astype(np.uint16) << 8 | _array(low, "PNG")
    colors = wide[..., : 1 if wide.shape[-1] < 3 else 3]
    depth, alpha = channels or wide.shape[-1], wide[..., colors.shape[-1] :]
    if not alpha.size:
        alpha = np.full((*wide.shape[:2], 1), 65535, np.uint16)
        if clear is not None:
            alpha[(colors == np.asarray(clear)).all(-1)] = 0
    if dtype == np.uint8:
        colors, alpha = colors >> 8, alpha >> 8
    if depth < 3 and colors.shape[-1] == 3:
        colors = (colors @ _GRAY_OF_RGB + (1 << 14) >> 15)[..., None]
    made = np.concatenate([colors] * (3 if depth >= 3 > colors.shape[-1] else 1) + [alpha] * (depth in (2, 4)), -1)
    return made / np.float32(65535) if dtype == np.float32 else made.astype(dtype)


def _gray_and_alpha(data: bytes) -> Any:
    """A PNG of gray and alpha in 16 bits, which has its bytes where one of four channels of 8 bits has them."""
    header = b"IHDR" + data[16:24] + b"\x08\x06" + data[26:29]
    as_rgba = data[:12] + header + struct.pack(">I", zlib.crc32(header)) + data[33:]
    four = _array(_opened(as_rgba), "PNG").astype(np.uint16)
    return four[..., ::2] << 8 | four[..., 1::2]


def _opened(data: bytes) -> Any:
    from PIL import Image

    with _by_pillow("PNG"):
        return Image.open(io.BytesIO(data), formats=["PNG"])


def _array(image: Any, found: str, mode: str | None = None) -> Any:
    """The values of an image, converted to a mode of Pillow's."""
    with _by_pillow(found):
        return np.asarray(image if mode is None else image.convert(mode))


def _scaled(pixels: Any, dtype: Any) -> Any:
    """Pixels of 8 bits in another dtype."""
    if dtype == np.uint8:
        return pixels
    return pixels / np.float32(255) if dtype == np.float32 else pixels.astype(np.uint16) * np.uint16(257)
