# SPDX-License-Identifier: Apache-2.0
"""Where in the user's code a step was made."""

import os
import sys
from dataclasses import dataclass, field

__all__ = ["Origin", "caller"]

_PACKAGE = os.path.dirname(os.path.dirname(__file__)) + os.sep


@dataclass(frozen=True)
class Origin:
    """The line of the user's code that made a node, and the process that ran it."""

    file: str
    line: int
    process: int = field(default_factory=os.getpid, compare=False, repr=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


def caller() -> Origin:
    """The innermost line on the stack that does not belong to distinput."""
    frame = sys._getframe(1)
    while (
        frame is not None and frame.f_code.co_filename.startswith((_PACKAGE, "<string>")) and frame.f_back is not None
    ):
        frame = frame.f_back
    return Origin(frame.f_code.co_filename, frame.f_lineno)
