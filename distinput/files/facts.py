# SPDX-License-Identifier: Apache-2.0
"""Fingerprints of a list of files, as a few short words: names, order, sizes and modification times."""

import os
import stat
from typing import Any

from distinput.core.digest import Digest, common_folder, evenly, texts_of
from distinput.core.strings import Strings
from distinput.files.paths import file_system, local_path
from distinput.files.table import FileTable
from distinput.files.web_ranges import is_web
from distinput.url_secrets import public_url

__all__ = ["MOST_REMOTE", "MOST_STAMPS", "NamesFingerprint"]

MOST_STAMPS = 4096
"""Most files whose size and time are looked up; a longer list is sampled at equal distances."""
MOST_REMOTE = 16
"""Most remote files whose size and version are requested; beyond that only the names count."""
_MOST_EACH = 8
"""Most files that get a word each, so that an error can name the one that differs."""

_Stamp = tuple[int, str] | None


class NamesFingerprint:
    """The fingerprint of a list of file names.

    Args:
      texts: [n] the names, in order.
      table: of the same files if they were listed before; then nothing is looked up.
    """

    def __init__(self, texts: Strings, table: FileTable | None = None) -> None:
        self._texts = texts.reshape((texts.starts.size,))
        self._table = table
        names = texts_of(self._texts)
        self.root = os.fsdecode(common_folder(names))
        """The deepest folder that contains all of them, with a trailing `/`."""
        within = [name[len(os.fsencode(self.root)) :] for name in names]
        self.words: dict[str, Any] = {"files": len(self._texts), "set": Digest().texts(sorted(within)).word}
        """The words derived from the names alone."""
        if self.root:
            self.words["root"] = Digest(3).add(self.root).word
        self._each = [Digest(2).add(name).word for name in within] if len(names) <= _MOST_EACH else []

    @property
    def local(self) -> bool:
        """True if the first name is an existing local file."""
        path = local_path(self.path(0)) if len(self._texts) else None
        try:
            return path is not None and stat.S_ISREG(os.stat(path).st_mode)
        except (OSError, ValueError):
            return False

    @property
    def remote(self) -> bool:
        """True if any of them is a URL that fsspec opens."""
        return any(local_path(self.path(i)) is None for i in range(len(self._texts)))

    def path(self, index: int) -> str:
        """The name at this index."""
        name: bytes = self._texts.row(index)
        return os.fsdecode(name)

    def stamps(self) -> dict[str, Any]:
        """The words derived from current sizes and times; those that are unknown are left out."""
        some = evenly(len(self._texts), MOST_STAMPS).tolist()
        stamps = self._looked_up(some) if self._table is None else _listed(self._table, some)
        sizes, times = [[None if stamp is None else stamp[part] for stamp in stamps] for part in (0, 1)]
        words: dict[str, Any] = {}
        if sizes and None not in sizes:
            words["sizes"] = Digest().add(sizes).word
        if times and None not in times and "" not in times:
            words["times"] = Digest().add(times).word
        if self._each:
            words["each"] = [
                name + ("" if stamp is None else Digest(2).add(stamp).word)
                for name, stamp in zip(self._each, stamps, strict=True)
            ]
        return words

    def _looked_up(self, some: list[int]) -> list[_Stamp]:
        paths = [self.path(i) for i in some]
        if len(paths) > MOST_REMOTE and any(local_path(path) is None for path in paths):
            return [None] * len(paths)
        return [_stamp(path) for path in paths]


def _listed(table: FileTable, some: list[int]) -> list[_Stamp]:
    stamps = table.stamps
    return [(int(table.sizes[i]), "" if stamps is None else stamps.row(i).decode()) for i in some]


def _stamp(path: str) -> _Stamp:
    """Size of a file and a version that is the same on all machines; None, not an error, if the file is gone."""
    local = local_path(path)
    if local is not None:
        try:
            status = os.stat(local)
        except (OSError, ValueError):
            return None  # opening it will raise the error
        return status.st_size, f"{status.st_size}-{status.st_mtime_ns}"
    try:
        system, name = file_system(path)
        size = system.info(name).get("size")
        # For the web, fsspec's is a hash of the URL.
        return (0 if size is None else int(size)), str(system.ukey(public_url(name) if is_web(system) else name))
    except Exception:  # noqa: BLE001 - whatever a store raises, its files are still identified by their names
        return None
