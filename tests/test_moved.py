# SPDX-License-Identifier: Apache-2.0
"""Old paths of modules lead to the new ones, with one warning."""

import subprocess
import sys
from importlib import import_module
from importlib.util import find_spec

import pytest

from distinput.moved import _MOVED, new_path


@pytest.mark.parametrize("old", sorted(_MOVED))
def test_the_new_path_is_there_and_the_old_one_is_not(old: str) -> None:
    assert find_spec(f"distinput.{old}").loader.__module__ == "distinput.moved"  # type: ignore[union-attr]
    new = new_path(f"distinput.{old}")
    assert new is not None
    assert find_spec(new) is not None


def test_an_old_path_is_the_same_module_with_its_own_spec() -> None:
    sys.modules.pop("distinput.names.registry", None)
    with pytest.warns(DeprecationWarning, match=r"names\.registry moved: import distinput\.names\.lazy"):
        old = import_module("distinput.names.registry")
    new = import_module("distinput.names.lazy")
    assert old is new
    assert new.__spec__ is not None
    assert new.__spec__.name == "distinput.names.lazy"


def test_a_module_that_is_a_package_now_has_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(_MOVED, "sharding.policies.data", "sharding.policies")
    sys.modules.pop("distinput.sharding.policies.data", None)
    with pytest.warns(DeprecationWarning, match=r"policies\.data moved: import distinput\.sharding\.policies instead"):
        old = import_module("distinput.sharding.policies.data")
    assert old.POLICIES is import_module("distinput.sharding.policies").POLICIES


def test_one_import_warns_once_where_it_stands() -> None:
    program = (
        "import warnings\n"
        "with warnings.catch_warnings(record=True) as caught:\n"
        "    warnings.simplefilter('always')\n"
        "    from distinput.names.registry import later\n"
        "    from distinput.names import registry\n"
        "import sys\n"
        "assert registry is sys.modules['distinput.names.lazy']\n"
        "print([(one.category.__name__, one.filename) for one in caught])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert run.stdout.strip() == "[('DeprecationWarning', '<string>')]"


def test_what_never_was_there_is_missing_still() -> None:
    assert new_path("distinput.distribute.nowhere") is None
    assert new_path("elsewhere.names.registry") is None
    with pytest.raises(ModuleNotFoundError, match="No module named"):
        import_module("distinput.distribute.nowhere")
