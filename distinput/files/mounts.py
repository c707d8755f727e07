# SPDX-License-Identifier: Apache-2.0
"""File systems of the user's own: what a prefix of URLs is opened with."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import field, fields
from datetime import timedelta
from functools import cached_property
from threading import Lock
from typing import TYPE_CHECKING, Any

from distinput.errors import InvalidArgumentError
from distinput.files.retries import Retries
from distinput.kernels.kernel import renewed
from distinput.names.lazy import dataclass, later
from distinput.url_secrets import printed_without_secrets, without_secrets

if TYPE_CHECKING:
    from distinput.files import object_store as object_stores
else:
    object_stores = later("distinput.files.object_store")  # obstore is for those who read stores


@printed_without_secrets
@dataclass(frozen=True, eq=False)
class Mount:
    """How URLs with a prefix are opened.

    Args:
      prefix: the beginning of the URLs.
      given: a file system of fsspec or of PyArrow, or a store of obstore; "obstore" for the one that the URL names; None
        for fsspec's file system that the URL names.
      options: for the file system that the URL names. They may be secrets, so they are never printed.
      root: what stands before the name of a file in the file system, in the place of the prefix.
      retries: how patient reads are.
    """

    prefix: str
    given: Any = field(repr=False)
    options: tuple[tuple[str, Any], ...] = field(repr=False)
    root: str = ""
    retries: Retries = field(default_factory=Retries)

    @cached_property
    def system(self) -> Any:
        """The file system, as one of fsspec; None if fsspec finds it by the URL."""
        if self.given is None:
            return None
        if self.given == "obstore":
            return object_store(self.prefix, dict(self.options))
        return _of_fsspec(self.given, self.prefix)

    def opened(self, path: str) -> tuple[Any, str]:
        """The file system of a URL, and the name of the file in it."""
        if self.given == "obstore" and self.prefix.startswith(_WEB) and "?" in path:
            return self._with_query(path)
        if self.system is not None:
            return self.system, self.root + path[len(self.prefix) :]
        from fsspec.core import url_to_fs

        system, name = url_to_fs(path, **dict(self.options))
        return system, str(name)

    def _with_query(self, path: str) -> tuple[Any, str]:
        """As `opened`, for a URL that is signed: a store of obstore puts its own query behind the name of each file."""
        address, _, query = path.partition("?")
        folder, _, name = address.rpartition("/")
        made = self._signed.get((folder, query))
        if made is None:
            if len(self._signed) >= _MOST_SIGNED:
                self._signed.clear()
            made = object_store(f"{folder}?{query}", dict(self.options), f"{folder}/")
            self._signed[folder, query] = made
        return made, name

    @cached_property
    def _signed(self) -> dict[tuple[str, str], Any]:
        return {}

    def same_as(self, other: "Mount") -> bool:
        """True if both open the same URLs in the same way."""
        if (self.prefix, self.options, self.root) != (other.prefix, other.options, other.root):
            return False
        equals = getattr(self.given, "equals", None)  # of PyArrow's, which have no ==
        return self.given is other.given or bool(equals(other.given) if equals else self.given == other.given)

    def __getstate__(self) -> dict[str, Any]:
        return {f.name: getattr(self, f.name) for f in fields(self)}


LOCAL = ("file://", "local://")
"""What URLs of local files begin with."""
_WEB = ("http://", "https://")
_MOST_SIGNED = 64
"""Stores of signed URLs that are kept open."""

_MOUNTS: dict[str, Mount] = {}
_LOCK = renewed(Lock())


def mount(
    prefix: str,
    file_system: Any = None,
    *,
    storage_options: dict[str, Any] | None = None,
    retries: Retries | None = None,
) -> None:
    """Set the file system or options of URLs that begin with `prefix`, for all reads and writes of this process.

    Names of files stay plain text, in plans and saved states too, and credentials are in neither. Every process that reads
    such files calls this. The longest prefix counts. A prefix that was mounted before is mounted anew.

    Args:
      prefix: such as "s3://bucket/", or with a protocol of your own, "lake://". It must have a protocol.
      file_system: a file system of fsspec or of PyArrow, or a store of obstore. It gets what follows the prefix as the name of
        the file. "obstore": the store of obstore that the prefix names.
      storage_options: what fsspec passes to the file system that the URL names, instead of `file_system`; beside "obstore", the
        options of its store.
      retries: how patient reads are; None: as `Retries()` says.

    Raises:
      InvalidArgumentError: a prefix without protocol; none of `file_system`, `storage_options` and `retries`, or both of the
        first.
      TypeError: `file_system` is none of those.

    >>> import os
    >>> import distinput as di
    >>> from pyarrow.fs import LocalFileSystem
    >>> di.io.mount("lake://", LocalFileSystem())
    >>> with di.io.TFRecordWriter(f"lake://{os.getcwd()}/a.tfrecord") as writer:
    ...     writer.write(b"one")
    >>> di.data.TFRecordDataset(f"lake://{os.getcwd()}/a.tfrecord").to_list()
    [b'one']
    >>> di.io.unmount("lake://")
    """
    if "://" not in prefix or prefix.startswith(("://", *LOCAL)):
        raise InvalidArgumentError(
            f"mount: the prefix must begin with a protocol that is not file, such as lake:// or s3://bucket/, got {prefix!r}"
        )
    if file_system is None and storage_options is None and retries is None:
        raise InvalidArgumentError("mount: needs either file_system or storage_options, or retries")
    if file_system not in (None, "obstore") and storage_options is not None:
        raise InvalidArgumentError("mount: needs either file_system or storage_options, not both")
    made = Mount(prefix, file_system, tuple((storage_options or {}).items()), retries=retries or Retries())
    if file_system is not None:
        made.system  # noqa: B018 - what cannot be a file system is refused here
    with _LOCK:
        _MOUNTS[prefix] = made


def bind(made: Mount) -> None:
    """Mount, unless the same is mounted there already.

    Raises:
      InvalidArgumentError: something else is mounted there; names in plans and states would not say which is meant.
    """
    with _LOCK:
        found = _MOUNTS.setdefault(made.prefix, made)
    if not found.same_as(made):
        raise InvalidArgumentError(
            f"{made.prefix} is opened with another file system or other options in this process already. A file name is "
            "plain text, so all datasets open a name in the same way: call distinput.io.unmount of this prefix first if "
            "the earlier ones are done, or distinput.io.mount a prefix of your own, such as lake://, for one of them"
        )


def unmount(prefix: str) -> None:
    """Remove the mount of a prefix.

    Raises:
      InvalidArgumentError: nothing is mounted there.
    """
    with _LOCK:
        if _MOUNTS.pop(prefix, None) is None:
            raise InvalidArgumentError(
                f"unmount: nothing is mounted at {prefix!r}; there is {sorted(_MOUNTS) or 'nothing at all'}"
            )


def mounted(path: str) -> Mount | None:
    """What a URL is opened with; None if nothing was mounted there."""
    if not _MOUNTS:
        return None
    found = [prefix for prefix in list(_MOUNTS) if path.startswith(prefix)]
    return _MOUNTS.get(max(found, key=len)) if found else None


def retries_of(path: str) -> Retries:
    """How patient reads of a URL are."""
    own = mounted(path)
    return Retries() if own is None else own.retries


def object_store(prefix: str, options: dict[str, Any], shown: str = "") -> Any:
    """The store of obstore that a prefix of URLs names, as a file system of fsspec.

    Args:
      prefix: the URL of the store.
      options: of the store.
      shown: what the URLs of its files begin with, for messages; "": `prefix`.

    Raises:
      ImportError: obstore is not installed.
      InvalidArgumentError: obstore has no store for such URLs.
    """
    from obstore.exceptions import BaseError
    from obstore.store import from_url

    if prefix.startswith("http://"):  # whoever writes so says that it need not be encrypted
        options = {**options, "client_options": {"allow_http": True, **(options.get("client_options") or {})}}
    if prefix.startswith(_WEB):  # read alone, and whoever reads makes requests again
        options = {"retry_config": {"max_retries": 1, "retry_timeout": timedelta(seconds=1)}, **options}
    try:
        return object_stores.ObjectStoreFiles(from_url(prefix.rstrip("/"), **options), shown or prefix)
    except BaseError as error:
        if without_secrets(prefix) != prefix:  # of which obstore's text has each part by itself
            raise InvalidArgumentError(f"obstore cannot open {prefix}: {type(error).__name__}") from None
        raise InvalidArgumentError(f"obstore cannot open {prefix}: {error}") from error


def _of_fsspec(system: Any, shown: str) -> Any:
    if hasattr(system, "open") and hasattr(system, "info") and hasattr(system, "cat_file"):
        return system
    if type(system).__module__.startswith("pyarrow.") and hasattr(system, "open_input_file"):
        return _of_arrow(system)
    if any(kind.__module__.startswith("obstore.") for kind in type(system).__mro__):
        return object_stores.ObjectStoreFiles(system, shown)
    raise TypeError(
        f"mount: file_system must be a file system of fsspec or of pyarrow.fs, or a store of obstore, got a "
        f"{type(system).__name__}; fsspec has wrappers for others"
    )


def _of_arrow(system: Any) -> Any:
    """A file system of PyArrow as one of fsspec."""
    from fsspec import AbstractFileSystem
    from fsspec.implementations.arrow import ArrowFSWrapper

    class ArrowFiles(ArrowFSWrapper):  # type: ignore[misc]
        # The wrapper's own opens the file for each range, and not so that it can seek.
        cat_file = AbstractFileSystem.cat_file

    return ArrowFiles(system, skip_instance_cache=True)


# ----------------------------------------------------------------------------
# `storage_options=` and `filesystem=` of datasets: what is mounted for the files that they name.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Storage:
    """What opens the files of a dataset. In another process to which the dataset is sent, the same is mounted.

    Args:
      mounts: one for each bucket or host.
    """

    mounts: tuple[Mount, ...]

    def __post_init__(self) -> None:
        for each in self.mounts:
            bind(each)

    def __reduce__(self) -> Any:
        return Storage, (self.mounts,)


def stored(
    names: Sequence[str], storage_options: Mapping[str, Any] | None, filesystem: Any
) -> tuple[list[str], Storage | None]:
    """The names as URLs or local paths, and what opens them.

    Args:
      names: paths or URLs, or patterns of them; with `filesystem` also names inside it.
      storage_options: for the file systems that the URLs name.
      filesystem: of fsspec, of PyArrow, a store of obstore, or "obstore".

    Raises:
      InvalidArgumentError: both are given, a local path has options, or a name is not in the file system.
      TypeError: `storage_options` is not a dict, or `filesystem` is none of those above.
    """
    if storage_options is not None and not isinstance(storage_options, Mapping):
        raise TypeError(f"storage_options must be a dict, got a {type(storage_options).__name__}")
    options = tuple((storage_options or {}).items())
    if filesystem is None or isinstance(filesystem, str):
        if filesystem not in (None, "obstore"):
            raise InvalidArgumentError(f"filesystem must be a file system or 'obstore', got {filesystem!r}")
        if not options and filesystem is None:
            return list(names), None
        prefixes = dict.fromkeys([_prefix(name) for name in names])
        return list(names), Storage(tuple([Mount(prefix, filesystem, options) for prefix in prefixes]))
    if options:
        raise InvalidArgumentError(
            "give either filesystem or storage_options: a file system that is made has its options"
        )
    if _is_local(filesystem):
        return [_inside(name) for name in names], None
    head, root = _place(filesystem)
    urls = [name if "://" in name else f"{head}{name.lstrip('/')}" for name in names]
    wrong = next((url for url in urls if not url.startswith(head)), None)
    if wrong is not None:
        raise InvalidArgumentError(
            f"{wrong!r} is not in the file system that is given, whose files begin with {head!r}"
        )
    return urls, Storage((Mount(head, filesystem, (), root),))


def _prefix(name: str) -> str:
    """The part of a URL that is opened with the options: its bucket or host, or a chain up to what is a pattern in it."""
    if "://" not in name or name.startswith(LOCAL):
        raise InvalidArgumentError(f"storage_options need URLs, got the local path {name!r}")
    if "::" in name:  # chained: what is inside an archive or a cache, of which the options are said by protocol
        plain = re.split(r"[*?\[{]", name, maxsplit=1)[0]
        if "::" not in plain:
            raise InvalidArgumentError(f"storage_options: {name!r} is a pattern in a chain; mount its prefix instead")
        return plain
    return bucket_of(name)


def bucket_of(url: str) -> str:
    """The beginning of a URL, which says the bucket or host it is in.

    >>> bucket_of("s3://bucket/folder/a.txt")
    's3://bucket/'
    """
    protocol, _, rest = url.partition("://")
    return f"{protocol}://{rest.partition('/')[0]}/"


def _inside(name: str) -> str:
    if "://" in name and not name.startswith(LOCAL):
        raise InvalidArgumentError(f"{name!r} is not in the file system that is given, which is the local one")
    return name


def _is_local(system: Any) -> bool:
    """Whether names in a file system are paths of the operating system, which are opened without it."""
    return getattr(system, "type_name", None) == "local" or "file" in _protocols(system)


def _protocols(system: Any) -> tuple[str, ...]:
    found = getattr(system, "protocol", ())
    return (found,) if isinstance(found, str) else tuple(found) if isinstance(found, list | tuple) else ()


def _place(system: Any) -> tuple[str, str]:
    """What the URLs of a file system begin with, and what its names begin with."""
    type_name = getattr(system, "type_name", None)
    if isinstance(type_name, str):  # PyArrow's
        return re.sub(r"[^a-z0-9+.-]+", "-", type_name.lower()) + "://", ""
    if any(kind.__module__.startswith("obstore.") for kind in type(system).__mro__):
        return _place_of_store(system), ""
    protocols = _protocols(system)
    if not protocols:
        raise TypeError(
            f"filesystem must be one of fsspec or pyarrow.fs, or a store of obstore, got a {type(system).__name__}"
        )
    return protocols[0] + "://", ("/" if system.root_marker == "/" else "")


def _place_of_store(store: Any) -> str:
    config = getattr(store, "config", None) or {}
    for key, protocol in (("bucket", "gs" if type(store).__name__ == "GCSStore" else "s3"), ("container_name", "az")):
        if key in config:
            inner = str(getattr(store, "prefix", None) or "").strip("/")
            return f"{protocol}://{config[key]}/" + (f"{inner}/" if inner else "")
    url = getattr(store, "url", None)
    if isinstance(url, str):
        return url.rstrip("/") + "/"
    inner = os.fspath(getattr(store, "prefix", None) or "")
    return f"obstore-{type(store).__name__.removesuffix('Store').lower()}://" + (
        f"{inner.strip('/')}/" if inner else ""
    )
