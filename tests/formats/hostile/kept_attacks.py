# SPDX-License-Identifier: Apache-2.0
"""Attacks on what was saved, cached and written to a folder, and on members of archives that are decoded."""

import io
import json
import os
import pickle
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import distinput as di
from tests.formats.hostile.attacks import EXPANDED, Attack, Bomb, Read, of, writes
from tests.formats.hostile.attacks import member_of as member
from tests.formats.hostile.attacks import npy_of as npy
from tests.formats.hostile.attacks import tar_of as tar

MANIFEST = "distinput-manifest.json"


def _saved(path: Path) -> None:
    di.data.Dataset.range(500).map(lambda x: {"x": x, "s": b"text"}).save(str(path))


def _written(path: Path) -> None:
    di.data.Dataset.range(500).map(lambda x: {"x": x}).write(str(path), "parquet")


def _cached(path: Path) -> None:
    list(di.data.Dataset.range(500).cache(str(path)))


def _from_cache(path: str) -> Any:
    return di.data.Dataset.range(500).cache(path)


def _data_file(folder: Path) -> Path:
    return max((path for path in folder.iterdir() if path.name != MANIFEST), key=lambda path: path.stat().st_size)


def _manifest(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], object]:
    def changed(folder: Path) -> None:
        found = json.loads((folder / MANIFEST).read_text())
        change(found)
        (folder / MANIFEST).write_text(json.dumps(found))

    return changed


def _first(name: str, value: Any) -> Callable[[Path], object]:
    return _manifest(lambda found: found["files"][0].update({name: value}))


def _text(text: str | bytes) -> Callable[[Path], object]:
    return lambda folder: (folder / MANIFEST).write_bytes(text if isinstance(text, bytes) else text.encode())


def _data(change: Callable[[bytes], bytes]) -> Callable[[Path], object]:
    def changed(folder: Path) -> None:
        path = _data_file(folder)
        path.write_bytes(change(path.read_bytes()))

    return changed


