# SPDX-License-Identifier: Apache-2.0
"""Ranges of a file that fsspec opens: requests for exactly these bytes, of one version of the file, several at a time."""

import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event
from typing import Any, NamedTuple, TypeAlias, TypeVar

from distinput.errors import DataLossError, UnimplementedError
from distinput.files.local_cache import local_cache
from distinput.files.mounts import retries_of
from distinput.files.paths import file_system, is_web, modules_of, told_by
from distinput.files.retries import ShortAnswerError, persistently
from distinput.names.lazy import library
from distinput.run.threads import mapped
from distinput.url_secrets import public_url

hashlib = library("hashlib")  # for remote files

# ----------------------------------------------------------------------------
# Which version of a remote file an answer is of, so that what is read of a file is of one version.
# ----------------------------------------------------------------------------


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
    if not known:  # a file system with words of its own, such as "created"
        text = str(sorted(found.items())).encode(errors="surrogateescape")
        known = [hashlib.blake2b(text, digest_size=8).hexdigest()]
    written = next((str(found[key]) for key in _TIMES if found.get(key) is not None), "")
    etag = str(found.get("ETag") or found.get("etag") or "")
    by_ranges = None if size is None or not found.get("partial", True) else int(size)
    return FileMetadata(by_ranges, " ".join([str(size), *known]), etag, written)


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


# ----------------------------------------------------------------------------
# Ranges of files of web servers, through fsspec: each answer is held to the range that it says it has.
#
# A server may send another range than it was asked for, or know another size than the one it told before. Bytes alone do
# not show that; the header `Content-Range` does.
# ----------------------------------------------------------------------------


_AT_A_TIME = 8
_NOT_IN_FILE = 416  # the answer of a web server whose file ends before a range begins
_RANGE = re.compile(r"bytes (\d+)-(\d+)/(\d+|\*)")


def ukey_of(system: Any, name: str) -> str:
    """Which version of a file it is, by the key of fsspec; in an archive, whose key is another each time, by its entry."""
    in_archive = "fsspec.archive" in modules_of(told_by(system))
    return facts_of(system, name).version if in_archive else str(system.ukey(name))


def sends_whole(url: str) -> UnimplementedError:
    """The error where a part of a file is needed, and its server sends all of it."""
    return UnimplementedError(
        f"{url}: its server ignores requests for a part of a file, and sends all of it; copy the file, as simplecache:: before "
        "its URL does"
    )


def described_ranges(
    system: Any, url: str, ranges: Sequence[tuple[int, int]], timeout: float | None = None
) -> list[Any]:
    """Ranges of a file, several at a time, each as what its answer says of the file, as `info` does, and the bytes.

    In the place of a range that failed is its error.

    Args:
      system: of which `is_web` is true.
      url: of the file.
      ranges: the first byte of each, and the byte after it.
      timeout: seconds after which it is an error that they have not come; None: as the system has it.
    """
    import asyncio  # takes long, and only the web needs it

    from fsspec.asyn import sync

    async def ask() -> list[Any]:
        free = asyncio.Semaphore(_AT_A_TIME)
        session = await system.set_session()
        return await asyncio.gather(
            *(_part(system, session, free, url, *each) for each in ranges), return_exceptions=True
        )

    found: list[Any] = sync(system.loop, ask, timeout=timeout)
    return found


def described_range(system: Any, timeout: float, url: str, start: int, stop: int) -> Any:
    """One range of a file, as `described_ranges` gives it.

    Raises:
      Exception: that of the request.
    """
    (found,) = described_ranges(system, url, [(start, stop)], timeout)
    if isinstance(found, BaseException):
        try:
            raise found
        finally:
            del found  # the traceback refers to this frame, and the frame must not refer back
    return found


async def _part(system: Any, session: Any, free: Any, url: str, start: int, stop: int) -> Any:
    if start >= stop:
        return {}, b""
    options = {**system.kwargs}
    # Compressed, the bytes would be of another file, of which servers send no parts.
    identity = {"Accept-Encoding": "identity"}
    options["headers"] = {**identity, **(options.get("headers") or {}), "Range": f"bytes={start}-{stop - 1}"}
    async with free, session.get(system.encode_url(url), **options) as answer:
        system._raise_not_found_for_status(answer, url)
        if answer.status != 206 and (start or (answer.content_length or 0) > stop):
            raise sends_whole(url)
        try:
            data = await answer.content.readexactly(stop - start + 1)
        except EOFError as end:  # mostly: there is not more than was asked for
            data = end.partial  # type: ignore[attr-defined]
        if answer.status != 206 and len(data) > stop:  # nor did it say the size
            raise sends_whole(url)
        told = answer.headers.get("Content-Range")
        size = _checked(url, told, start, stop, len(data)) if answer.status == 206 else None
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
        raise ShortAnswerError(
            f"{url}: bytes {start} to {stop} were asked for, and the answer has {size}, marked {told!r}"
        )
    return whole


