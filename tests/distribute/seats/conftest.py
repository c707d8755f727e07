# SPDX-License-Identifier: Apache-2.0
"""Engines of coordinators that are not installed are left out with the reason."""

import importlib.util

import pytest

PACKAGES = {"dask": "distributed", "ray": "ray"}


@pytest.fixture(autouse=True)
def _coordinator_engine(request: pytest.FixtureRequest) -> None:
    mark = request.node.get_closest_marker("needs_engine")
    callspec = getattr(request.node, "callspec", None)
    engine = mark.args[0] if mark else callspec.params.get("engine") if callspec else None
    package = PACKAGES.get(str(engine))
    if package and importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed (`pip install 'distinput[{engine}]'`)")
