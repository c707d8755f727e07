# SPDX-License-Identifier: Apache-2.0
"""What every docstring example may use, and where it runs."""

from collections.abc import Iterator
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


@pytest.fixture(autouse=True)
def _open_tables() -> Iterator[None]:
    """What a test or an example registers is unknown to the next one."""
    from distinput.core.registry import Registry
    from distinput.data.dataset import Dataset
    from distinput.data.registration import OPS
    from distinput.distribute.devices import BACKENDS
    from distinput.distribute.engines import ENGINES
    from distinput.formats import FORMATS
    from distinput.rewrite.rules import FIRST, RULES
    from distinput.sharding.policies import POLICIES

    tables: list[Registry[Any]] = [BACKENDS, ENGINES, FORMATS, OPS]
    known = [dict(table._known) for table in tables]
    rules, policies = (list(FIRST), list(RULES)), dict(POLICIES)
    yield
    for name in set(OPS) - set(known[-1]):
        delattr(Dataset, name)
    for table, names in zip(tables, known, strict=True):
        table._known = names
    FIRST[:], RULES[:] = rules
    for policy in set(POLICIES) - set(policies):
        del POLICIES[policy]