DAMAGES: dict[str, Callable[[Path], object]] = {
    "a name outside": _first("name", "../../file"),
    "an absolute name": _first("name", "/etc/passwd"),
    "a name with a NUL": _first("name", "a\0b"),
    "the name of the folder": _first("name", "."),
    "a name that is a number": _first("name", 3),
    "fewer rows than none": _first("rows", -1),
    "more rows than fit": _manifest(lambda found: (found["files"][0].update(rows=2**63), found.update(rows=2**63))),
    "another size": _first("bytes", 2**62),
    "an unknown format": _manifest(lambda found: found.update(format="os.system")),
    "unknown options": _manifest(lambda found: found.update(options={"layout": "__import__('os')"})),
    "options that are text": _manifest(lambda found: found.update(options="x")),
    "an unknown key": _manifest(lambda found: found.update(other=1)),
    "another version": _manifest(lambda found: found.update(distinput_written=99)),
    "no text": _text(b"\xff\xfe\0"),
    "nothing": _text(b""),
    "deep lists": _text("[" * 100_000),
    "half of it": lambda folder: _text((folder / MANIFEST).read_text()[:200])(folder),
    "a file that is cut": _data(lambda content: content[: len(content) // 2]),
    "a file of zeros": _data(lambda content: bytes(len(content))),
    "a file of other bytes": _data(
        lambda content: content[: len(content) // 2] + os.urandom(len(content) - len(content) // 2)
    ),
    "a file with other lengths": _data(
        lambda content: content.replace(struct.pack("<q", 500), struct.pack("<q", 2**62))
    ),
    "a file that is gone": lambda folder: _data_file(folder).unlink(),
    "a file that is a link elsewhere": lambda folder: (
        _data_file(folder).unlink(),
        (folder / "link").symlink_to("/etc/passwd"),
    ),
}
"""What somebody does to a folder that was complete. An error names it, or the elements are read."""


def kept() -> Iterator[Attack]:
    """Folders of elements, with a manifest or a file that is not as it was."""
    makers: dict[str, tuple[Callable[[Path], None], Callable[[str], Any]]] = {
        "saved": (_saved, di.data.Dataset.load),
        "written": (_written, lambda path: di.data.FileDataset(path, "parquet")),
        "cached": (_cached, _from_cache),
    }
    for name, (make, load) in makers.items():
        for what, damage in DAMAGES.items():

            def made(folder: Path, make: Any = make, damage: Any = damage) -> None:
                make(folder / "file")
                damage(folder / "file")

            yield Attack(f"{name} with {what}", made, of(load), "file?", None, long=name != "saved")


def _png(width: int, height: int, data: bytes = b"", more: bytes = b"") -> bytes:
    def chunk(name: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + name + content + struct.pack(">I", zlib.crc32(name + content))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + more + chunk(b"IDAT", zlib.compress(data)) + chunk(b"IEND", b"")


def _image(kind: str) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    Image.fromarray(np.arange(300, dtype=np.uint8).reshape(10, 10, 3)).save(file, kind)
    return file.getvalue()


def _zip(**members: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name + ".npy", content)
    return file.getvalue()


def _zip_bomb() -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        head = npy(np.zeros(0))
        head = head.replace(b"(0,)", b"(%d,)" % (EXPANDED // 8))
        for number in range(-(-(2 << 30) // EXPANDED)):
            with archive.open(f"x{number}.npy", "w", force_zip64=True) as inner:
                inner.write(head)
                for _ in range(EXPANDED >> 20):
                    inner.write(bytes(1 << 20))
    return file.getvalue()


def decoded() -> Iterator[Attack]:
    """Members of archives that are decoded by their extensions."""
    objects = npy(np.array([Bomb(), 1], object))
    members: dict[str, tuple[str, Callable[[], bytes]]] = {
        "objects": ("npy", lambda: objects),
        "a pickle": ("npy", lambda: pickle.dumps(Bomb())),
        "an archive of objects": ("npz", lambda: _zip(x=objects)),
        "an archive of a name outside": ("npz", lambda: _zip(**{"../../evil": npy(np.ones(2))})),
        "an archive that is none": ("npz", lambda: b"PK\3\4" + b"\xff" * 100),
        "an archive that is cut": ("npz", lambda: _zip(x=npy(np.ones(200)))[:-30]),
        "a header of a shape": ("npy", lambda: npy(np.ones(2)).replace(b"(2,)", b"(9999999999999,)")),
        "deep lists": ("json", lambda: b"[" * 100_000 + b"]" * 100_000),
        "a long number": ("json", lambda: b"9" * 100_000),
        "text that is none": ("txt", lambda: b"\xff\xfe"),
        "a class that is none": ("cls", lambda: b"9" * 10_000),
        "an image of many pixels": ("png", lambda: _png(60_000, 60_000)),
        "an image of too many pixels": ("png", lambda: _png(2**31 - 1, 2**31 - 1)),
        "an image of no pixels": ("png", lambda: _png(0, 0)),
        "an image without data": ("png", lambda: _png(100, 100)),
        "an image with an endless text": ("png", lambda: _png(1, 1, bytes(4), _text_chunk())),
        "an image of random bytes": ("jpg", lambda: b"\xff\xd8\xff\xe0" + os.urandom(500)),
    }
    for kind in ("png", "jpeg", "bmp", "webp"):
        for part in (2, 3, 10):
            members[f"a {kind} that is cut at 1/{part}"] = (
                kind,
                lambda k=kind, p=part: _image(k)[: len(_image(k)) // p],
            )
        members[f"a {kind} with other bytes"] = (kind, lambda k=kind: _image(k)[:40] + b"\xff" * (len(_image(k)) - 40))
    for what, (extension, content) in members.items():

        def made(folder: Path, extension: str = extension, content: Callable[[], bytes] = content) -> None:
            (folder / "file").write_bytes(tar(member(f"0.{extension}", content())))

        read: Read = of(lambda path: di.data.WebDataset(path, decode=True))
        yield Attack(f"decoding {what}", made, read, "file?", None)
    bomb = writes(lambda: tar(member("0.npz", _zip_bomb())))
    yield Attack("decoding a zip bomb", bomb, of(lambda path: di.data.WebDataset(path, decode=True)), long=True)


def _text_chunk() -> bytes:
    text = b"Comment\0\0" + zlib.compress(bytes(50 << 20), 1)
    return struct.pack(">I", len(text)) + b"zTXt" + text + struct.pack(">I", zlib.crc32(b"zTXt" + text))
