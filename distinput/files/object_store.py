# SPDX-License-Identifier: Apache-2.0
"""Stores of obstore (S3, GCS, Azure, HTTP) as file systems of fsspec. Ranges are read by threads without the GIL.

fsspec's classes are the base, so listing, patterns and existence work as they do for any other file system.
"""

import contextlib
import errno
import re
from collections.abc import Iterator, Sequence
from queue import Empty, Full, Queue
from typing import Any, ClassVar

from fsspec import AbstractFileSystem
from fsspec.spec import AbstractBufferedFile

from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.kernels.kernel import HelperThread
from distinput.names.lazy import library
from distinput.run.threads import mapped
from distinput.url_secrets import of_url, without_secrets

obstore = library("obstore")

# ----------------------------------------------------------------------------
# An object of obstore that is uploaded in parts while it is written, so that a few parts of it are in memory at a time.
# ----------------------------------------------------------------------------


PART_BYTES = 8 << 20
"""The size of a part: stores take up to 10,000 of them, and ask for at least 5 MB."""

_AT_A_TIME = 4
"""Parts that are on their way."""

_WAITING = 2
"""Parts that wait for them."""


class MultipartUpload:
    """An upload on a thread; nothing can be seen of it before `finish`.

    Args:
      store: a store of `obstore.store`.
      key: the name in it.
    """

    def __init__(self, store: Any, key: str) -> None:
        self._store, self._key = store, key
        self._parts: Queue[bytes | None] = Queue(_WAITING)
        self._given_up = False
        self._error: BaseException | None = None
        self._thread = HelperThread(target=self._run, name="distinput-upload")
        self._thread.start()

    def add(self, part: bytes | None) -> None:
        """Upload a part, of any size; waits while enough others are under way.

        Raises:
          Exception: the upload has failed; nothing is left of it.
        """
        while self._error is None:
            try:
                self._parts.put(part, timeout=0.1)
            except Full:
                continue
            return
        self._thread.join()
        raise self._error

    def finish(self) -> None:
        """Complete the object.

        Raises:
          Exception: the upload has failed; nothing is left of it.
        """
        self.add(None)
        self._thread.join()
        if self._error is not None:
            raise self._error

    def discard(self) -> None:
        """Take back what was uploaded; may be called again, and after an error."""
        self._given_up = True
        self._thread.join()

    def _run(self) -> None:
        try:
            obstore.put(
                self._store,
                self._key,
                self._taken(),
                use_multipart=True,
                chunk_size=PART_BYTES,
                max_concurrency=_AT_A_TIME,
            )
        except BaseException as error:  # noqa: BLE001 - raised where the file is written
            self._error = error

    def _taken(self) -> Iterator[bytes]:
        while True:
            try:
                part = self._parts.get(timeout=0.1)
            except Empty:
                part = b""
            if self._given_up:
                raise InterruptedError(f"{self._key}: its upload was given up")  # by which obstore removes the parts
            if part is None:
                return
            if part:
                yield part


_LASTING = re.compile(
    "builder error|scheme is not allowed|invalid peer certificate|CaUsedAsEndEntity"
    r"|returned non-2xx status code: 4(?!08|25|29)\d\d",
    re.IGNORECASE,
)
"""What obstore says of requests that fail again however often they are made; its errors have no classes for it."""

_OBJECT_STORE_AT_A_TIME = 10  # requests for parts of one file, as many as obstore makes


_MACHINE_OF_THE_CLOUD = "169.254.169.254"
"""Where machines of a cloud ask for credentials; no other machine has anything there."""


