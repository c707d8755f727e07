# SPDX-License-Identifier: Apache-2.0
"""Tests mirror the package: `distinput/ops/shard.py` has `tests/ops/test_shard.py`."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"

# Modules without a test file of their name, in the words of the package: what tests them instead.
ELSEWHERE: dict[str, str] = {}


def modules() -> set[str]:
    """Every module with code of its own, as a path below the package without its ending."""
    return {
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
    }


def test_of(module: str) -> Path:
    """Where the tests of a module are."""
    folder, _, name = module.rpartition("/")
    return ROOT / "tests" / folder / f"test_{name}.py"


def test_every_module_has_a_test_of_its_name() -> None:
    missing = {module for module in modules() if not test_of(module).exists()}
    assert sorted(missing - set(ELSEWHERE)) == [], "write a test file of this name, or say in ELSEWHERE what tests it"


def test_what_is_tested_elsewhere_has_no_test_of_its_own() -> None:
    assert all(reason.strip() for reason in ELSEWHERE.values())
    assert sorted(set(ELSEWHERE) - modules()) == [], "no such module"
    assert sorted(module for module in ELSEWHERE if test_of(module).exists()) == [], "it has a test now; drop the line"
