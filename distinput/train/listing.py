# SPDX-License-Identifier: Apache-2.0
"""What is in a checkpoint, without the program that saved it."""

import os
from typing import Any

from distinput.errors import NotFoundError
from distinput.train.checkpoint_file import CheckpointFile
from distinput.train.coding import decoded
from distinput.train.record import latest_checkpoint
from distinput.url_secrets import without_secrets

__all__ = ["list_variables", "load_variable"]


def list_variables(ckpt_dir_or_file: str | os.PathLike[str]) -> list[tuple[str, list[int]]]:
    """The paths of all variables and arrays in a checkpoint, with their shapes; numbers, text and states have none.

    Args:
      ckpt_dir_or_file: a checkpoint, or a folder whose latest one is meant.

    Raises:
      NotFoundError: there is none.
      DataLossError: it is damaged.

    >>> import tempfile
    >>> import numpy as np
    >>> import distinput as di
    >>> path = di.train.Checkpoint(model={"w": np.zeros((2, 3))}, step=7).save(f"{tempfile.mkdtemp()}/ckpt")
    >>> list_variables(path)
    [('model/w', [2, 3]), ('step', [])]

    Source: `tf.train.list_variables`.
    """
    with _opened(ckpt_dir_or_file) as file:
        return [(path, _shape(entry.get("value"))) for path, entry in sorted(file.header["entries"].items())]


def load_variable(ckpt_dir_or_file: str | os.PathLike[str], name: str) -> Any:
    """A value in a checkpoint: an array of a variable, or what else was saved there.

    Args:
      ckpt_dir_or_file: a checkpoint, or a folder whose latest one is meant.
      name: its path. Where each worker saved its own, there is a list of them.

    Raises:
      NotFoundError: there is no such checkpoint.
      KeyError: it has nothing of this name.
      DataLossError: it is damaged.

    Source: `tf.train.load_variable`.
    """
    with _opened(ckpt_dir_or_file) as file:
        entries = file.header["entries"]
        if name not in entries:
            raise KeyError(
                f"load_variable: {without_secrets(file.path)} has no {name!r}; it has {', '.join(sorted(entries))}"
            )
        entry = entries[name]
        if entry["kind"] == "iterator":
            return entry.get("value", entry.get("values"))
        if "value" in entry:
            return decoded(entry["value"], file.array)
        return [decoded(value, file.array) for value in entry["values"]]


def _opened(given: str | os.PathLike[str]) -> CheckpointFile:
    path = os.fspath(given)
    try:
        return CheckpointFile(path)
    except NotFoundError:
        latest = latest_checkpoint(path)
        if latest is None:
            raise
    return CheckpointFile(latest)


def _shape(saved: Any) -> list[int]:
    while isinstance(saved, dict):
        if "shape" in saved:
            return [int(size) for size in saved["shape"]]
        saved = next(iter(saved.values()), None) if {*saved} & {"jax", "scalar"} else saved.get("of")
    return []
