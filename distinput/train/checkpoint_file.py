# SPDX-License-Identifier: Apache-2.0
"""The file of a checkpoint: an npz archive of arrays, with a JSON member that describes them and holds everything else.

`numpy.load` opens it. It holds no pickles. The archive has a CRC-32 of each member; the JSON member repeats those of the
arrays and has a checksum of its own, so that whatever was changed, cut off or left out is found before anything is used.
"""

import io
import json
import os
import uuid
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any, BinaryIO, cast

import numpy as np

from distinput.decoders.arrays import MalformedArchive, MalformedArray, content_of, npy_array, reading_archive
from distinput.errors import DataLossError, NotFoundError, StateError
from distinput.files.folder import names_in, split_path
from distinput.files.sink import Sink
from distinput.files.source import naming, open_binary
from distinput.run.threads import Closing
from distinput.url_secrets import without_secrets
from distinput.values.spec_json import MalformedJson, check_word, json_value, member

SUFFIX = ".npz"
"""The suffix that the file has and the path of the checkpoint lacks."""

VERSION = 1
"""Raised when the layout of the JSON member changes."""

_HEADER = "checkpoint.json"
_FORMAT = "distinput.checkpoint"
_CHUNK = 1 << 20  # bytes read at a time to compute a checksum

Array = np.ndarray[Any, Any]


def file_of(path: str) -> str:
    """The file of a checkpoint.

    >>> file_of("models/ckpt-1"), file_of("models/ckpt-1.npz")
    ('models/ckpt-1.npz', 'models/ckpt-1.npz')
    """
    return path if path.endswith(SUFFIX) else path + SUFFIX


def write_checkpoint(path: str, header: Mapping[str, Any], arrays: Mapping[str, Array]) -> str:
    """Write a checkpoint, and return its id.

    The file appears under its name when it is complete and on the disk; a checkpoint of this name stays until then.

    Args:
      path: the path of the checkpoint.
      header: a JSON object.
      arrays: of dtypes that the npy format knows, by name.

    Raises:
      OSError: it could not be written; nothing of it is left.
    """
    name = uuid.uuid4().hex
    with Sink(file_of(path), durable=True, own=True) as sink:
        checks = {}
        with zipfile.ZipFile(cast(BinaryIO, _Stream(sink)), "w") as archive:
            for key, array in arrays.items():
                member = zipfile.ZipInfo(f"{key}.npy")
                with archive.open(member, "w", force_zip64=True) as file:
                    np.lib.format.write_array(file, np.asanyarray(array), allow_pickle=False)
                checks[key] = member.CRC
            every = {"format": _FORMAT, "version": VERSION, "id": name, **header, "arrays": checks}
            text = json.dumps({**every, "check": check_word(every)}, ensure_ascii=True, allow_nan=False)
            archive.writestr(zipfile.ZipInfo(_HEADER), text)
    return name


def _opened(path: str) -> BinaryIO:
    try:
        return open_binary(file_of(path))
    except NotFoundError as error:
        if (there := _others(path)) is None:
            raise
        raise NotFoundError(f"{without_secrets(file_of(path))}: there is no such checkpoint; {there}") from error


def _others(path: str) -> str | None:
    """What is beside a checkpoint that does not exist, or in the folder of its name, and the cure; None: no checkpoints."""
    beside, name = split_path(path)
    for folder, begin in ((beside, f"{name}-"), (path, ""), (beside, "")):
        with suppress(Exception):  # a store that lists nothing says so in many ways, and the error is another one
            found = [each.removesuffix(SUFFIX) for each in names_in(folder) if each.endswith(SUFFIX)]
            found = sorted([each for each in found if each.startswith(begin)], key=lambda each: (len(each), each))
            if found:
                there = f"{len(found):,} others, the last one {found[-1]}" if len(found) > 1 else found[-1]
                numbered = ", as save appends a number" if begin else ""
                return (
                    f"{without_secrets(folder) or 'the current folder'} has {there}{numbered}: restore the path that save "
                    f"returned, or that latest_checkpoint({without_secrets(folder or os.curdir)!r}) finds"
                )
    return None


class CheckpointFile(Closing):
    """A checkpoint open for reading; opening it verifies all of it.

    Args:
      path: the path of the checkpoint.
      content: the bytes of its file, received from another worker; None to read the file.
      verified: True if all of the file was verified before and it has not changed since; only the description is read then.

    Raises:
      NotFoundError: there is no such file.
      DataLossError: the file is damaged or was not written to its end.
      StateError: a newer release of distinput wrote it.
    """

    def __init__(self, path: str, content: bytes | None = None, *, verified: bool = False) -> None:
        self.path = file_of(path)
        self._file: BinaryIO = io.BytesIO(content) if content is not None else _opened(path)
        try:
            with self._naming_damage():
                with reading_archive():
                    self._archive = zipfile.ZipFile(self._file)
                self.header = self._checked_header(verified)
        except BaseException:
            self._file.close()
            raise

    @property
    def id(self) -> str:
        """A unique name; a checkpoint that replaces this file has another one."""
        return str(self.header["id"])

    def array(self, key: str) -> Array:
        """An array, which must not be modified.

        Raises:
          DataLossError: the file was changed meanwhile.
        """
        with self._naming_damage():
            return npy_array(content_of(self._archive, f"{key}.npy"))

    def content(self) -> bytes:
        """All bytes of the file."""
        self._file.seek(0)
        return self._file.read()

    def close(self) -> None:
        """Close the file; may be called again."""
        self._archive.close()
        self._file.close()

    def _checked_header(self, verified: bool) -> dict[str, Any]:
        """The JSON member, once all members are verified, or, if they were `verified` before, once it is complete itself."""
        names = self._archive.namelist()
        if names.count(_HEADER) != 1:
            raise MalformedJson("it is not a checkpoint")
        header = json_value(content_of(self._archive, _HEADER).tobytes())
        if member(header, "format") != _FORMAT:
            raise MalformedJson("it is not a checkpoint")
        version, check = member(header, "version"), member(header, "check")
        if version != VERSION:
            raise StateError(
                f"{self.path}: the checkpoint has version {version!r}, this distinput reads version {VERSION}; restore it with "
                "the distinput that saved it"
            )
        result: dict[str, Any] = {key: value for key, value in header.items() if key != "check"}
        if check != check_word(result):
            raise MalformedJson("the checksum of its description differs")
        member(result, "id", str)
        members = {f"{key}.npy": check for key, check in member(result, "arrays", dict).items()}
        if sorted(names) != sorted([*members, _HEADER]):
            raise MalformedJson("arrays are missing")
        for name, check in members.items():
            with reading_archive():
                if check != self._archive.getinfo(name).CRC:
                    raise zipfile.BadZipFile(f"the checksum of {name!r} differs")
                if not verified:
                    with self._archive.open(name) as file:
                        while file.read(_CHUNK):
                            pass
        return result

    @contextmanager
    def _naming_damage(self) -> Iterator[None]:
        try:
            with naming(self.path):
                yield
        except (MalformedArchive, MalformedArray, MalformedJson) as error:
            raise DataLossError(
                f"{self.path}: the checkpoint is damaged or was not written to its end: {error}; take one saved before it"
            ) from error


class _Stream:
    """The file object that `zipfile` writes to; it cannot seek, so the archive is written from front to back."""

    def __init__(self, sink: Sink) -> None:
        self._sink = sink

    def write(self, data: bytes) -> int:
        self._sink.write(data)
        return len(data)

    def flush(self) -> None:
        pass
