# SPDX-License-Identifier: Apache-2.0
"""A module travels by its name only where the same source would be imported."""

import importlib
import importlib.util
import json
import sys
from pathlib import Path

import numpy as np
import pytest

import distinput
from distinput.distribute.seats import Pickled
from distinput.distribute.seats.packing import same_modules, sources
from distinput.plan.code import is_library


@pytest.fixture
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A module of the user's, imported from a folder on the path."""
    file = tmp_path / "distinput_test_mine.py"
    file.write_text("def double(x):\n    return 2 * x\n")
    monkeypatch.syspath_prepend(tmp_path)
    importlib.import_module("distinput_test_mine")
    monkeypatch.delitem(sys.modules, "distinput_test_mine", raising=False)
    importlib.import_module("distinput_test_mine")
    return file


def test_what_is_installed_and_what_is_not(mine: Path) -> None:
    assert all(is_library(module) for module in (json, np, np.linalg, sys, distinput))
    assert not is_library(sys.modules["distinput_test_mine"])


def test_what_is_installed_in_a_root_that_several_packages_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = tmp_path / "site-packages"
    (place / "distinput_test_shared" / "part").mkdir(parents=True)
    (place / "distinput_test_shared" / "part" / "__init__.py").write_text("class Kind: ...\n")
    monkeypatch.syspath_prepend(place)
    part = importlib.import_module("distinput_test_shared.part")
    assert is_library(part)
    assert is_library(part.Kind)
    for name in ("distinput_test_shared", "distinput_test_shared.part"):
        del sys.modules[name]


def test_the_same_source_is_found_and_another_one_is_not(mine: Path) -> None:
    here = sources(["distinput_test_mine"])
    assert same_modules(here) == ["distinput_test_mine"]
    mine.write_text("def double(x):\n    return 3 * x\n")
    assert same_modules(here) == []
    assert same_modules({"distinput_test_absent": "0"}) == []
    assert same_modules(sources(["distinput_test_absent"])) == []


def test_a_package_that_cannot_be_imported_has_no_modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "distinput_test_broken").mkdir()
    (tmp_path / "distinput_test_broken" / "__init__.py").write_text("raise RuntimeError('broken')")
    monkeypatch.syspath_prepend(tmp_path)
    assert same_modules({"distinput_test_broken.inner": "0"}) == []


@pytest.mark.needs("cloudpickle")
@pytest.mark.parametrize("known", [True, False])
def test_a_function_travels_as_its_name_or_as_it_is(mine: Path, known: bool) -> None:
    asked: list[set[str]] = []

    def same(found: dict[str, str]) -> list[str]:
        asked.append(set(found))
        return list(found) if known else []

    module = sys.modules["distinput_test_mine"]
    packing = Pickled(same)
    try:
        packed = [packing.pack(module.double) for _ in range(2)]
        sys.modules["distinput_test_mine"] = type(sys)("distinput_test_mine")  # at the seat another one has the name
        for one in packed:
            if known:
                with pytest.raises(AttributeError):
                    packing.unpack(one)
            else:
                assert packing.unpack(one)(3) == 6
    finally:
        import cloudpickle

        sys.modules["distinput_test_mine"] = module
        if not known:
            cloudpickle.unregister_pickle_by_value(module)
    assert asked == [{"distinput_test_mine"}]  # asked once


@pytest.mark.needs("cloudpickle")
def test_when_no_worker_can_be_asked_it_is_asked_again(mine: Path) -> None:
    asked: list[set[str]] = []

    def nobody(found: dict[str, str]) -> None:
        asked.append(set(found))

    packing = Pickled(nobody)
    for _ in range(2):
        packing.pack(sys.modules["distinput_test_mine"].double)
    assert len(asked) == 2