# ----------------------------------------------------------------------------
# Ranges of a file that fsspec opens: requests for exactly these bytes, several at a time, until all are there.
# ----------------------------------------------------------------------------


T = TypeVar("T")

BytesLike: TypeAlias = Any
"""Bytes, or an object that shows its memory as bytes do."""

PIECE_BYTES = 4 << 20  # a larger range is requested in pieces, at the same time
AT_A_TIME = 8  # requests of one file


def asked(path: str, ask: Callable[[Any, str], T]) -> T:
    """`ask(system, name)` for a file behind a URL, again where the answer is an error that may pass."""
    system, name = file_system(path)
    return persistently(lambda: ask(system, name), path, retries_of(path))


def facts_of(system: Any, name: str) -> FileMetadata:
    """Ask for the size of a file and its version."""
    return facts_in(told_by(system).info(name))


def fetch(
    path: str,
    starts: Sequence[int],
    stops: Sequence[int],
    facts: FileMetadata | None = None,
    cancel: Event | None = None,
) -> list[BytesLike]:
    """Read bytes starts[i] to stops[i] of a remote file; large ranges in pieces, several at a time, until all are there.

    Args:
      path: the URL.
      starts: the first byte of each range.
      stops: the byte after each range.
      facts: of the file, if they are known; else a range is shorter where the file ends before it does.
      cancel: once it is set, the read is given up.

    Raises:
      DataLossError: the file is shorter than it was, or another one than the facts are of.
      UnimplementedError: its server sends whole files only.
    """
    cache = local_cache()
    if cache is None:
        return _fetch(path, starts, stops, facts, cancel)
    known = facts or asked(path, facts_of)
    if known.size is None:
        return _fetch(path, starts, stops, None, cancel)
    wanted = [(start, max(start, stop)) for start, stop in zip(starts, stops, strict=True)]

    def ask(ranges: list[tuple[int, int]]) -> list[BytesLike]:
        return _fetch(path, [a for a, _ in ranges], [b for _, b in ranges], known, cancel)

    return cache.read(f"{public_url(path)} {known.version}", known.size, wanted, ask)


def _fetch(
    path: str, starts: Sequence[int], stops: Sequence[int], facts: FileMetadata | None, cancel: Event | None
) -> list[BytesLike]:
    system, name = file_system(path)
    pieces = [
        (offset, min(stop, offset + PIECE_BYTES))
        for start, stop in zip(starts, stops, strict=True)
        for offset in range(start, stop, PIECE_BYTES)
    ]
    got: dict[tuple[int, int], BytesLike] = {}

    def ask() -> None:
        _ask_missing(system, name, path, [piece for piece in pieces if piece not in got], facts, got)

    if pieces:
        persistently(ask, path, retries_of(path), cancel)
    found = []
    for start, stop in zip(starts, stops, strict=True):
        parts = [got[offset, min(stop, offset + PIECE_BYTES)] for offset in range(start, stop, PIECE_BYTES)]
        found.append(parts[0] if len(parts) == 1 else b"".join(parts))
    return found


def _ask_missing(
    system: Any,
    name: str,
    path: str,
    pieces: Sequence[tuple[int, int]],
    facts: FileMetadata | None,
    got: dict[tuple[int, int], BytesLike],
) -> None:
    """Make one request for each piece; those that are answered are in `got` even if others fail."""
    error: BaseException | None = None
    size = None if facts is None else facts.size
    if facts is not None and (is_web(system) or ((facts.etag or facts.written) and hasattr(system, "described_parts"))):
        parts = _parts_of_version(system, name, path, pieces, facts)
    else:
        parts = _parts(system, name, pieces)
    for piece, part in zip(pieces, parts, strict=True):
        if isinstance(part, BaseException):
            error = error or part
        elif len(part) == piece[1] - piece[0]:
            got[piece] = part
        else:
            error = _short(system, name, path, piece, part, size, got) or error
    if error is not None:
        try:
            raise error
        finally:
            del error, part, parts  # as in `described_range`


