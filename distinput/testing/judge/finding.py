# SPDX-License-Identifier: Apache-2.0
"""What a law says about a loader."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

__all__ = ["Ruling", "Verdict", "broken", "kept", "not_judged", "refused"]


class Verdict(Enum):
    """What became of a law.

    Attributes:
      KEPT: in every job that was tried.
      REFUSED: in some job the loader raised an error before it delivered anything; where it went on, the law is kept.
      BROKEN: in some job.
      NOT_JUDGED: the loader does not offer what the law is about.
    """

    KEPT = "kept"
    REFUSED = "refused"
    BROKEN = "broken"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Ruling:
    """What one law says.

    Args:
      verdict: the verdict.
      says: one line: what was found, and in which job.
      figures: numbers of the same, JSON values.
      law: its name, given by the judge.
    """

    verdict: Verdict
    says: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    law: str = ""

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"law": self.law, "verdict": self.verdict.value, "says": self.says, "figures": dict(self.figures)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Ruling":
        """What `to_json` gave."""
        return Ruling(Verdict(value["verdict"]), value["says"], value["figures"], value["law"])


def kept(says: str, **figures: Any) -> Ruling:
    """The law is kept."""
    return Ruling(Verdict.KEPT, says, figures)


def broken(says: str, **figures: Any) -> Ruling:
    """The law is broken."""
    return Ruling(Verdict.BROKEN, says, figures)


def refused(says: str, **figures: Any) -> Ruling:
    """The loader says that it cannot do this."""
    return Ruling(Verdict.REFUSED, says, figures)


def not_judged(says: str) -> Ruling:
    """The law does not apply."""
    return Ruling(Verdict.NOT_JUDGED, says)
