# SPDX-License-Identifier: Apache-2.0
"""Object stores in forked processes: a fork does not copy the threads that make obstore's requests, so none would come back."""

import os
from typing import Any

from distinput.errors import FailedPreconditionError

__all__ = ["check_not_forked"]

_OWN = "distinput.files.object_store"
_USED = {"here": False, "before": False}  # in this process, and in the one that it was forked from


def check_not_forked(system: Any, path: str) -> None:
    """Refuse an object store of obstore in a process that was forked from one that had used obstore.

    Args:
      system: the file system that opens `path`.
      path: for the message.

    Raises:
      FailedPreconditionError: this is such a process.
    """
    if type(system).__module__ != _OWN:
        return
    if _USED["before"]:
        raise FailedPreconditionError(
            f"cannot open {path!r} here: this process was forked from one that had used obstore, whose threads do not exist "
            "after a fork, so no request would come back; start processes anew: DataLoader(multiprocessing_context='spawn'), "
            "also of interop.torch.Loader, or multiprocessing.get_context('spawn')"
        )
    _USED["here"] = True


def _after_fork() -> None:
    _USED["before"] = _USED["before"] or _USED["here"]


if hasattr(os, "register_at_fork"):  # there is none on Windows, nor a fork
    os.register_at_fork(after_in_child=_after_fork)
