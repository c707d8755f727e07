# SPDX-License-Identifier: Apache-2.0
"""The format of files that are named without it: as the manifest of a written folder has it, or their names, or their bytes."""

import os
from collections.abc import Mapping
from typing import Any

from distinput.files.directory import named_files
from distinput.files.paths import as_paths
from distinput.files.storage import stored
from distinput.formats.recognise import of_folder, recognise
from distinput.writers.manifest import read_written

__all__ = ["written_format"]


def written_format(
    filenames: Any, options: Mapping[str, Any], storage_options: Mapping[str, Any] | None = None, filesystem: Any = None
) -> tuple[str, dict[str, Any]]:
    """The name of the format, and its options.

    Args:
      filenames: names of files, or a folder.
      options: those that take the place of the ones in the manifest, or of what is recognised.
      storage_options: for the file systems that the URLs name.
      filesystem: that has the files.

    Raises:
      TypeError: the names are those of a dataset, which are known at iteration.
      NoMatchError: there is no such file.
      DataLossError: a manifest is damaged.
      InvalidArgumentError: nothing tells the format, or it is none that is known.
    """
    if not isinstance(filenames, str | bytes | os.PathLike | list | tuple):
        raise TypeError("FileDataset: needs a format; only names of files that are there say it themselves")
    names, _ = stored(as_paths(filenames), storage_options, filesystem)
    try:
        written = read_written(names[0]) if len(names) == 1 else None
    except FileExistsError:  # some file systems say so where a file is, and a folder was asked for
        written = None
    if written is not None:
        written.check_format()
        return written.format, {**written.options, **options}
    found = recognise(named_files(names, of_folder))
    return found.format, {**found.options, **options}
