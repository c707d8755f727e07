# SPDX-License-Identifier: Apache-2.0
"""What `Dataset.save` and `Dataset.load` do: elements of any spec in a folder, exactly as they are."""

import time
from collections.abc import Callable, Mapping
from typing import Any

from distinput.data.iterator import DatasetLike
from distinput.data.writing import Request, write
from distinput.errors import DataLossError, InvalidArgumentError, NotFoundError
from distinput.files.paths import as_paths
from distinput.formats.elements import Elements
from distinput.ops.saved import saved_elements
from distinput.plan.check import callable_argument
from distinput.plan.node import Node
from distinput.values.spec import Spec
from distinput.writers.elements import ElementsWriter, codec_of
from distinput.writers.manifest import MANIFEST, WrittenFiles, read_written

__all__ = ["load", "save"]

_PAUSE = 0.05
"""Seconds from one look for a dataset that another process saves to the next."""


def save(
    dataset: DatasetLike,
    path: Any,
    compression: str | None,
    shard_func: Callable[..., Any] | None,
    checkpoint_args: Mapping[str, Any] | None,
) -> WrittenFiles:
    """Save a pass, in the place of what was saved there before."""
    if checkpoint_args is not None and not isinstance(checkpoint_args, Mapping):
        raise TypeError(f"save: checkpoint_args must be a dict of arguments, got {checkpoint_args!r}")
    if shard_func is not None:
        callable_argument("save", "shard_func", shard_func)
    codec = codec_of("save", compression)
    request = Request(
        "save",
        as_paths(path)[0],
        ElementsWriter(codec),
        prefix="elements",
        overwrite=True,
        shard_func=shard_func,
        more={"compression": codec},
    )
    return write(dataset, request)


def load(
    path: Any,
    element_spec: Any,
    compression: str | None,
    reader_func: Callable[[Any], Any] | None,
    wait: bool,
) -> Node:
    """The step that reads the saved elements."""
    directory = as_paths(path)[0]
    if reader_func is not None:
        callable_argument("load", "reader_func", reader_func)
    manifest = read_written(directory)
    while manifest is None and wait:
        time.sleep(_PAUSE)
        manifest = read_written(directory)
    if manifest is None:
        raise NotFoundError(
            f"load: {directory} holds no complete dataset ({MANIFEST} is missing); save one there, or give wait=True if another"
            " process saves it"
        )
    if manifest.format != Elements.name:
        raise InvalidArgumentError(
            f"load: {directory} holds files of format {manifest.format!r}, which save did not write; read them with "
            "FileDataset(directory)"
        )
    kept = manifest.more.get("compression")
    if compression is not None and codec_of("load", compression) != kept:
        raise InvalidArgumentError(
            f"load: {directory} was saved with compression {kept!r}, got {compression!r}; leave compression out"
        )
    given = None if element_spec is None else Spec.of(element_spec)
    try:
        return saved_elements(manifest, given, reader_func)
    except (DataLossError, InvalidArgumentError, TypeError) as error:
        raise type(error)(f"load: {directory}: {error}") from error
