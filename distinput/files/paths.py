# SPDX-License-Identifier: Apache-2.0
"""Paths and patterns: whatever users pass in becomes a list of plain strings, asked for together; locks on local files."""

import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from contextlib import nullcontext, suppress
from functools import lru_cache, partial
from glob import escape, glob, has_magic
from io import IOBase
from platform import node
from threading import RLock
from typing import Any, Self, TypeVar

from distinput.errors import EngineMissing, FailedPreconditionError, InvalidArgumentError, NoMatchError
from distinput.files.mounts import LOCAL, bucket_of, mounted, object_store, retries_of
from distinput.files.retries import persistently, telling
from distinput.kernels.kernel import renewed
from distinput.names.lazy import library
from distinput.run.threads import mapped
from distinput.url_secrets import cut_from_logs
from distinput.values.nest import too_deep

pathlib = library("pathlib")  # for folders with all that is below them
html, parse = library("html"), library("urllib.parse")  # for pages of web servers

# ----------------------------------------------------------------------------
# Braces in patterns of paths: `{a,b}` and `{000..127}` stand for several names, as in a shell.
# ----------------------------------------------------------------------------


_RANGE = re.compile(r"(-?\d+)\.\.(-?\d+)(?:\.\.(-?\d+))?")
_MOST = 1_000_000  # names that one pattern may stand for


def expand_braces(pattern: str) -> list[str]:
    """The names that a pattern stands for, in the order of a shell; the pattern itself if it has no such braces.

    Braces without a comma or a range are part of the name, and so is a brace without its other half.

    Raises:
      InvalidArgumentError: the pattern stands for more than a million names, or a range has a step of 0.

    >>> expand_braces("part-{08..10}.{txt,csv}")
    ['part-08.txt', 'part-08.csv', 'part-09.txt', 'part-09.csv', 'part-10.txt', 'part-10.csv']
    >>> expand_braces("{train,eval-{0..6..3}}/a"), expand_braces("a{b}c{")
    (['train/a', 'eval-0/a', 'eval-3/a', 'eval-6/a'], ['a{b}c{'])
    """
    names = [""]
    at = 0
    while at < len(pattern):
        end = _closing(pattern, at) if pattern[at] == "{" else None
        parts = None if end is None else _parts(pattern[at + 1 : end])
        if parts is None or end is None:
            parts, end = [pattern[at]], at
        if len(names) * len(parts) > _MOST:
            raise InvalidArgumentError(f"{pattern!r} stands for more than {_MOST} names; use a pattern with *")
        names = [name + part for name in names for part in parts]
        at = end + 1
    return names


