# SPDX-License-Identifier: Apache-2.0
"""The features of `tf.train.Example` messages of files, a block of messages at a time."""

from collections.abc import Callable, Iterator
from contextlib import closing, nullcontext
from dataclasses import dataclass

from distinput.core.strings import Strings
from distinput.errors import DataLossError, InvalidArgumentError
from distinput.files.source import stamp_of
from distinput.formats.example_scan import ExampleScan, FeatureValues, decoded_features
from distinput.inspect.features import FeatureFound
from distinput.inspect.files import Files
from distinput.kernels.kernel import brief

__all__ = ["Scanned", "features_of", "scanned"]

_FEW = 1000
"""So many messages are decoded before compiled kernels would be there."""

_MOST = 8192


@dataclass(frozen=True)
class Scanned:
    """Consecutive messages of a file.

    Attributes:
      file: its path.
      row: the number of the first message.
      size: how many there are.
      features: what they hold, by key.
    """

    file: str
    row: int
    size: int
    features: dict[str, FeatureValues]


def scanned(
    files: Files, path: str, scan: Callable[[Strings], dict[str, FeatureValues]], most: int | None = None
) -> Iterator[Scanned]:
    """The messages of a file, in order.

    Args:
      files: what it is one of.
      path: the file.
      scan: what finds their features.
      most: how many messages; None: all.

    Raises:
      NotFoundError: the file is not there.
      DataLossError: a record is no Example; it is named.
    """
    stamp_of(path)
    row = 0
    with closing(files.format.read(path)) as blocks:  # type: ignore[type-var]  # a generator
        for block, _ in blocks:
            first = 0
            while first < block.size and row != most:
                last = min(first + _MOST, block.size, block.size if most is None else first + most - row)
                column = block.rows(first, last).columnar().columns[0]
                assert isinstance(column, Strings)
                try:
                    found = scan(column)
                except InvalidArgumentError as error:
                    number = row + getattr(error, "row", 0)
                    raise DataLossError(
                        f"{path}: record {number} is no example: {error}; look at the bytes with records='bytes'"
                    ) from None
                yield Scanned(path, row, last - first, found)
                row, first = row + last - first, last
            if row == most:
                return


def features_of(files: Files, most: int | None = None) -> tuple[dict[str, FeatureFound], int]:
    """What the features of messages are, by key in ascending order, and how many messages there were.

    Args:
      files: of messages.
      most: how many messages of the first file to look at; None: all of all files.

    >>> import distinput as di
    >>> from distinput.inspect.files import open_files
    >>> with di.io.TFRecordWriter("two.tfrecord") as writer:
    ...     writer.write(di.io.encode_example({"x": [1, 2]}))
    ...     writer.write(di.io.encode_example({"x": 3}))
    >>> features_of(open_files("two.tfrecord"))
    ({'x': FeatureFound(dtype='int64', present=2, fewest=1, most=2)}, 2)
    """
    few = most is not None and most <= _FEW
    scan = decoded_features if few else ExampleScan()
    found: dict[str, FeatureFound] = {}
    number = 0
    with brief() if few else nullcontext():
        for path in files.paths if most is None else files.paths[:1]:
            for part in scanned(files, path, scan, most):
                for key, values in part.features.items():
                    found.setdefault(key, FeatureFound()).add_all(values.kinds, values.counts)
                number += part.size
    return {key: found[key] for key in sorted(found)}, number
