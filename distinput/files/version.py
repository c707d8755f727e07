# SPDX-License-Identifier: Apache-2.0
"""Which version of a remote file an answer is of, so that what is read of a file is of one version."""

from typing import Any, NamedTuple

from distinput.errors import DataLossError

__all__ = ["FileMetadata", "changed", "facts_in"]

_VERSIONS = ("ETag", "etag", "md5Hash", "content_md5", "version", "generation")
_TIMES = ("LastModified", "Last-Modified", "last_modified", "mtime")
"""Where file systems tell which version of a file it is, and when it was written."""


class FileMetadata(NamedTuple):
    """What a server says of a file.

    Args:
      size: in bytes; None if it says none, or only sends whole files.
      version: changes when the file does, as far as the server tells.
      etag: the entity tag; "" if it says none.
      written: when it was written; "" if it does not say.
    """

    size: int | None
    version: str = ""
    etag: str = ""
    written: str = ""


def facts_in(found: Any) -> FileMetadata:
    """What a file system's `info` says.

    >>> facts_in({"size": 3, "ETag": '"a"', "LastModified": None})
    FileMetadata(size=3, version='3 "a"', etag='"a"', written='')
    """
    size = found.get("size")
    known = [str(found[key]) for key in (*_VERSIONS, *_TIMES) if found.get(key) is not None]
    written = [str(found[key]) for key in _TIMES if found.get(key) is not None]
    return FileMetadata(
        None if size is None or not found.get("partial", True) else int(size),
        " ".join([str(size), *known]),
        str(found.get("ETag") or found.get("etag") or ""),
        written[0] if written else "",
    )


def changed(path: str, before: FileMetadata, now: FileMetadata) -> DataLossError | None:
    """What is wrong where two answers are of two versions of a file; None where the server does not tell them apart.

    Entity tags decide where both answers have one. A weak tag counts as the strong one: some servers send both for one version.

    >>> changed("a", FileMetadata(3, etag='W/"1"', written="Monday"), FileMetadata(3, etag='"1"', written="Sunday"))
    >>> print(changed("a", FileMetadata(3, etag='"1"'), FileMetadata(4, etag='"2"')))
    a: changed while it was read: it was '3 bytes, ETag "1"', and is '4 bytes, ETag "2"'; write another file instead ...
    """
    sizes = None not in (before.size, now.size) and before.size != now.size
    if before.etag and now.etag:
        other = before.etag.removeprefix("W/") != now.etag.removeprefix("W/")
    else:
        other = bool(before.written and now.written) and before.written != now.written
    if not sizes and not other:
        return None
    return DataLossError(
        f"{path}: changed while it was read: it was {_told(before)!r}, and is {_told(now)!r}; write another file instead "
        "of replacing it"
    )


def _told(facts: FileMetadata) -> str:
    return f"{facts.size} bytes, {f'ETag {facts.etag}' if facts.etag else f'written at {facts.written}'}"