def _closing(text: str, start: int) -> int | None:
    """Where the brace that opens at `start` is closed."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == "{") - (text[i] == "}")
        if not depth:
            return i
    return None


def _parts(inside: str) -> list[str] | None:
    """What braces with this text inside stand for; None if they are part of the name."""
    found = _RANGE.fullmatch(inside)
    if found is not None:
        return _numbers(*found.groups())
    cuts, depth = [-1], 0
    for i, letter in enumerate(inside):
        depth += (letter == "{") - (letter == "}")
        if letter == "," and not depth:
            cuts.append(i)
    if len(cuts) == 1:
        return None
    parts = [inside[a + 1 : b] for a, b in zip(cuts, [*cuts[1:], len(inside)], strict=True)]
    return [name for part in parts for name in expand_braces(part)]


def _numbers(first: str, last: str, step: str | None) -> list[str]:
    a, b, by = int(first), int(last), abs(int(step or 1))
    if not by:
        raise InvalidArgumentError(f"{{{first}..{last}..{step}}}: the step of a range of names must not be 0")
    if abs(b - a) // by >= _MOST:
        raise InvalidArgumentError(f"{{{first}..{last}}} stands for more than {_MOST} names; use a pattern with *")
    padded = any(len(n.lstrip("-")) > 1 and n.lstrip("-").startswith("0") for n in (first, last))
    width = max(len(first), len(last)) if padded else 0
    return [f"{n:0{width}d}" for n in (range(a, b + 1, by) if a <= b else range(a, b - 1, -by))]


# ----------------------------------------------------------------------------
# Files of a store that match a pattern, or are below a folder: all of them, or an error.
#
# fsspec leaves out a folder that cannot be listed, whatever the reason, so a request that fails would be files that nobody
# misses.
# ----------------------------------------------------------------------------


_MAGIC = re.compile(r"[*?\[]")


@telling()
def globbed(system: Any, pattern: str, *, folders: bool = True) -> list[str]:
    """What `system.glob(pattern)` returns.

    Args:
      system: a file system of fsspec.
      pattern: with `*`, `?`, `[...]` or `**`.
      folders: whether folders that match are among it.

    Raises:
      OSError: a folder cannot be listed; one that is not there has no files.
    """
    from fsspec.utils import glob_translate

    web = is_web(system)
    if not (web or _plain(system, "glob")) or ("**" in pattern and not _plain(system, "find")):
        found = system.glob(pattern, detail=True)
        if not isinstance(found, dict):  # a file system that does not tell
            return list(found)
        return [name for name, described in found.items() if folders or described.get("type") != "directory"]
    name = str(system._strip_protocol(pattern))
    name = name.replace("?", "[?]") if web else name  # there it begins a query
    magic = _MAGIC.search(name)
    root = name[: name.rfind("/", 0, magic.start()) + 1] if magic else name
    depth = None if "**" in name else name[len(root) :].count("/") + 1
    matches = re.compile(glob_translate(name)).match
    files, below_it = _walked(system, root, depth, asks="?" in name)
    if not folders:
        return sorted(filter(matches, files))
    if root.strip("/") and (files or below_it):
        below_it.add(root.rstrip("/"))
    slash = "/" if name.endswith("/**") else ""  # `a/**` matches the folder a too
    return sorted([*filter(matches, files), *(folder for folder in below_it if matches(folder + slash))])


@telling()
def below(system: Any, folder: str) -> list[str]:
    """What `system.find(folder)` returns: the files below a folder.

    Raises:
      OSError: a folder cannot be listed; one that is not there has no files.
    """
    if not _plain(system, "find"):
        return list(system.find(folder))
    return sorted(_walked(system, str(system._strip_protocol(folder)), None)[0]) or list(system.find(folder))


def is_web(system: Any) -> bool:
    """True for fsspec's file system of web servers."""
    return "fsspec.implementations.http" in modules_of(system)


def _plain(system: Any, name: str) -> bool:
    """True if the method of a file system is the one that all share, which walks through folders."""
    from fsspec.asyn import AsyncFileSystem
    from fsspec.spec import AbstractFileSystem

    kind = type(system)
    if isinstance(system, AsyncFileSystem):
        return getattr(kind, f"_{name}") is getattr(AsyncFileSystem, f"_{name}")
    return getattr(kind, name) is getattr(AbstractFileSystem, name)


def _walked(system: Any, root: str, depth: int | None, *, asks: bool = False) -> tuple[set[str], set[str]]:
    """The names of files, and those of folders, down to a depth.

    `walk` of fsspec has an `on_error`, but does not hand it on to the folders below the first one: they are listed here.
    """
    files, folders, waiting = set[str](), set[str](), [(root, 1)]
    listing = partial(_links, system, asks) if is_web(system) else partial(system.ls, detail=True)
    while waiting:
        folder, level = waiting.pop()
        try:
            listed = listing(folder)
        except (FileNotFoundError, NotADirectoryError):
            continue
        for each in listed:
            name = each["name"].rstrip("/")
            if each["type"] != "directory":
                files.add(name)
            elif name != folder.rstrip("/"):
                folders.add(name)
                if depth is None or level < depth:
                    waiting.append((name, level + 1))
    return files, folders


def _links(system: Any, asks: bool, folder: str) -> list[Any]:
    """What the page of a folder of a web server links to below that folder, as browsers read links; with queries if `asks`.

    fsspec takes each link for a file, also those by which a page is sorted, and those to its own top.
    """
    base = f"{folder.rstrip('/')}/"
    found = []
    for each in system.ls(base, detail=True):
        url = parse.urljoin(base, html.unescape(each["name"].removeprefix(base)))
        inside = url.partition("://")[2].startswith(base.partition("://")[2])
        if inside and "#" not in url and (asks or "?" not in url):
            found.append({**each, "name": url})
    return found


# ----------------------------------------------------------------------------
# Object stores in forked processes: a fork does not copy the threads that make obstore's requests, so none would come back.
# ----------------------------------------------------------------------------


