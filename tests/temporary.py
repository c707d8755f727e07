# SPDX-License-Identifier: Apache-2.0
"""Folders for examples of Hypothesis and for what is made once, which no `tmp_path` fits; they go with the session."""

import shutil
from tempfile import mkdtemp

_FOLDERS: list[str] = []


def temporary_folder() -> str:
    """An empty folder that lasts as long as the tests of this process."""
    _FOLDERS.append(mkdtemp(prefix="distinput-test-"))
    return _FOLDERS[-1]


def remove_folders() -> None:
    """Remove those that were made; `conftest.py` calls this at the end."""
    while _FOLDERS:
        shutil.rmtree(_FOLDERS.pop(), ignore_errors=True)
