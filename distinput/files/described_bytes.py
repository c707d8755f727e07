# SPDX-License-Identifier: Apache-2.0
"""What a server says of a file, and the bytes at one of its ends: one request for both, where the file system makes such."""

from typing import Any, TypeAlias

from distinput.files.local_cache import local_cache
from distinput.files.paths import file_system
from distinput.files.range_requests import BytesLike
from distinput.files.version import FileMetadata, facts_in

__all__ = ["DescribedBytes", "beginning", "ending"]

DescribedBytes: TypeAlias = tuple[FileMetadata, BytesLike]
"""What a server says of a file, and bytes of it."""


def beginning(path: str, start: int, size: int) -> DescribedBytes | None:
    """What the server says of a file, and `size` bytes of it from `start` on, or fewer where it ends.

    None if that cannot be had, for whatever reason: whoever asks again for what the server says is told what is wrong.
    """
    found = _asked_once(path, "beginning", start, start + size)
    return found if found is not None and len(found[1]) == min(size, (found[0].size or 0) - start) else None


def ending(path: str, size: int) -> DescribedBytes | None:
    """What the server says of a file, and the last `size` bytes of it, or all if it has fewer; None as for `beginning`."""
    found = _asked_once(path, "ending", size)
    return found if found is not None and len(found[1]) == min(size, found[0].size or 0) else None


def _asked_once(path: str, method: str, *which: int) -> DescribedBytes | None:
    system, name = file_system(path)
    ask: Any = getattr(system, method, None)
    if ask is None or local_cache() is not None:  # where the bytes may be here already
        return None
    try:
        found, got = ask(name, *which)
    except Exception:  # noqa: BLE001 - told by the next request, and asked again where it may pass
        return None
    return facts_in(found), got
