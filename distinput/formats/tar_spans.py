# SPDX-License-Identifier: Apache-2.0
"""Samples in tar archives as spans of bytes: where each begins and ends, and what is wrong with an archive."""

from abc import abstractmethod
from dataclasses import dataclass

from distinput.core.spec import Spec
from distinput.errors import DataLossError, InvalidArgumentError, UnimplementedError
from distinput.formats.span_format import Found, Ints, Piece, SpanFormat
from distinput.formats.tar_members import name_at
from distinput.kernels import tar_header as tar
from distinput.kernels.tar import scan_samples

__all__ = ["MOST_BYTES", "TarSpans"]

MOST_BYTES = 1 << 30
"""The most bytes of a sample, unless the user allows more."""

_REASONS = {
    tar.BAD_CHECKSUM: "it does not match its checksum",
    tar.BAD_NUMBER: "its size or checksum is not a number",
    tar.BAD_EXTENSION: "it extends the next header, with a long name for example, and is malformed",
    tar.AFTER_END: "it is behind the end of the archive; `tar --concatenate` puts archives together, `cat` does not",
}


@dataclass(frozen=True, kw_only=True)
class TarSpans(SpanFormat):
    """A format of samples in tar archives: finds them as spans of the headers and contents of all of their files.

    Args:
      compression_type: None or "" for none, "GZIP" or another codec; "AUTO" goes by the suffix of each name.
      max_sample_bytes: the most bytes of a sample.
    """

    compression_type: str | None = "AUTO"
    max_sample_bytes: int = MOST_BYTES

    @abstractmethod
    def spec(self, path: str | None) -> Spec: ...

    def find(self, piece: Piece, starts: Ints, sizes: Ints) -> Found:
        count, after, status, where = scan_samples(piece.data, piece.at, starts, sizes, piece.ended)
        if status == tar.OK:
            return Found(count, after)
        row, start = piece.row + count, piece.byte - piece.at
        if status == tar.INCOMPLETE:
            return Found(count, after, where, self._too_long(piece, row, after, where))
        place = f"{piece.path}: sample {row}, header at byte {start + where}"
        match status:
            case tar.UNSUPPORTED:
                error: Exception = UnimplementedError(
                    f"{place}: {name_at(piece.data, where)} is a sparse file, a part of an archive of several volumes, or of "
                    "an unknown type; write the archive again with `tar --format=posix`, without --sparse and --multi-volume"
                )
            case tar.BAD_NAME:
                error = DataLossError(
                    f"{place}: the name {name_at(piece.data, where)} is empty, begins with a slash, or contains '..' or a zero "
                    "byte; samples are named by paths that stay in their folder"
                )
            case _:
                error = DataLossError(f"{place}: {_REASONS[status]}{_is_it_tar(row)}")
        return Found(count, after, 0, error)

    def _too_long(self, piece: Piece, row: int, at: int, need: int) -> Exception | None:
        """The error for a sample that needs more bytes than there are, or than are allowed."""
        left = len(piece.data) - at
        if piece.size is not None and not piece.ended:
            left = max(left, piece.size - (piece.byte + at - piece.at))
        if piece.ended or (piece.size is not None and need > left):
            return DataLossError(
                f"{piece.path}: ends within sample {row} at byte {piece.byte + at - piece.at}, which needs at least {need} "
                f"bytes with the header or the end of the archive behind it, but {left} are left; it was cut short"
                f"{_is_it_tar(row)}"
            )
        if need > self.max_sample_bytes:
            return InvalidArgumentError(
                f"{piece.path}: sample {row} at byte {piece.byte + at - piece.at} takes at least {need} bytes, more than "
                f"max_sample_bytes={self.max_sample_bytes}; allow more if the archive is right"
            )
        return None


def _is_it_tar(row: int) -> str:
    return "" if row else "; is this a tar archive, and is its compression_type right?"
