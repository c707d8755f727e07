# SPDX-License-Identifier: Apache-2.0
"""The exit statuses of all commands."""

__all__ = ["FAILED", "FINE", "FOUND", "INTERRUPTED", "USAGE"]

FINE = 0
"""All went well."""

FAILED = 1
"""Something failed: a file is missing or damaged, a dataset raised an error. The message is on standard error."""

USAGE = 2
"""The words are wrong; nothing was done. argparse uses the same number."""

FOUND = 3
"""The command did its work, and what it checks does not hold: `verify` has found a difference, say."""

INTERRUPTED = 130
"""Ctrl-C, as shells have it."""
