# SPDX-License-Identifier: Apache-2.0
"""`Records`: known records of a file, such as bad ones."""

from dataclasses import dataclass

__all__ = ["Records"]


@dataclass(frozen=True)
class Records:
    """Records of a file, to name them where ranges of steps are taken.

    Args:
      file: as the dataset names it; of a source in memory its op in angle brackets, such as "<range>".
      records: the number of one, from 0 on, or a range of them.
      read: count the records of files that do not tell how many they hold, by reading all files once.

    Raises:
      ValueError: `records` is no number from 0 on and no range of them.

    >>> Records("n-1.txt", 20003).numbers
    range(20003, 20004)
    """

    file: str
    records: int | range
    read: bool = False

    def __post_init__(self) -> None:
        numbers = self.records
        if not (isinstance(numbers, range) or (isinstance(numbers, int) and not isinstance(numbers, bool))) or (
            len(self.numbers) and min(self.numbers) < 0
        ):
            raise ValueError(f"Records: records must be a number from 0 on, or a range of them, got {numbers!r}")

    @property
    def numbers(self) -> range:
        """The records."""
        return self.records if isinstance(self.records, range) else range(self.records, self.records + 1)
