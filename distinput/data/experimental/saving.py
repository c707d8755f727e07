# SPDX-License-Identifier: Apache-2.0
"""`save`, `load` and `snapshot` as functions."""

from collections.abc import Callable, Mapping
from typing import Any

from distinput.data.dataset import Dataset

__all__ = ["load", "save", "snapshot"]


def save(
    dataset: Dataset[Any],
    path: Any,
    compression: str | None = None,
    shard_func: Callable[..., Any] | None = None,
    checkpoint_args: Mapping[str, Any] | None = None,
) -> None:
    """`dataset.save(...)`, under its older name.

    Args:
      dataset: what is saved.
      path: a folder.
      compression: as for `Dataset.save`.
      shard_func: as for `Dataset.save`.
      checkpoint_args: as for `Dataset.save`.

    >>> import distinput as di
    >>> di.data.experimental.save(di.data.Dataset.range(2), "numbers")
    >>> di.data.experimental.load("numbers").to_list()
    [0, 1]

    Source: `tf.data.experimental.save`.
    """
    dataset.save(path, compression, shard_func, checkpoint_args)


def load(
    path: Any,
    element_spec: Any = None,
    compression: str | None = None,
    reader_func: Callable[[Dataset[Any]], Dataset[Any]] | None = None,
) -> Dataset[Any]:
    """`Dataset.load(...)`, under its older name.

    Args:
      path: the folder.
      element_spec: as for `Dataset.load`.
      compression: as for `Dataset.load`.
      reader_func: as for `Dataset.load`.

    >>> import distinput as di
    >>> _ = di.data.Dataset.range(2).save("numbers")
    >>> di.data.experimental.load("numbers").to_list()
    [0, 1]

    Source: `tf.data.experimental.load`.
    """
    return Dataset.load(path, element_spec, compression, reader_func)


def snapshot(
    path: Any,
    compression: str | None = "AUTO",
    reader_func: Callable[[Dataset[Any]], Dataset[Any]] | None = None,
    shard_func: Callable[..., Any] | None = None,
) -> Callable[[Dataset[Any]], Dataset[Any]]:
    """`Dataset.snapshot`, for `apply`.

    Args:
      path: the folder of the snapshots.
      compression: as for `Dataset.snapshot`.
      reader_func: as for `Dataset.snapshot`.
      shard_func: as for `Dataset.snapshot`.

    >>> import distinput as di
    >>> di.data.Dataset.range(2).apply(di.data.experimental.snapshot("numbers")).to_list()
    [0, 1]

    Source: `tf.data.experimental.snapshot`.
    """
    return lambda dataset: dataset.snapshot(path, compression, reader_func, shard_func)
