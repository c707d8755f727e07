# SPDX-License-Identifier: Apache-2.0
"""States: plain JSON values that say where a stream stands.

The whole contract: a stream yields `(block, state)`, and whoever starts again with that state receives exactly what would
have followed. A state holds positions, seeds and counts, never elements; the one exception is the carried value of `scan`,
which only the user's function can make.
"""

from typing import Any

__all__ = ["READABLE", "VERSION", "Mark", "State"]

State = dict[str, Any]

VERSION = 3
"""The version written into every saved state. It is raised when the layout of states changes (`tests/states`)."""

READABLE = (2, 3)
"""The versions that are restored."""

Mark = dict[str, Any]
"""Where a row stands in an input: `{"input": state, "skip": rows to pass over from there}`."""