_OWN = "distinput.files.object_store"
_USED = {"here": False, "before": False}  # in this process, and in the one that it was forked from


def check_not_forked(system: Any, path: str) -> None:
    """Refuse an object store of obstore in a process that was forked from one that had used obstore.

    Args:
      system: the file system that opens `path`.
      path: for the message.

    Raises:
      FailedPreconditionError: this is such a process.
    """
    if type(system).__module__ != _OWN:
        return
    if _USED["before"]:
        raise FailedPreconditionError(
            f"cannot open {path!r} here: this process was forked from one that had used obstore, whose threads do not exist "
            "after a fork, so no request would come back; start processes anew: DataLoader(multiprocessing_context='spawn'), "
            "also of interop.torch.Loader, or multiprocessing.get_context('spawn')"
        )
    _USED["here"] = True


def _after_fork() -> None:
    _USED["before"] = _USED["before"] or _USED["here"]


if hasattr(os, "register_at_fork"):  # there is none on Windows, nor a fork
    os.register_at_fork(after_in_child=_after_fork)


# ----------------------------------------------------------------------------
# Paths and patterns: whatever users pass in becomes a list of plain strings.
# ----------------------------------------------------------------------------


UNFINISHED = ".distinput-unfinished"
"""Suffix of the hidden names of files and folders that are being written, or were left behind by a writer that was killed."""

Paths = str | bytes | os.PathLike[Any] | Iterable[Any]

_BRACES = re.compile(r"\{[^{}/]*\}")
_LISTED = 4  # so many files are rather listed than asked for one by one


def as_paths(paths: Any) -> list[str]:
    """One or many paths as strings, in the order given.

    Args:
      paths: str, bytes, a path object, or lists, tuples and arrays of them, nested to any depth.

    Raises:
      InvalidArgumentError: a path is empty, or there are more levels than Python follows, as in a list that holds itself.
      TypeError: an item is not a path, or items are in no order, as in a set, or have names of their own, as in a dict.

    >>> from pathlib import PurePosixPath
    >>> as_paths(["a.txt", b"b.txt", PurePosixPath("c/d.txt")])
    ['a.txt', 'b.txt', 'c/d.txt']
    """
    try:
        return _as_paths(paths)
    except RecursionError:
        raise too_deep() from None


def _as_paths(paths: Any) -> list[str]:
    if isinstance(paths, str | bytes | os.PathLike):
        if not paths:
            raise InvalidArgumentError(f"a path must name a file or folder, got {paths!r}, which is empty")
        return [str(os.fsdecode(paths))]
    if hasattr(paths, "tolist"):  # an array of names
        return _as_paths(paths.tolist())
    if not isinstance(paths, Iterable):
        raise TypeError(f"a path must be str, bytes or a path object, got a {type(paths).__name__}")
    if isinstance(paths, AbstractSet | Mapping | IOBase):
        raise TypeError(
            f"paths must be a list of str, bytes or path objects, got a {type(paths).__name__}{_cure(paths)}"
        )
    return [name for path in paths for name in _as_paths(path)]


def _cure(paths: Any) -> str:
    if isinstance(paths, IOBase):
        return f", which is an open file; give its name, {getattr(paths, 'name', '...')!r}"
    if isinstance(paths, Mapping):
        return ", of which nobody knows which to read; give the paths of one of its keys, or list(...) of its values"
    return ", which has another order in each process; give sorted(...) of it"


def as_path(path: Any) -> str:
    """The path of one file or folder as a string.

    Raises:
      TypeError: it is not a path, or there are several.

    >>> as_path(b"a.txt")
    'a.txt'
    """
    if not isinstance(path, str | bytes | os.PathLike):
        raise TypeError(f"a path must be str, bytes or a path object, got a {type(path).__name__}")
    return str(os.fsdecode(path))


def local_path(path: str) -> str | None:
    """The path of a local file for the operating system; None if fsspec must open the file.

    >>> local_path("file:///tmp/a.txt"), local_path("a.txt"), local_path("s3://bucket/a.txt")
    ('/tmp/a.txt', 'a.txt', None)
    """
    if path.startswith(LOCAL):  # never the head of a chain: these hold nothing but files
        return path.split("://", 1)[1]
    return None if "://" in path else path


