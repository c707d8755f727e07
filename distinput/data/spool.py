# SPDX-License-Identifier: Apache-2.0
"""The elements of a pass, in order, beside files of which none is complete before the end: a writer goes on from them."""

from collections.abc import Iterator

from distinput.core.block import Block
from distinput.core.run import Run
from distinput.core.spec import Spec
from distinput.errors import DistinputError
from distinput.ops.saved import saved_elements
from distinput.writers.elements import ElementsWriter
from distinput.writers.kept_files import KeptFiles
from distinput.writers.manifest import WrittenFile, WrittenFiles
from distinput.writers.stage import Stage

__all__ = ["Spool"]


class Spool:
    """Files of elements in a stage.

    Nothing is spooled to stores of objects, nor what the format of saved elements does not hold: there a writer begins again.

    Args:
      stage: where the files are.
      spec: of the elements.
      files: that a writer before this one has completed.
    """

    def __init__(self, stage: Stage, spec: Spec, files: tuple[WrittenFile, ...]) -> None:
        self._stage, self._spec, self._found = stage, spec, files
        self._files = KeptFiles(stage, ElementsWriter(), spec, done=files, word="spool")
        self._keeps = stage.local and _holds(spec)

    @property
    def size(self) -> int:
        """The bytes of all its files."""
        return self._files.size

    def elements(self) -> Iterator[Block]:
        """What a writer before this one has spooled."""
        if self._found:
            options = ElementsWriter().reading(self._spec)
            found = saved_elements(WrittenFiles(self._stage.folder, "elements", options, self._found), self._spec)
            with Run() as run:
                for block, _ in found.open(found.start(0), run):
                    yield block.materialize()

    def add(self, block: Block) -> tuple[WrittenFile, ...] | None:
        """Spool more elements; all files, where another one is complete now."""
        if not self._keeps:
            return None
        self._files.write(block)
        return self._files.cut()

    def discard(self) -> None:
        """Give up the file that is not complete."""
        self._files.discard()


def _holds(spec: Spec) -> bool:
    try:
        ElementsWriter().check(spec)
    except DistinputError:
        return False
    return True