class ObjectStoreFiles(AbstractFileSystem):  # type: ignore[misc]
    """The objects of a store.

    Args:
      store: a store of `obstore.store`; names of files are keys in it.
      shown: what URLs of the store begin with, for messages.
    """

    protocol: ClassVar[str] = "obstore"
    cachable: ClassVar[bool] = False
    whole_when_closed: ClassVar[bool] = True  # an object appears when its upload is complete
    ranges_at_once: ClassVar[bool] = True  # `cat_ranges` makes several requests at a time

    def __init__(self, store: Any, shown: str = "") -> None:
        super().__init__()
        self._store, self._shown = store, shown
        self._knows_ends = True

    @property
    def store(self) -> Any:
        """The store of `obstore.store`."""
        return self._store

    @property
    def is_web(self) -> bool:
        """True for a web server, of which obstore would ask what only WebDAV answers."""
        return type(self._store).__name__ == "HTTPStore"

    @classmethod
    def _strip_protocol(cls, path: Any) -> str:
        return str(path).strip("/")

    def info(self, path: str, **_: Any) -> dict[str, Any]:
        key = self._strip_protocol(path)
        try:
            with self.naming(key):
                return _described(obstore.head(self._store, key))
        except PermissionError:
            if not self.is_web:
                raise
            return self.beginning(path, 0, 1)[0]  # URLs that are signed for GET are not for HEAD
        except FileNotFoundError:
            if not self._listed(key) and key:
                raise
            return {"name": key, "size": 0, "type": "directory"}

    def beginning(self, path: str, start: int, stop: int) -> tuple[dict[str, Any], Any]:
        """What `info` says of a file, and its bytes from `start` to `stop` or its end: one request for both.

        Raises:
          OSError: the file ends before `start`, is empty, or is not there.
        """
        key = self._strip_protocol(path)
        try:
            got = obstore.get(self._store, key, options={"range": (start, stop)})
            return _described(got.meta), memoryview(got.bytes())
        except Exception:
            with self.naming(key):  # only here, since a small object is had in the time of some such blocks
                raise

    def ending(self, path: str, size: int) -> tuple[dict[str, Any], Any]:
        """What `info` says of a file, and its last bytes, as many as `size` or all: one request for both.

        Raises:
          OSError: the file is empty, or not there.
          UnimplementedError: the store does not know the end of an object, such as Azure; it is not asked again.
        """
        if not self._knows_ends:
            raise UnimplementedError(f"{self._shown}{path}: its store sends no last bytes")
        key = self._strip_protocol(path)
        try:
            with self.naming(key):
                got = obstore.get(self._store, key, options={"range": {"suffix": size}})
                return _described(got.meta), memoryview(got.bytes())
        except NotImplementedError:
            self._knows_ends = False
            raise

    def described_parts(self, path: str, ranges: Sequence[tuple[int, int]]) -> list[Any]:
        """Ranges of one file, several at a time, each with what its answer says of the file, as `beginning` gives them.

        In the place of a range that failed is its error.
        """

        def part(wanted: tuple[int, int]) -> Any:
            try:
                return self.beginning(path, *wanted)
            except Exception as error:  # noqa: BLE001 - for whoever asked to raise, or to ask again
                return error

        if len(ranges) < 2:
            return [part(wanted) for wanted in ranges]
        return mapped(part, ranges, _OBJECT_STORE_AT_A_TIME, "distinput-ranges")

    def _listed(self, key: str) -> list[dict[str, Any]]:
        if self.is_web:
            return []
        with self.naming(key):
            found = obstore.list_with_delimiter(self._store, key or None)
        folders = [{"name": str(name), "size": 0, "type": "directory"} for name in found["common_prefixes"]]
        return [*folders, *map(_described, found["objects"])]

    def ls(self, path: str, detail: bool = True, **_: Any) -> list[Any]:
        key = self._strip_protocol(path)
        if self.is_web and not self.isfile(key):
            raise self._unlisted(path)
        found = self._listed(key) or [self.info(key)]
        found = [each for each in found if each["name"] != key or each["type"] == "file"]
        return found if detail else sorted(each["name"] for each in found)

    def _unlisted(self, path: str) -> InvalidArgumentError:
        return InvalidArgumentError(f"{self._shown}{path}: a web server does not list its files; name each of them")

    def find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, detail: bool = False, **_: Any
    ) -> Any:
        if self.is_web:
            raise self._unlisted(path)
        if maxdepth is not None or withdirs:
            return super().find(path, maxdepth=maxdepth, withdirs=withdirs, detail=detail)
        key, found = self._strip_protocol(path), dict[str, Any]()
        with self.naming(key):  # all keys that begin so, without a request for each folder
            for objects in obstore.list(self._store, f"{key}/" if key else None):
                found.update((each["path"], _described(each)) for each in objects)
        if not found and key and self.exists(key) and self.isfile(key):
            found[key] = self.info(key)
        return dict(sorted(found.items())) if detail else sorted(found)

    def stamp_in(self, found: dict[str, Any]) -> str:
        """What `ukey` says of a file of which `info` says this."""
        return str(found.get("version") or found.get("ETag") or (found["size"], found.get("LastModified")))

    def ukey(self, path: str) -> str:
        return self.stamp_in(self.info(path))

    def modified(self, path: str) -> Any:
        return self.info(path)["LastModified"]

    def cat_file(self, path: str, start: int | None = None, end: int | None = None, **_: Any) -> bytes:
        begin, stop = start or 0, end
        if stop is None or begin < 0 or stop < 0:
            begin, stop = slice(start, end).indices(self.info(path)["size"])[:2]
        return bytes(self.cat_ranges([path], [begin], [stop])[0])

    def cat_ranges(
        self, paths: Any, starts: Any, ends: Any, max_gap: Any = None, on_error: str = "return", **_: Any
    ) -> list[Any]:
        """Ranges of one file, or of several: buffers, and in the place of one that failed its error."""
        results: list[Any] = [b""] * len(paths)
        files: dict[str, list[int]] = {}
        for i, path in enumerate(paths):
            if ends[i] > starts[i]:
                files.setdefault(self._strip_protocol(path), []).append(i)
        for key, wanted in files.items():
            try:
                with self.naming(key):
                    got = obstore.get_ranges(
                        self._store, key, starts=[starts[i] for i in wanted], ends=[ends[i] for i in wanted], coalesce=0
                    )
            except Exception as error:
                if on_error == "raise":
                    raise
                got = [error] * len(wanted)
            for i, part in zip(wanted, got, strict=True):
                results[i] = part
        return results

    def _open(self, path: str, mode: str = "rb", **_: Any) -> Any:
        key = self._strip_protocol(path)
        with self.naming(key):
            if mode == "rb":
                return AbstractBufferedFile(self, key, "rb", size=self.info(key)["size"])
            if mode == "wb":
                return _Writer(self, key)
        raise InvalidArgumentError(
            f"{self._shown}{key}: an object can be read or written, not opened with mode {mode!r}"
        )

    def open(self, path: str, mode: str = "rb", **options: Any) -> Any:
        return self._open(path, mode)

    def rm_file(self, path: str) -> None:
        key = self._strip_protocol(path)
        self.info(key)
        with self.naming(key):
            obstore.delete(self._store, key)

    def cp_file(self, path1: str, path2: str, **_: Any) -> None:
        with self.naming(path1):
            obstore.copy(self._store, self._strip_protocol(path1), self._strip_protocol(path2))

    def makedirs(self, path: str, exist_ok: bool = False) -> None:
        """A store has no folders."""

    def created(self, path: str) -> Any:
        return self.modified(path)

    @contextlib.contextmanager
    def naming(self, key: str) -> Iterator[None]:
        """Errors of obstore as those of the operating system, with the URL."""
        from obstore import exceptions

        url = self._shown + key
        try:
            yield
        except (exceptions.NotFoundError, FileNotFoundError) as error:
            raise FileNotFoundError(errno.ENOENT, "No such file or directory", url) from of_url(error, url)
        except (exceptions.PermissionDeniedError, exceptions.UnauthenticatedError) as error:
            public = of_url(error, url)
            raise PermissionError(errno.EACCES, f"Permission denied: {public}", without_secrets(url)) from public
        except exceptions.NotSupportedError as error:
            raise UnimplementedError(without_secrets(f"{url}: {error}")) from error
        except InvalidArgumentError:
            raise
        except ValueError as error:
            public, shown = of_url(error, url), without_secrets(url)
            raise InvalidArgumentError(
                f"{shown}: cannot be the name of an object, since stores have no '.', '..' or empty parts: {public}"
            ) from public
        except exceptions.BaseError as error:
            lasting, public = _LASTING.search(str(error)), of_url(error, url)
            number = errno.EINVAL if lasting else errno.EIO
            what = f"{type(error).__name__}: {error}" if public is error else str(public)
            if _MACHINE_OF_THE_CLOUD in str(error):
                what = (
                    "no credentials were found, nor given by the cloud of this machine; set them as the store documents, or "
                    "give storage_options={'skip_signature': True} for what is public: " + what
                )
            raise OSError(number, what, without_secrets(url)) from public