def file_system(path: str) -> tuple[Any, str]:
    """The fsspec file system of a URL, and the name of the file in it.

    Raises:
      InvalidArgumentError: no installed file system opens such URLs.
      FailedPreconditionError: obstore opens them, and this process was forked from one that had used it.
    """
    if "?" in path or "@" in path:
        cut_from_logs()
    try:
        system, name = _opened(path)
    except RuntimeError:
        _without_thread()
        raise
    check_not_forked(system, path)
    if path.startswith(("blockcache:", "cached:")) and modules_of(told_by(system)) & _NOT_IN_BLOCKS:
        raise InvalidArgumentError(
            f"cannot open {path!r}: fsspec keeps blocks only of files that it reads in blocks, and not of those in memory or "
            "in an archive; write simplecache:: in the place of blockcache::"
        )
    return system, name


_NOT_IN_BLOCKS = frozenset({"fsspec.archive", "fsspec.implementations.memory"})


def told_by(system: Any) -> Any:
    """Who tells what files are like: the file system below one that keeps copies of them, as `simplecache::` does."""
    return told_by(system.fs) if "fsspec.implementations.cached" in modules_of(system) else system


def modules_of(system: Any) -> set[str]:
    """The modules of the classes that a file system is of."""
    return {kind.__module__ for kind in type(system).__mro__}


def _without_thread() -> None:
    """Have fsspec begin another loop of requests where it could not start the thread of this one: no answer would come."""
    from fsspec import asyn

    with asyn.get_lock():
        if asyn.iothread[0] is None and asyn.loop[0] is not None:
            asyn.loop[0].close()
            asyn.loop[0] = None


_OPENING = renewed(RLock())
"""Held while a chain is opened: an archive may be fetched then, and is not to be looked at before it is whole."""


def _opened(path: str) -> tuple[Any, str]:
    own = mounted(path)
    try:
        with _OPENING if "::" in path else nullcontext():
            if own is not None:
                return own.opened(path)
            from fsspec.core import url_to_fs

            system, name = url_to_fs(path)
    except (ImportError, ValueError) as error:
        bucket = bucket_of(path)
        if own is None and isinstance(error, ImportError) and (system := _of_obstore(bucket)) is not None:
            return system, path[len(bucket) :]
        # A package that is not installed is no bad file: no policy leaves the file out.
        mount = "distinput.io.mount opens such URLs with a file system of yours, in each process"
        if isinstance(error, ImportError):
            cure = "`pip install 'distinput[obstore]'` opens s3://, gs://, az:// and https://"
            raise EngineMissing(f"cannot open {path!r}: {error}; {cure}; {mount}") from error
        raise InvalidArgumentError(f"cannot open {path!r}: {error}; {mount}") from error
    return system, name


@lru_cache(maxsize=64)
def _of_obstore(bucket: str) -> Any:
    """The store of obstore for URLs that fsspec has no package for; None if obstore is not installed, or has none either."""
    try:
        return object_store(bucket, {})
    except (ImportError, ValueError):
        return None


def list_matching(patterns: Paths, *, folders: bool = True) -> list[str]:
    """All files that match the patterns, sorted; a file is there once for each pattern that it matches, as in TensorFlow.

    Local files are returned as plain paths, others with their protocol. `*`, `?` and `[...]` match within one folder;
    hidden files match too, as in TensorFlow; `**` matches any number of folders. Unfinished files never match. `{a,b}` and
    `{000..127}` stand for several names or patterns; a file that braces name without any of the above must exist.

    Args:
      patterns: one or many patterns or plain paths, local or URLs.
      folders: whether folders that match a pattern are among it.

    Raises:
      NoMatchError: none of the patterns matches any file, or a file that braces name is missing.
      OSError: a store cannot be asked.
    """
    wanted = as_paths(patterns)
    found = [path for pattern in wanted for path in set(_found(pattern, folders)) if not _is_unfinished(path)]
    if not found:
        raise NoMatchError(f"No files matched pattern: {', '.join(wanted)}")
    return sorted(found)


