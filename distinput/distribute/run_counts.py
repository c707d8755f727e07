# SPDX-License-Identifier: Apache-2.0
"""How the runs of a strategy that compiles were carried out."""

from dataclasses import dataclass

__all__ = ["RunCounts"]


@dataclass(frozen=True)
class RunCounts:
    """What the runs of a strategy took.

    Args:
      programs: compiled programs.
      compiled: runs by a program.
      padded: of these, runs in which rows were added so that a program could be used.
      uncompiled: runs replica by replica.
    """

    programs: int = 0
    compiled: int = 0
    padded: int = 0
    uncompiled: int = 0
