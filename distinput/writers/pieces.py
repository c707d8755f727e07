# SPDX-License-Identifier: Apache-2.0
"""Files that a function deals elements to, all open at a time; now and then all of them end together and others begin.

What has ended needs not be written again after an interruption, so that a dataset is not lost at its last element.
"""

from collections import Counter
from collections.abc import Callable, Iterable

from distinput.core.block import Block
from distinput.errors import InvalidArgumentError
from distinput.writers.manifest import WrittenFile
from distinput.writers.open_file import OpenFile

__all__ = ["Pieces"]

_MOST_OPEN = 512
"""Files that may be open at a time."""

_MOST_SMALL = 16
"""How many times smaller than a file by itself a piece may be in the mean."""


class Pieces:
    """The pieces of numbered files.

    Args:
      who: the method, for error messages.
      begin: the number of a file and that of its piece -> the piece, open.
      most_bytes: about so many bytes are in pieces that end together, and more if there are many.
      ended: complete pieces, in the order in which they ended.
      numbers: the number of the file of each of these.
    """

    def __init__(
        self,
        who: str,
        begin: Callable[[int, int], OpenFile],
        most_bytes: int,
        ended: Iterable[WrittenFile] = (),
        numbers: Iterable[int] = (),
    ) -> None:
        self._who, self._begin, self._most = who, begin, most_bytes
        self.ended, self.numbers = list(ended), list(numbers)
        self._counts = Counter(self.numbers)
        self._open: dict[int, OpenFile] = {}

    @property
    def full(self) -> bool:
        """Whether the open pieces are worth ending."""
        most = self._most * max(1, len(self._open) / _MOST_SMALL)
        return bool(self._open) and sum(file.size for file in self._open.values()) >= most

    def write(self, number: int, part: Block) -> None:
        """Append elements to a file.

        Raises:
          InvalidArgumentError: too many are open.
        """
        (self._open.get(number) or self._piece(number)).write(part)

    def end(self) -> None:
        """Complete the open pieces; there is at least one in the end."""
        if not self._open and not self.ended:
            self._piece(0)
        for number in sorted(self._open):
            self.ended.append(self._open[number].end())
            self.numbers.append(number)
            self._counts[number] += 1
        self._open.clear()

    def in_order(self) -> tuple[list[WrittenFile], list[int]]:
        """The complete pieces by the numbers of their files, and how many each file has."""
        order = sorted(range(len(self.ended)), key=self.numbers.__getitem__)
        return [self.ended[index] for index in order], [self._counts[number] for number in sorted(self._counts)]

    def discard(self) -> None:
        """Leave nothing of the pieces that are not complete; may be called again."""
        for file in self._open.values():
            file.discard()
        self._open.clear()

    def _piece(self, number: int) -> OpenFile:
        if len(self._open) >= _MOST_OPEN:
            raise InvalidArgumentError(
                f"{self._who}: shard_func may name {_MOST_OPEN} files, which are all open; it named more"
            )
        self._open[number] = self._begin(number, self._counts[number])
        return self._open[number]