def _found(pattern: str, folders: bool) -> list[str]:
    """The files that match a pattern or, if it has braces, each of those that it stands for."""
    names = expand_braces(pattern)
    if len(names) == 1:
        return _matches(pattern, folders)
    if local_path(pattern) is not None and (literally := _matches(pattern, folders)):
        return literally
    if any(map(has_magic, names)):
        return [path for name in names for path in _matches(name, folders)]
    # Files of a store are listed once, not asked for one by one.
    one_by_one = local_path(pattern) is not None or len(names) < _LISTED
    listed = None if one_by_one else set(_matches(_BRACES.sub("*", pattern), folders))
    missing = [name for name in names if (not _matches(name, folders) if listed is None else name not in listed)]
    if missing and local_path(pattern) is None and _matches(pattern, folders):  # a file named with braces
        return [pattern]
    if missing:
        raise NoMatchError(f"No files matched pattern: {missing[0]}, one of {len(missing)} missing of {pattern}")
    return names


def _matches(pattern: str, folders: bool) -> list[str]:
    local = local_path(pattern)
    if local is not None:
        if not has_magic(local) or os.path.lexists(local):  # a file may be named `a[1].txt`
            return [local] if os.path.lexists(local) else []
        found = _globbed_here(local)
        return found if folders else [path for path in found if os.path.isfile(path) or not os.path.exists(path)]
    system, name = file_system(pattern)
    asks = name.startswith(("http://", "https://")) and "?" in name and "*" not in name  # as a rule that begins a query
    if not has_magic(name) or "[" in name or asks:  # "[" does not match itself
        there = _exists(pattern, system, name)
        if there or not has_magic(name):
            return [pattern] * there
    found = [_as_written(pattern, path) for path in globbed(system, name, folders=folders)]
    return [pattern] if pattern in found else found  # a file of a store may be named `a*b.txt`, too


def _globbed_here(pattern: str) -> list[str]:
    """The local files and folders that match a pattern; `**` follows links, but none to a folder that it is in already.

    Behind such a link the same files come again and again, as those of `glob` do.
    """
    parts = pattern.split(os.sep)
    if "**" not in parts:
        return glob(pattern, include_hidden=True)
    place = parts.index("**")
    start, rest = os.sep.join(parts[:place]), parts[place + 1 :]
    if place and not start:  # below the root
        start = os.sep
    found = []
    for base in glob(start, include_hidden=True) if start else [""]:
        for folder, names in _folders_below(base):
            if rest:
                found += _globbed_here(os.path.join(escape(folder), *rest))
            else:
                found += [os.path.join(folder, "")] * (folder == base != "")
                found += [os.path.join(folder, name) for name in names]
    return found


def _folders_below(base: str) -> Iterator[tuple[str, list[str]]]:
    """A folder and those below it, each with the names of what is in it; none if it is no folder.

    Raises:
      OSError: one of them cannot be listed.
    """
    waiting = [(base, frozenset(map(_identity, pathlib.Path(os.path.realpath(base or os.curdir)).parents)))]
    while waiting:
        folder, within = waiting.pop()
        try:
            within |= {_identity(folder or os.curdir)}
            names = os.listdir(folder or os.curdir)
        except (FileNotFoundError, NotADirectoryError):
            continue
        yield folder, names
        for name in names:
            path = os.path.join(folder, name)
            if os.path.isdir(path) and not (os.path.islink(path) and _identity(path) in within):
                waiting.append((path, within))


def _identity(path: str | os.PathLike[str]) -> tuple[int, int]:
    found = os.stat(path)
    return found.st_dev, found.st_ino


def _exists(path: str, system: Any, name: str) -> bool:
    """Whether a file is there; not what fsspec's `exists` says, for which one that cannot be asked for is not there."""
    try:
        persistently(lambda: told_by(system).info(name), path, retries_of(path))
    except FileNotFoundError:
        return False
    return True


def _is_unfinished(path: str) -> bool:
    own = path.partition("::")[0]
    return own.endswith(UNFINISHED) or f"{UNFINISHED}/" in own or f"{UNFINISHED}{os.sep}" in own


def _as_written(pattern: str, path: str) -> str:
    """The URL of a file that fsspec found, in the same form as the pattern."""
    if "://" in path:
        return path
    own = mounted(pattern)
    if own is not None and own.system is not None:
        # Some file systems put a slash before every name, whether the pattern has it or not.
        short = path.removeprefix("/").removeprefix(own.root.lstrip("/"))
        as_asked = pattern.startswith(own.prefix + "/") or (not own.root and own.system._strip_protocol(short) != path)
        return own.prefix + (path if as_asked else short)
    head, chained, rest = pattern.partition("::")
    protocol, _, wanted = head.partition("://")
    wanted = wanted or rest.split("://", 1)[-1]  # of `simplecache::file:///a/*`
    return f"{protocol}://{path if wanted.startswith('/') else path.lstrip('/')}{chained}{rest}"