def _short(
    system: Any, name: str, path: str, piece: tuple[int, int], part: BytesLike, size: int | None, got: Any
) -> BaseException | None:
    """What is wrong with an answer that is shorter than was asked for; nothing, if the file ends there."""
    start, stop = piece
    now = facts_of(system, name).size
    if size is None and (now is None or start + len(part) >= min(now, stop)):
        got[piece] = part
        return None
    what = f"bytes {start} to {stop} came as {len(part)}"
    if size is not None and now is not None and now < min(stop, size):
        return DataLossError(f"{path}: should have {size} bytes, but has {now}, and {what}; the file has changed")
    return ShortAnswerError(f"{path}: {what}; the file has changed, or its server does not send parts of files")


def _parts(system: Any, name: str, pieces: Sequence[tuple[int, int]]) -> list[BytesLike]:
    """The answers to some requests: bytes, or errors."""
    if len(pieces) == 1 or getattr(system, "async_impl", False) or getattr(system, "ranges_at_once", False):
        return ranges_of(system, name, pieces)
    shares = [pieces[first::AT_A_TIME] for first in range(min(AT_A_TIME, len(pieces)))]
    answers: list[BytesLike] = [b""] * len(pieces)
    for first, parts in enumerate(mapped(partial(ranges_of, system, name), shares, len(shares), "distinput-ranges")):
        answers[first::AT_A_TIME] = parts
    return answers


def _parts_of_version(
    system: Any, name: str, path: str, pieces: Sequence[tuple[int, int]], facts: FileMetadata
) -> list[BytesLike]:
    """As `_parts`, from a file system that says with each answer which version of the file it is of.

    Raises:
      DataLossError: one is of another version.
    """
    parts: list[BytesLike] = []
    web = is_web(system)
    for answer in described_ranges(system, name, pieces) if web else system.described_parts(name, pieces):
        if isinstance(answer, BaseException):
            parts.append(answer)
            continue
        now, part = answer
        _check_same(path, facts, facts_in(now))
        parts.append(part)
    lost = [each for each in parts if isinstance(each, OSError) or getattr(each, "status", 0) == _NOT_IN_FILE]
    if lost and not any(isinstance(each, FileNotFoundError | PermissionError) for each in lost):
        # A range that the new version does not have is an error like any other, which would be asked for again for minutes.
        with suppress(OSError):
            _check_same(path, facts, facts_of(system, name))
    return parts


def _check_same(path: str, before: FileMetadata, now: FileMetadata) -> None:
    wrong = changed(path, before, now)
    if wrong is not None:
        raise wrong


def ranges_of(system: Any, name: str, ranges: Sequence[tuple[int, int]]) -> list[BytesLike]:
    """Ask once for ranges of a file; one is shorter where the file ends before it does, and an error where it failed.

    Args:
      system: an fsspec file system.
      name: of the file in that file system.
      ranges: the first byte of each range, and the byte after it.
    """
    from fsspec import AbstractFileSystem

    # The default would reopen the file for each range. (Asynchronous file systems have it as a plain attribute.)
    if getattr(system.cat_file, "__func__", None) is AbstractFileSystem.cat_file:
        answers: list[Any] = []
        try:
            with _opened(system, name) as file:
                answers.extend(_read(file, start, stop) for start, stop in ranges)
        except Exception as error:  # noqa: BLE001 - for whoever asked to raise, or to ask again
            answers += [error] * (len(ranges) - len(answers))
        return answers
    if is_web(system):
        described = described_ranges(system, name, ranges)
        answers = [each if isinstance(each, BaseException) else each[1] for each in described]
    else:
        starts, stops = [start for start, _ in ranges], [stop for _, stop in ranges]
        answers = list(system.cat_ranges([name] * len(ranges), starts, stops, on_error="return"))
    for got, (start, stop) in zip(answers, ranges, strict=True):
        if not isinstance(got, BaseException) and len(got) > stop - start:
            raise sends_whole(name)
    return [got if isinstance(got, bytes | BaseException) else memoryview(got) for got in answers]


def _opened(system: Any, name: str) -> Any:
    """Open the file for reading, without read-ahead if the file system supports that."""
    try:
        return system.open(name, "rb", cache_type="none")
    except TypeError:
        return system.open(name, "rb")


def _read(file: Any, start: int, stop: int) -> bytes:
    file.seek(start)
    return bytes(file.read(max(0, stop - start)))
