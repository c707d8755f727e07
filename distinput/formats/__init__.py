# SPDX-License-Identifier: Apache-2.0
"""Floor 3: the file formats, one file each, loaded when it is first named, as `formats.text` is."""
# ruff: noqa: F401 - the names are told to type checkers only

from typing import TYPE_CHECKING

from distinput.core.lazy import files_of

if TYPE_CHECKING:
    from distinput.formats import arrow_ipc, fixed_length, indexed_tfrecord, npy, parquet, text, tfrecord
else:
    __getattr__ = files_of(__name__)