# ----------------------------------------------------------------------------
# Call a function for many files, several at a time where each call makes a request over the network.
# ----------------------------------------------------------------------------


T = TypeVar("T")

_AT_A_TIME = 16


def ask_each(ask: Callable[[str], T], paths: Sequence[str]) -> Iterator[T]:
    """`ask(path)` for each path, in order; lazily if all files are local, concurrently otherwise.

    >>> list(ask_each(len, ["a", "bc"]))
    [1, 2]
    """
    if len(paths) < 2 or all(local_path(path) is not None for path in paths):
        return map(ask, paths)
    return iter(mapped(ask, paths, _AT_A_TIME, "distinput-ask"))


# ----------------------------------------------------------------------------
# Locks between processes: a lock on an open file, which the system releases when its process ends, however it ends.
# ----------------------------------------------------------------------------


def locked(descriptor: int) -> bool | None:
    """Try to lock a file: True if that succeeded, False if it is locked already, None if locks are unsupported."""
    try:
        from fcntl import LOCK_EX, LOCK_NB, flock
    except ImportError:  # Windows
        return None
    try:
        flock(descriptor, LOCK_EX | LOCK_NB)
    except BlockingIOError:
        return False
    except OSError:
        return None
    return True


def unlock(descriptor: int) -> None:
    """Free a lock for everybody who has the open file."""
    with suppress(ImportError, OSError):
        from fcntl import LOCK_UN, flock

        flock(descriptor, LOCK_UN)


def has_name(descriptor: int, name: str) -> bool:
    """True if an open file still has this name."""
    try:
        return os.path.samestat(os.fstat(descriptor), os.stat(name, follow_symlinks=False))
    except FileNotFoundError:
        return False


class FileLock:
    """A lock with a name, which one process at a time holds. What it writes says who that is.

    Args:
      path: of a local file, which is made; its folder must exist.

    >>> first, second = FileLock("lock"), FileLock("lock")
    >>> first.take(), second.take()
    (True, False)
    >>> first.release()
    >>> second.take()
    True
    >>> second.release()
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._held: int | None = None
        self._process = 0

    def take(self) -> bool | None:
        """Try to lock: True if that succeeded, False if another has it, None if the file system has no locks.

        Raises:
          FailedPreconditionError: what is there is a link, or no file: a lock is written to, and a link may lead anywhere.
        """
        while True:
            descriptor = self._opened()
            got = locked(descriptor)
            if got is True and not has_name(descriptor, self.path):  # the last holder has just removed it
                os.close(descriptor)
                continue
            if not got:
                os.close(descriptor)
                return got
            with suppress(OSError):  # a full disk: it is locked, and only who has it is not told
                os.ftruncate(descriptor, 0)
                os.write(descriptor, f"process {os.getpid()} on {node()}".encode())
            self._held, self._process = descriptor, os.getpid()
            return True

    def _opened(self) -> int:
        """The file, which is made unless it is there; never what a link leads to."""
        flags = os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
        try:
            descriptor = os.open(self.path, flags, 0o666)
        except OSError:
            if os.path.islink(self.path):
                raise self._no_lock() from None
            raise
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode) or status.st_nlink > 1:
            os.close(descriptor)
            raise self._no_lock()
        return descriptor

    def _no_lock(self) -> FailedPreconditionError:
        return FailedPreconditionError(
            f"{self.path}: is a link, a pipe or a device, and must be a file of its own, since a lock is written to; remove it"
        )

    def holder(self) -> str:
        """Who has it, as far as is known."""
        try:
            descriptor = os.open(self.path, os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            with open(descriptor, encoding="utf-8", errors="replace") as file:
                return file.read(200).strip() or "another process"
        except OSError:
            return "another process"

    def release(self) -> None:
        """Unlock; may be called again."""
        held, self._held = self._held, None
        if held is not None:
            # Closing is not enough: a child that was forked meanwhile has the open file, too.
            if self._process == os.getpid():
                unlock(held)
            os.close(held)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

    def __del__(self) -> None:
        with suppress(OSError, AttributeError):
            self.release()