class _Writer:
    """An object that appears when it is closed; dropped, nothing is left of it. A large one is uploaded while it is written."""

    def __init__(self, files: ObjectStoreFiles, key: str) -> None:
        self._files, self._key = files, key
        self._parts: list[bytes] = []
        self._size = 0
        self._upload: MultipartUpload | None = None
        self.closed = False

    def write(self, data: Any) -> int:
        part = bytes(data)
        self._parts.append(part)
        self._size += len(part)
        if self._size >= PART_BYTES and not self._files.is_web:  # a web server takes whole files
            with self._files.naming(self._key):
                if self._upload is None:
                    self._upload = MultipartUpload(self._files.store, self._key)
                self._upload.add(self._taken())
        return len(part)

    def _taken(self) -> bytes:
        taken = b"".join(self._parts)
        self._parts, self._size = [], 0
        return taken

    def flush(self) -> None:
        """Nothing can be seen of an object before it is complete."""

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        with self._files.naming(self._key):
            if self._upload is None:
                obstore.put(self._files.store, self._key, self._taken())
            else:
                self._upload.add(self._taken())
                self._upload.finish()

    def discard(self) -> None:
        self.closed = True
        self._parts.clear()
        if self._upload is not None:
            self._upload.discard()


def _described(found: Any) -> dict[str, Any]:
    return {
        "name": str(found["path"]),
        "size": int(found["size"]),
        "type": "file",
        "ETag": found.get("e_tag"),
        "version": found.get("version"),
        "LastModified": found.get("last_modified"),
    }
