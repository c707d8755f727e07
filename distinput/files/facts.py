# SPDX-License-Identifier: Apache-2.0
"""What tells one list of files from another, as a few short words: names, order, sizes and times."""

import os
import stat
from typing import Any

from distinput.core.column import Strings
from distinput.core.digest import Digest, common_folder, evenly, texts_of
from distinput.files.paths import file_system, local_path
from distinput.files.table import FileTable

__all__ = ["MOST_REMOTE", "MOST_STAMPS", "Names"]

MOST_STAMPS = 4096
"""Files whose size and time are looked up; of a longer list, so many at equal distances."""
MOST_REMOTE = 16
"""Files that are not local, whose size and version are asked for; of more, only names count."""
_MOST_EACH = 8
"""Files that have words of their own, so that an error can name one."""

_Stamp = tuple[int, str] | None


class Names:
    """Texts that are the names of files.

    Args:
      texts: [n] the names, in order.
      table: of the same files, listed before; then nothing is looked up.
    """

    def __init__(self, texts: Strings, table: FileTable | None = None) -> None:
        self._texts = texts.reshape((texts.starts.size,))
        self._table = table
        names = texts_of(self._texts)
        self.root = os.fsdecode(common_folder(names))
        """The folder that all of them lie in, with its last `/`."""
        within = [name[len(os.fsencode(self.root)) :] for name in names]
        self.words: dict[str, Any] = {"files": len(self._texts), "set": Digest().texts(sorted(within)).word}
        """What the names say."""
        if self.root:
            self.words["root"] = Digest(3).add(self.root).word
        self._each = [Digest(2).add(name).word for name in within] if len(names) <= _MOST_EACH else []

    @property
    def local(self) -> bool:
        """Whether the first one is a file of this machine, and is there."""
        path = local_path(self.path(0)) if len(self._texts) else None
        try:
            return path is not None and stat.S_ISREG(os.stat(path).st_mode)
        except (OSError, ValueError):
            return False

    @property
    def remote(self) -> bool:
        """Whether one of them is a URL that fsspec opens."""
        return any(local_path(self.path(i)) is None for i in range(len(self._texts)))

    def path(self, index: int) -> str:
        """One of the names."""
        name: bytes = self._texts.row(index)
        return os.fsdecode(name)

    def stamps(self) -> dict[str, Any]:
        """What sizes and times say, now; nothing for those that are not known."""
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
    """Bytes of a file and what changes when it does, the same on all machines; nothing is raised for one that is gone."""
    local = local_path(path)
    if local is not None:
        try:
            status = os.stat(local)
        except (OSError, ValueError):
            return None  # whoever opens it says so
        return status.st_size, f"{status.st_size}-{status.st_mtime_ns}"
    try:
        system, name = file_system(path)
        size = system.info(name).get("size")
        return (0 if size is None else int(size)), str(system.ukey(name))
    except Exception:  # noqa: BLE001 - whatever a store raises, its files can be told by their names still
        return None
