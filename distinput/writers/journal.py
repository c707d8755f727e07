# SPDX-License-Identifier: Apache-2.0
"""The journal of a writing: which files are complete, and where the pipeline stood then."""

import re
from dataclasses import asdict, dataclass, field
from typing import Any

from distinput.core.json_values import MalformedJson, items_of, member
from distinput.core.state import State
from distinput.files.inside import plain_name
from distinput.plan.fingerprint import Fingerprint, is_fingerprint
from distinput.writers.manifest import WrittenFile

__all__ = ["Journal"]

_VERSION = 1
_RUN = re.compile(r"\w+", re.ASCII)
"""Words of writings, of which names of files are made."""
_LISTS, _OTHERS = ("numbers", "pieces", "replaces"), ("state", "pipeline", "done", "order")


@dataclass(frozen=True)
class Journal:
    """What a writer records after each file.

    Args:
      key: what was asked for, apart from the pipeline; another request does not go on from here.
      run: the word of the writing.
      files: complete ones, in order.
      state: of the pipeline, after the last of these files.
      pipeline: its fingerprint.
      done: whether these are all files.
      order: as in `WrittenFiles`.
      numbers: where a function says which file an element goes to, the number of the file that each of `files` is a piece of.
      pieces: as in `WrittenFiles`.
      replaces: names of the files of the dataset that is replaced.
    """

    key: list[Any]
    run: str
    files: tuple[WrittenFile, ...] = ()
    state: State | None = None
    pipeline: Fingerprint = field(default_factory=list)
    done: bool = False
    order: str = "files"
    numbers: tuple[int, ...] = ()
    pieces: tuple[int, ...] = ()
    replaces: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Elements in the files."""
        return sum(file.rows for file in self.files)

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"version": _VERSION, **asdict(self)}

    @staticmethod
    def of_json(found: Any) -> "Journal | None":
        """From JSON; None if it is damaged, or of another version: then there is nothing to go on from."""
        if not isinstance(found, dict) or found.get("version") != _VERSION:
            return None
        try:
            key, run = member(found, "key", list), member(found, "run", str)
            files = tuple([WrittenFile.of_json(file) for file in items_of(member(found, "files"), "files")])
            numbers, pieces, replaces = [tuple(items_of(found.get(name, []), name)) for name in _LISTS]
            given = {name: value for name, value in found.items() if name in _OTHERS}
            made = Journal(key, run, files, numbers=numbers, pieces=pieces, replaces=replaces, **given)
            fits = is_fingerprint(made.pipeline) and isinstance(made.done, bool) and bool(_RUN.fullmatch(run))
            fits &= all(type(number) is int and number >= 0 for number in (*numbers, *pieces))
            known = {"version", "key", "run", "files", *_LISTS, *_OTHERS}
            return made if fits and known.issuperset(found) and all(map(plain_name, replaces)) else None
        except MalformedJson:
            return None
