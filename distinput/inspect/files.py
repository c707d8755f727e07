# SPDX-License-Identifier: Apache-2.0
"""Files that are looked at together: their names, and the format that they all have."""

import os
from collections.abc import Mapping
from dataclasses import field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from distinput.errors import InvalidArgumentError
from distinput.files.folder import MANIFEST, named_files
from distinput.files.mounts import Storage, stored
from distinput.files.paths import as_paths, local_path
from distinput.formats import format_named
from distinput.formats.format import Format
from distinput.formats.partitioned import partitioned
from distinput.formats.recognise import Recognised, of_folder, recognise
from distinput.names.lazy import dataclass, later
from distinput.url_secrets import printed_without_secrets
from distinput.writers.manifest import WrittenFiles, read_written

if TYPE_CHECKING:
    from distinput.data.dataset import Dataset
    from distinput.data.file_datasets import reading as file_datasets
else:
    # A look at a few records is over before datasets are loaded.
    file_datasets = later("distinput.data.file_datasets.reading")


@printed_without_secrets
@dataclass(frozen=True)
class Files:
    """Files of one format.

    Attributes:
      paths: the files, in order.
      recognised: what they are, and what told it.
      format: that reads them.
      written: the manifest, if they are a folder that `Dataset.write` has written.
      storage: keeps the file systems of their URLs.
      partitioning: what is made of the names of their folders.
    """

    paths: tuple[str, ...]
    recognised: Recognised
    format: Format
    written: WrittenFiles | None = None
    storage: Storage | None = field(default=None, repr=False)
    partitioning: Any = field(default="hive", repr=False)

    @property
    def known_rows(self) -> int | None:
        """The records of all files; None if that is not known without reading them."""
        known = [self.format.rows(path) for path in self.paths] if self.format.counts_rows else [None]
        return None if None in known else sum(filter(None, known))

    def only(self, path: str) -> "Files":
        """One of the files."""
        return replace(self, paths=(path,), written=None)

    def dataset(self, **options: Any) -> "Dataset[Any]":
        """The records as a dataset.

        Args:
          **options: of the format, beside those that were given.

        Raises:
          NotFoundError: a file is not there.
          InvalidArgumentError: an option has an invalid value.
        """
        told = {**self.recognised.options, **options}
        return file_datasets.FileDataset(
            list(self.paths), self.recognised.format, partitioning=self.partitioning, **told
        )


def open_files(
    filenames: Any,
    format: str | None = None,
    *,
    storage_options: Mapping[str, Any] | None = None,
    partitioning: Any = "hive",
    **options: Any,
) -> Files:
    """Find files, and tell which format they have.

    Args:
      filenames: a path, pattern or directory, or a list of them; any URL. A single folder that `Dataset.write` has written
        stands for the files in its manifest. What this function returned is returned as it is.
      format: the name of their format; None: it is recognised, see `recognise`.
      storage_options: for the file systems that the URLs name, such as credentials.
      partitioning: what to make of folders such as `year=2024`, as `ParquetDataset` takes it.
      **options: of the format, such as `columns=["x"]`; they take the place of what is recognised.

    Raises:
      NoMatchError: no file matches.
      DataLossError: the manifest of a folder is damaged.
      InvalidArgumentError: the files have different formats, nothing tells the format, or an option has an invalid value.
      TypeError: the format has no such option.

    >>> import distinput as di
    >>> _ = di.data.Dataset.range(3).write("numbers", "parquet")
    >>> files = open_files("numbers")
    >>> files.recognised.format, files.dataset().to_list()
    ('parquet', [{'value': 0}, {'value': 1}, {'value': 2}])
    """
    if isinstance(filenames, Files):
        return filenames
    names, storage = stored(as_paths(filenames), storage_options, None)
    manifest = _manifest(names) if format is None else None
    if manifest is not None:
        manifest.check_format()
        found = Recognised(manifest.format, f"its manifest, {MANIFEST}, says it", {**manifest.options, **options})
        paths = tuple(manifest.paths)
    else:
        paths = tuple(named_files(names, partial(of_folder, format=format)))
        told = recognise(paths, format)
        found = Recognised(told.format, told.how, {**told.options, **options})
    try:
        made = format_named(found.format, **found.options)
    except TypeError as error:
        raise InvalidArgumentError(f"{found.format}: {str(error).removeprefix(f'{found.format}: ')}") from None
    return Files(paths, found, partitioned(made, paths, partitioning), manifest, storage, partitioning)


def _manifest(names: list[str]) -> WrittenFiles | None:
    """What the manifest of a single folder says."""
    if len(names) != 1:
        return None
    local = local_path(names[0])
    folder = os.path.isdir(local) if local is not None else names[0].endswith("/")
    return read_written(names[0]) if folder else None
