# SPDX-License-Identifier: Apache-2.0
"""The result of restoring: which names had no counterpart."""

import warnings
from collections.abc import Sequence
from typing import Any, Self

from distinput.errors import InputWarning

__all__ = ["InitializationStatus", "RestoreStatus"]

_SHOWN = 10  # names in a message


class RestoreStatus:
    """The result of `Checkpoint.restore`: everything that matched has been restored, and nothing is restored later.

    Call `expect_partial` if differences are intended, or one of the assertions if not. If none of these was called, a
    difference is an `InputWarning` when the status is dropped.

    Args:
      path: the checkpoint.
      restored: how many things were restored.
      missing: the paths of what the program has and the checkpoint has not.
      unused: the paths of what the checkpoint has and the program has not.

    Source: the status objects of `tf.train.Checkpoint.restore`.
    """

    def __init__(self, path: str, restored: int, missing: Sequence[str], unused: Sequence[str]) -> None:
        self.path, self.restored = path, restored
        self.missing, self.unused = tuple(missing), tuple(unused)
        self._looked_at = False

    def assert_consumed(self) -> Self:
        """Check that everything in the checkpoint was restored, and everything in the program.

        Raises:
          AssertionError: not so; the message names the rest.
        """
        self._looked_at = True
        if self.missing or self.unused:
            raise AssertionError(self._told())
        return self

    def assert_existing_objects_matched(self) -> Self:
        """Check that everything in the program was restored; the checkpoint may have more.

        Raises:
          AssertionError: not so; the message names the rest.
        """
        self._looked_at = True
        if self.missing:
            raise AssertionError(self._told())
        return self

    def assert_nontrivial_match(self) -> Self:
        """Check that anything was restored at all.

        Raises:
          AssertionError: nothing in the program has a path that is in the checkpoint.
        """
        self._looked_at = True
        if not self.restored:
            raise AssertionError(self._told())
        return self

    def expect_partial(self) -> Self:
        """Allow differences without a warning."""
        self._looked_at = True
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Nothing: `restore` has done it. For programs that were written for graphs."""

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing: `restore` has done it. For programs that were written for graphs."""

    def _told(self) -> str:
        parts = []
        if self.missing:
            parts.append(f"the checkpoint has nothing for {_listed(self.missing)}")
        if self.unused:
            parts.append(f"the program has nothing for {_listed(self.unused)}")
        return (
            f"{self.path}: restored {self.restored} values; {', and '.join(parts) or 'the checkpoint is empty'}; make "
            "variables before restoring, give things the same names, or call expect_partial() if that is meant"
        )

    def __del__(self) -> None:
        if not getattr(self, "_looked_at", True) and (self.missing or self.unused):
            warnings.warn(self._told(), InputWarning, stacklevel=2)


class InitializationStatus:
    """The result of `Checkpoint.restore(None)`, which restores nothing."""

    def assert_consumed(self) -> Self:
        """Fail, since nothing was restored.

        Raises:
          AssertionError: always.
        """
        raise AssertionError("No checkpoint specified (save_path=None); nothing is being restored.")

    assert_existing_objects_matched = assert_consumed
    assert_nontrivial_match = assert_consumed

    def expect_partial(self) -> Self:
        """Return the status."""
        return self

    def run_restore_ops(self, session: Any = None) -> None:
        """Fail, since there is nothing to restore.

        Raises:
          AssertionError: always.
        """
        raise AssertionError("No checkpoint specified (save_path=None), so no restore ops are available.")

    def initialize_or_restore(self, session: Any = None) -> None:
        """Nothing: variables have their first values."""


def _listed(names: Sequence[str]) -> str:
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return ", ".join(map(repr, names[:_SHOWN])) + more
