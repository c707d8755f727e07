# SPDX-License-Identifier: Apache-2.0
"""The command `distinput` (floor 8). It uses only public names, as any other program would."""

from distinput.cli.main import main

__all__ = ["main"]
