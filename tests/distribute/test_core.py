# SPDX-License-Identifier: Apache-2.0
"""The core of distribution is thin: it imports neither input nor variables nor workers, and a strategy loads few modules."""

import subprocess
import sys
from pathlib import Path

import pytest

import distinput
from distinput.distribute.core.replicas import PARTS, part
from tests.house.imports import imports, module_name

ROOT = Path(distinput.__file__).parents[1]
CORE = ROOT / "distinput" / "distribute" / "core"
BELOW = ("distribute.core", "distribute.devices", "values", "run", "names", "errors")

MOST_MODULES = 51
"""Of ours, that `MirroredStrategy(...)` loads; each that is added is read by whoever wants to know what a strategy is."""


def test_the_core_imports_only_what_is_below_it() -> None:
    known = {module_name(file, ROOT) for file in (ROOT / "distinput").rglob("*.py")}
    up = [
        f"{file.name}:{item.line}: {item.name}"
        for file in sorted(CORE.rglob("*.py"))
        for item in imports(
            file.read_text(encoding="utf-8"), module_name(file, ROOT), file.name == "__init__.py", known
        )
        if item.name.startswith("distinput")
        and not f"{item.name}.".startswith(tuple(f"distinput.{room}." for room in BELOW))
    ]
    assert up == [], "what stands above a strategy is given to it: see core/parts.py"


@pytest.mark.fresh_process
def test_a_strategy_loads_few_modules() -> None:
    program = (
        "import sys, distinput\n"
        "strategy = distinput.distribute.MirroredStrategy(['CPU:0', 'CPU:1'])\n"
        "strategy.reduce('SUM', strategy.run(lambda: [1.5][0]), axis=None)\n"
        "print(*[name for name in sys.modules if name.startswith('distinput')])"
    )
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    loaded = run.stdout.split()
    assert len(loaded) <= MOST_MODULES, loaded
    assert not [name for name in loaded if name.startswith(("distinput.data", "distinput.ops", "distinput.plan"))]


def test_every_part_is_where_the_table_says() -> None:
    assert all(callable(part(name)) for name in PARTS)
