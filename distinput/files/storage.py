# SPDX-License-Identifier: Apache-2.0
"""`storage_options=` and `filesystem=` of datasets: what is mounted for the files that they name."""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from distinput.errors import InvalidArgumentError
from distinput.files.mounts import Mount, bind

__all__ = ["Storage", "stored"]


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
    """The part of a URL that says which bucket or host it is in."""
    if "://" not in name or name.startswith(("file://", "local://")):
        raise InvalidArgumentError(f"storage_options are for files behind URLs, got the local path {name!r}")
    if "::" in name:  # chained: what is inside an archive or a cache, of which the options are said by protocol
        plain = re.split(r"[*?\[{]", name, maxsplit=1)[0]
        if "::" not in plain:
            raise InvalidArgumentError(f"storage_options: {name!r} is a pattern in a chain; mount its prefix instead")
        return plain
    protocol, _, rest = name.partition("://")
    return f"{protocol}://{rest.partition('/')[0]}/"


def _inside(name: str) -> str:
    if "://" in name and not name.startswith(("file://", "local://")):
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
