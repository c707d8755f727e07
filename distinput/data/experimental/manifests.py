# SPDX-License-Identifier: Apache-2.0
"""Manifests: lists of files that are made once, with their sizes and versions."""

from collections.abc import Callable
from typing import Any

from distinput.data.dataset import Dataset
from distinput.files.manifest import load_manifest, save_manifest
from distinput.ops.files import FileNames

__all__ = ["read_manifest", "write_manifest"]


def read_manifest(path: str) -> Dataset:
    """The names of the files in a manifest, for `TFRecordDataset` and the like, which refuse files that have changed.

    Args:
      path: the path of the manifest.

    Raises:
      NotFoundError: the manifest does not exist.
      DataLossError: the file is not a manifest, or is damaged; at iteration, a file is not the one that was listed.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one")
    >>> _ = di.data.experimental.write_manifest("files.json", "*.txt")
    >>> di.data.TextLineDataset(di.data.experimental.read_manifest("files.json")).to_list()
    [b'one']
    """
    return Dataset(FileNames.of(load_manifest(path)))


def write_manifest(path: str, file_pattern: Any, dataset: Callable[[str], Dataset] | None = None) -> Dataset:
    """List files once and save their names, sizes and versions, so that workers need not list them.

    Args:
      path: the path of the manifest: JSON, or Parquet if it ends with ".parquet", which is smaller for very many files.
      file_pattern: as for `Dataset.list_files`.
      dataset: reads one file, to count its records and save their number, too; None: they are not counted.

    Returns:
      The dataset that `read_manifest` will return.

    Raises:
      NotFoundError: no file matches.

    >>> import distinput as di
    >>> import pathlib
    >>> _ = pathlib.Path("a.txt").write_text("one")
    >>> di.data.experimental.write_manifest("files.json", "*.txt", di.data.TextLineDataset).to_list()
    [b'a.txt']
    """

    def count(name: str) -> int:
        assert dataset is not None
        with dataset(name).iter_blocks() as blocks:
            return sum(block.size for block in blocks)

    return Dataset(FileNames.of(save_manifest(path, file_pattern, None if dataset is None else count)))
