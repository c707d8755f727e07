# SPDX-License-Identifier: Apache-2.0
"""The command `distinput` (floor 8)."""

from distinput.cli.main import main

__all__ = ["main"]
