# SPDX-License-Identifier: Apache-2.0
"""Tar archives for tests: whole ones, and ones that are damaged with care."""

import io
import tarfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any

FORMATS = (tarfile.USTAR_FORMAT, tarfile.PAX_FORMAT, tarfile.GNU_FORMAT)
FOLDERS = ("", "a/", "./", "__m__/", "__a/", "x" * 90 + "/", "y/" * 60, "\u00e9/", "b/.", "..a/", "../")
STEMS = ("1", "22", ".h", "3" * 100, "__k__", "")
EXTENSIONS = ("cls", "jpg", "JSON", "seg.png", "")
TYPES = (b"1", b"2", b"5", b"S", b"7", b"\0", b"M", b"V", b"q")


def tar_bytes(files: Iterable[tuple[Any, bytes]] | Mapping[str, bytes], format: int = tarfile.USTAR_FORMAT) -> bytes:
    """An archive of files; a name may be a `TarInfo`, whose size is that of the content."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=format) as archive:
        for name, content in files.items() if isinstance(files, Mapping) else files:
            header = name if isinstance(name, tarfile.TarInfo) else tarfile.TarInfo(name)
            header.size = len(content)
            archive.addfile(header, io.BytesIO(content))
    return out.getvalue()


def write_tar(path: Path | str, files: Iterable[tuple[Any, bytes]] | Mapping[str, bytes], format: int = 0) -> str:
    """Write an archive, and return its path."""
    Path(path).write_bytes(tar_bytes(files, format))
    return str(path)


def with_checksum(content: bytearray, at: int) -> None:
    """Make the checksum of the header at `at` right."""
    header = bytearray(content[at : at + 512])
    if len(header) == 512:
        header[148:156] = b" " * 8
        content[at + 148 : at + 156] = b"%06o\0 " % sum(header)


def strange_archive(seed: int) -> bytes:
    """Names, types and sizes of all kinds; headers with a wrong byte, often behind a right checksum; sometimes cut short."""
    random = Random(seed)
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w", format=random.choice(FORMATS)) as archive:
        for _ in range(random.randrange(6)):
            name = random.choice(FOLDERS) + random.choice(STEMS)
            for extension in random.sample(EXTENSIONS, random.randrange(1, 4)):
                header = tarfile.TarInfo(f"{name}.{extension}" if random.random() < 0.9 else name or "z")
                header.size = random.choice([0, 1, 511, 512, 513])
                header.mtime = random.choice([0, 1.5])  # POSIX has a header of its own for parts of a second
                if random.random() < 0.1:
                    header.type = random.choice(TYPES)
                try:
                    archive.addfile(header, io.BytesIO(b"x" * header.size))
                except ValueError:
                    continue  # the name is too long for this format
    content = bytearray(out.getvalue())
    if random.random() < 0.8:
        del content[len(content) - 512 * random.randrange(20) :]
    for _ in range(random.randrange(4)):
        at = random.randrange(len(content) // 512 + 1) * 512
        place = at + random.choice(
            [
                random.randrange(512),
                random.randrange(124, 136),
                156,
                random.randrange(8),
                100 + random.randrange(257),
                345,
            ]
        )
        if place < len(content):
            content[place] = random.choice([0, 128, 255, *b"9/.xLg ", random.randrange(256)])
        if random.random() < 0.8:
            with_checksum(content, at)
    return bytes(content[: random.randrange(len(content) + 1)] if random.random() < 0.3 else content)
