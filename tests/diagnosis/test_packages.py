# SPDX-License-Identifier: Apache-2.0
"""Packages are read off the metadata of distinput; versions are compared as numbers."""

import tomllib
from importlib import metadata
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.diagnosis import Package, packages

PROJECT = tomllib.loads((Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8"))["project"]
VERSIONS = st.lists(st.integers(0, 30), min_size=1, max_size=4)


@given(VERSIONS, VERSIONS, st.sampled_from(["", "+cpu", "rc1", ".dev3"]))
def test_versions_are_compared_as_numbers(found: list[int], least: list[int], behind: str) -> None:
    one = Package("a", "", ".".join(map(str, least)), ".".join(map(str, found)) + behind)
    assert one.fits == (found >= least)


def test_what_the_project_needs_is_found_with_its_version() -> None:
    found = packages(PROJECT["dependencies"])
    assert [one.name for one in found] == ["fsspec", "numba", "numpy", "pyarrow"]
    assert all(one.fits and one.extra == "" and one.found == metadata.version(one.name) for one in found)


def test_every_extra_of_users_is_read() -> None:
    lines = [
        f"{text}{' and' if ';' in text else ';'} extra == '{extra}'"
        for extra, texts in PROJECT["optional-dependencies"].items()
        for text in texts
    ]
    found = packages(lines)
    assert {"torch", "mpi", "jax", "dask", "ray", "obstore", "images"} <= {one.extra for one in found}
    assert not {"test", "lint", "bench", "neighbours", "engines", "docs"} & {one.extra for one in found}
    assert next(one.least for one in found if one.name == "torch") == "2.6"


@pytest.mark.parametrize(
    "one, says",
    [
        (Package("numpy", "", "2.0", "1.26"), "pip install --upgrade 'numpy>=2.0'"),
        (Package("torch", "torch", "2.6", None), "pip install -U 'distinput[torch]'"),
    ],
)
def test_how_it_is_installed(one: Package, says: str) -> None:
    assert (one.fits, one.install) == (False, says)
