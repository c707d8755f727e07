# SPDX-License-Identifier: Apache-2.0
"""Ranges of files of web servers, through fsspec: each answer is held to the range that it says it has.

A server may send another range than it was asked for, or know another size than the one it told before. Bytes alone do not show
that; the header `Content-Range` does.
"""

import re
from collections.abc import Sequence
from typing import Any

from distinput.errors import UnimplementedError
from distinput.files.retries import ShortAnswerError

__all__ = ["described_ranges", "is_web"]

_AT_A_TIME = 8
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


def is_web(system: Any) -> bool:
    """True for fsspec's file system of web servers."""
    return any(kind.__module__ == "fsspec.implementations.http" for kind in type(system).__mro__)


def described_ranges(system: Any, url: str, ranges: Sequence[tuple[int, int]]) -> list[Any]:
    """Ranges of a file, several at a time, each as what its answer says of the file, as `info` does, and the bytes.

    In the place of a range that failed is its error.

    Args:
      system: of which `is_web` is true.
      url: of the file.
      ranges: the first byte of each, and the byte after it.
    """
    import asyncio  # takes long, and only the web needs it

    from fsspec.asyn import sync

    async def ask() -> list[Any]:
        free = asyncio.Semaphore(_AT_A_TIME)
        session = await system.set_session()
        return await asyncio.gather(
            *(_part(system, session, free, url, *each) for each in ranges), return_exceptions=True
        )

    found: list[Any] = sync(system.loop, ask)
    return found


async def _part(system: Any, session: Any, free: Any, url: str, start: int, stop: int) -> Any:
    if start >= stop:
        return {}, b""
    options = {**system.kwargs}
    options["headers"] = {**options.get("headers", {}), "Range": f"bytes={start}-{stop - 1}"}
    async with free, session.get(system.encode_url(url), **options) as answer:
        system._raise_not_found_for_status(answer, url)
        if answer.status != 206 and start:
            raise UnimplementedError(
                f"{url}: its server sends the whole file when asked for a part; copy the file to this machine"
            )
        data = await answer.read()
        size = (
            _checked(url, answer.headers.get("Content-Range"), start, stop, len(data)) if answer.status == 206 else None
        )
        said = {"size": size} | {key: answer.headers[key] for key in ("ETag", "Last-Modified") if key in answer.headers}
        return said, data


def _checked(url: str, told: str | None, start: int, stop: int, size: int) -> int | None:
    """The size of the whole file, as an answer has it.

    Raises:
      ShortAnswerError: the answer is another range, or not all of it.
    """
    found = _RANGE.fullmatch(told or "")
    if found is None:
        return None
    first, last, whole = int(found[1]), int(found[2]), None if found[3] == "*" else int(found[3])
    if first != start or last >= stop or last - first + 1 != size:
        raise ShortAnswerError(f"{url}: bytes {start} to {stop} were asked for, and {size} bytes came as {told!r}")
    return whole
