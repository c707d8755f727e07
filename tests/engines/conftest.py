# SPDX-License-Identifier: Apache-2.0
"""Every test here needs an engine, and is left out with the reason where it is not installed."""

import pytest

from tests.engines.processes import ENGINES, missing


@pytest.fixture(autouse=True)
def _engine(request: pytest.FixtureRequest) -> None:
    """Leave out what needs an engine that is not there: a parameter `engine`, or the mark `needs_engine`."""
    mark = request.node.get_closest_marker("needs_engine")
    callspec = getattr(request.node, "callspec", None)
    engine = mark.args[0] if mark else callspec.params.get("engine") if callspec else None
    if engine in ENGINES and (why := missing(engine)):
        pytest.skip(why)
