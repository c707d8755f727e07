# SPDX-License-Identifier: Apache-2.0
"""What every docstring example may use, and where it runs."""

from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(autouse=True)
def _example(request: pytest.FixtureRequest) -> None:
    """Give a docstring example `distinput`, `di` and `np`, and an empty folder to write to."""
    if isinstance(request.node, pytest.DoctestItem):
        import numpy as np

        import distinput

        names: dict[str, Any] = request.getfixturevalue("doctest_namespace")
        names.update(distinput=distinput, di=distinput, np=np)
        folder: Path = request.getfixturevalue("tmp_path")
        request.getfixturevalue("monkeypatch").chdir(folder)
