# SPDX-License-Identifier: Apache-2.0
"""The interface of a writer: which elements it takes, and how it turns blocks of them into the bytes of a file."""

from abc import ABC, abstractmethod
from typing import Any, ClassVar

from distinput.columns.block import Block
from distinput.errors import InvalidArgumentError
from distinput.files.compression import CODECS, Compression, as_compression
from distinput.files.sink import Sink
from distinput.names.lazy import dataclass
from distinput.values.nest import Structure, component
from distinput.values.nullable import is_nullable
from distinput.values.spec import Spec


class ShardFile(ABC):
    """One file that is being written.

    Attributes:
      held: bytes that are not in its sink yet.
    """

    held: int = 0

    @abstractmethod
    def write(self, block: Block) -> None:
        """Append elements."""

    def finish(self) -> None:  # noqa: B027 - most files need nothing more
        """Write what comes after the last element."""

    def beside(self) -> bytes:
        """What is in the file beside this one, which is finished; for writers that have `beside`."""
        raise NotImplementedError

    def discard(self) -> None:  # noqa: B027 - most files need nothing
        """Forget what is not written; the sink is closed, or will be."""


@dataclass(frozen=True)
class Writer(ABC):
    """A way to write elements to files. Subclasses are frozen dataclasses that hold the options of the format."""

    name: ClassVar[str]
    """That of the format that reads the files."""
    suffix: ClassVar[str]
    """What names of files end in."""
    beside: ClassVar[str] = ""
    """What the name of a second file ends in instead, such as an index, that is written beside each; "": there is none."""

    @property
    def compression(self) -> Compression:
        """How the whole file is compressed."""
        return ""

    @property
    def ending(self) -> str:
        """What names of files end in, with what the compression adds."""
        return self.suffix + (CODECS[self.compression].suffixes[0] if self.compression else "")

    @abstractmethod
    def check(self, spec: Spec) -> None:
        """Refuse elements that the format cannot hold.

        Raises:
          InvalidArgumentError: a component cannot be written.
        """

    @abstractmethod
    def open(self, sink: Sink, spec: Spec, first: int) -> ShardFile:
        """Begin a file.

        Args:
          sink: where its bytes go; whoever opened it closes it.
          spec: of the elements.
          first: how many elements are in files before it.
        """

    def reading(self, spec: Spec) -> dict[str, Any]:
        """The options with which the format reads these files: JSON values."""
        del spec
        return {}


@dataclass(frozen=True, init=False)
class CompressedWriter(Writer):
    """A writer of files that are compressed as a whole.

    Args:
      compression: None, "GZIP", "ZLIB", "BZ2", "ZSTD", "LZ4" or "SNAPPY".

    Raises:
      InvalidArgumentError: the compression is unknown.
    """

    compression_type: str | None = None

    def __init__(self, compression: str | None = None) -> None:
        object.__setattr__(self, "compression_type", whole_file_codec(compression))

    @property
    def compression(self) -> Compression:
        return as_compression(self.compression_type)

    def reading(self, spec: Spec) -> dict[str, Any]:
        return {"compression_type": self.compression_type} if self.compression_type else {}


def refuse_nulls(writer: str, structure: Structure) -> None:
    """Refuse elements that are a `Nullable`, or have one among their parts.

    Raises:
      InvalidArgumentError: they are.
    """
    parts = dict(structure.members)
    found = [key for key, child in parts.items() if is_nullable(child)]
    if found or is_nullable(structure):
        what, name = (component(f"[{found[0]!r}]"), found[0]) if found else ("the elements", "x")
        raise InvalidArgumentError(
            f"write: {writer} cannot write the nulls of {what}; give the reader nulls={{{name!r}: value}} (convert "
            f"--null {name}=value), or write Parquet or Arrow files"
        )


def whole_file_codec(compression: str | None) -> str | None:
    """The codec of a file that is compressed as a whole; None: none.

    Raises:
      InvalidArgumentError: there is no such codec.
    """
    found = as_compression(compression)
    if found == "AUTO":
        raise InvalidArgumentError("write: 'AUTO' goes by the suffixes of files that are there; name the compression")
    return found or None
