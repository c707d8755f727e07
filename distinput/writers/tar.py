# SPDX-License-Identifier: Apache-2.0
"""Tar files as WebDataset has them: the parts of an element are files of one name with different extensions."""

import io
import tarfile
from collections.abc import Callable
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.files.sink import Sink
from distinput.formats.tar import in_lower_case
from distinput.values.leaves import STRING
from distinput.values.spec import Spec, TensorSpec
from distinput.writers.writer import CompressedWriter, ShardFile, refuse_nulls

_KEY = "__key__"
_URL = "__url__"
_NUMBERS = ("cls", "cls2", "id", "inx", "index")
_ARRAYS = ("npy",)


class TarWriter(CompressedWriter):
    """Elements that are dicts from extension to contents, such as `{"jpg": ..., "cls": 3}`, as files of tar archives.

    Bytes are written as they are; integers as digits, for the extensions "cls", "cls2", "id", "index" and "inx"; arrays as
    `.npy` files, for "npy". The item `"__key__"` (bytes) names the files of an element, without extension; without it they are
    numbered.
    Names have no more than folders and one base without a dot: what follows the first dot is the extension.

    Args:
      compression: of the whole file: None, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4" or "SNAPPY".

    Raises:
      InvalidArgumentError: the compression is unknown.

    Source: the format is that of the WebDataset library.
    """

    name: ClassVar[str] = "tar"
    suffix: ClassVar[str] = ".tar"

    def reading(self, spec: Spec) -> dict[str, Any]:
        members = [_KEY, *[in_lower_case(str(key)) for key in spec.structure.keys if key not in (_KEY, _URL)]]
        return {"when_empty": members} | super().reading(spec)

    def check(self, spec: Spec) -> None:
        refuse_nulls("tar", spec.structure)
        keys = spec.structure.keys
        if spec.structure.kind != "dict" or not all(child.is_leaf for child in spec.structure.children):
            raise InvalidArgumentError(
                f'write: tar takes dicts from extension to contents, such as {{"jpg": ..., "cls": ...}}, got {spec.nest}'
            )
        if not [key for key in keys if key not in (_KEY, _URL)]:
            raise InvalidArgumentError(
                "write: tar: elements have no file; give at least one extension beside '__key__'"
            )
        for key, leaf in zip(keys, spec.leaves, strict=True):
            if not isinstance(key, str) or not key or "/" in key or key.startswith("."):
                raise InvalidArgumentError(f"write: tar: {key!r} cannot be the suffix of a file name")
            _encoder(key, leaf)
        lower = [in_lower_case(key) for key in keys if key not in (_KEY, _URL)]
        if len(set(lower)) < len(lower):
            raise InvalidArgumentError(
                f"write: tar: extensions are read in lower case, so {sorted(keys)} has one of them twice; rename it"
            )

    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        return _File(
            sink, {key: _encoder(key, leaf) for key, leaf in zip(spec.structure.keys, spec.leaves, strict=True)}, first
        )


class _File(ShardFile):
    def __init__(self, sink: Sink, encoders: dict[str, Callable[[Any], bytes]], first: int) -> None:
        self._encoders, self._row = encoders, first
        self._sink, self._last, self._size = sink, "", 0

    def write(self, block: Block) -> None:
        for element in block.kept.elements():
            key = _checked(element[_KEY], self._last) if _KEY in element else f"{self._row:09d}"
            for extension, encode in self._encoders.items():
                if extension in (_KEY, _URL):
                    continue
                file_name = f"{key}.{extension}"
                first = file_name.partition("/")[0]
                if len(first) >= 4 and first.startswith("__") and first.endswith("__"):
                    raise InvalidArgumentError(
                        f"write: tar: {file_name!r} would be passed over by readers, as names like '__this__' are; rename it"
                    )
                data = encode(element[extension])
                entry = tarfile.TarInfo(file_name)
                entry.size, entry.mode = len(data), 0o444
                self._put(entry.tobuf(tarfile.PAX_FORMAT, "utf-8", "strict"))
                self._put(data)
                self._put(bytes(-len(data) % tarfile.BLOCKSIZE))
            self._row, self._last = self._row + 1, key

    def finish(self) -> None:
        self._put(bytes(2 * tarfile.BLOCKSIZE))
        self._put(bytes(-self._size % tarfile.RECORDSIZE))

    def _put(self, data: bytes) -> None:
        self._sink.write(data)
        self._size += len(data)


def _checked(raw: bytes, last: str) -> str:
    """The name of the files of an element, which must be one that is read as it was written."""
    try:
        key = raw.decode()
    except UnicodeDecodeError:
        raise InvalidArgumentError(f"write: tar: '__key__' must be UTF-8, got {raw!r}") from None
    parts = key.split("/")
    if "" in parts or ".." in parts or "." in parts or "." in parts[-1] or "\0" in key or "\\" in key:
        raise InvalidArgumentError(
            f"write: tar: '__key__' must be a relative name without dots in its last part, got {key!r}"
        )
    if key == last:
        raise InvalidArgumentError(
            f"write: tar: two elements in a row have the key {key!r}, so they would be read as one; give each its own"
        )
    return key


def _encoder(key: str, leaf: Any) -> Callable[[Any], bytes]:
    """What makes the contents of a file from a value of this spec."""
    kind = key.rpartition(".")[2].lower()
    if isinstance(leaf, TensorSpec) and leaf.ragged_rank is None:
        if leaf.shape == () and leaf.dtype == STRING:
            return bytes
        if leaf.shape == () and leaf.dtype.kind in "iu" and kind in _NUMBERS:
            return lambda value: b"%d" % int(value)
        if kind in _ARRAYS and leaf.dtype != STRING and not leaf.dtype.hasobject:
            return _npy
    raise InvalidArgumentError(
        f"write: tar: {leaf} cannot become the file {key!r}: bytes are written as they are, integers as "
        f"{', '.join(_NUMBERS)}, arrays as npy; map it to bytes, or give it such an extension"
    )


def _npy(value: Any) -> bytes:
    file = io.BytesIO()
    np.save(file, np.asarray(value), allow_pickle=False)
    return file.getvalue()
