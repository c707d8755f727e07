# SPDX-License-Identifier: Apache-2.0
"""Imports go down the floors or stay in their package; packages from outside have one door each."""

import sys
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.house.imports import imports, module_name

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"

# The rooms of the house: the second word of a module's name, and the floor it is on.
FLOORS: dict[str, int] = {
    "kernels": 0,
    "errors": 0,
    "core": 1,
    "plan": 2,
    "files": 2,  # fsspec's door; not named `io`, since `distinput.io` is public and mirrors `tf.io`
    "cluster": 2,
    "formats": 3,
    "functions": 3,
    "partition": 3,
    "streaming": 3,
    "ops": 4,
    "sharding": 5,
    "rewrite": 5,
    "data": 6,
    "io": 6,
    "random": 6,
    "dtypes": 6,
    "distribute": 7,
    "cli": 8,
    "extend": 8,  # what others write ops, formats and engines with: names of all floors below
    "testing": 8,
    "__main__": 8,
    "": 9,  # distinput/__init__.py: the public names, above everything
}

# Siblings of one floor, and the two rooms that speak as a user does: (who, whom) -> why.
ALLOWED: dict[tuple[str, str], str] = {
    ("cli", ""): "the command line is a user of the public names",
    ("functions", "streaming"): "threads that call functions are tried and measured as all threads are",
    ("partition", "formats"): "where a file can be cut is its format's to say",
    ("rewrite", "sharding"): "a rule replaces `shard_batches` by the reading of a worker's own rows",
    ("streaming", "formats"): "the portions in which a format is read are decoded ahead",
    ("testing", ""): "law suites and strategies are written in the public names, as users' own are",
    ("__main__", "cli"): "`python -m distinput` is the command line",
    ("data", "dtypes"): "dtypes are names that the dataset makers take",
    ("data", "random"): "the global seed is read when a dataset is made",
    ("io", "data"): "tf.io functions take and return what datasets hold",
    ("io", "dtypes"): "features are declared with dtypes",
}

# Packages from outside and the files that may import them; numpy and the standard library may be used everywhere.
DOORS: dict[str, tuple[str, ...]] = {
    "cloudpickle": ("distinput/core/processes.py",),
    "dask": ("distinput/cluster/*", "distinput/distribute/engines/*", "distinput/distribute/devices/*"),
    "distributed": ("distinput/cluster/*", "distinput/distribute/engines/*", "distinput/distribute/devices/*"),
    "fsspec": ("distinput/files/*",),
    "google_crc32c": ("distinput/kernels/crc32c_numpy.py",),
    "hypothesis": ("distinput/testing/*",),
    "jax": ("distinput/cluster/*", "distinput/distribute/engines/*", "distinput/distribute/devices/*"),
    "llvmlite": ("distinput/kernels/*",),  # numba's own compiler, for the errors and names numba does not wrap
    "mpi4py": ("distinput/cluster/*", "distinput/distribute/engines/*", "distinput/distribute/devices/*"),
    "numba": ("distinput/kernels/*",),
    "numpy": ("*",),
    "pyarrow": (
        "distinput/core/arrow.py",
        "distinput/core/arrow_damage.py",
        "distinput/core/bytes_objects.py",
        "distinput/core/to_arrow.py",
        "distinput/files/*",
        "distinput/formats/*",
    ),
    "pytest": ("distinput/testing/*",),
    "ray": ("distinput/cluster/*", "distinput/distribute/engines/*", "distinput/distribute/devices/*"),
    "torch": ("distinput/cluster/*", "distinput/distribute/engines/*", "distinput/distribute/devices/*"),
    "tqdm": ("distinput/cli/*",),
    "typing_extensions": ("distinput/data/element.py",),  # read by type checkers alone, which bring it along
}

# Imports of our own modules inside a function hide a floor; these are lazy on purpose: (file, function) -> why.
LAZY: dict[tuple[str, str], str] = {
    ("distinput/__init__.py", "_absent"): "so does what to write in the place of a name that is not there",
    ("distinput/data/__init__.py", "_absent"): "the same",
    ("distinput/__init__.py", "__getattr__"): "`import distinput` stays quick: a corner is loaded when it is named",
    (
        "distinput/data/__init__.py",
        "__getattr__",
    ): "so does the first batch: what reads files is loaded when it is named",
    ("distinput/data/handle.py", "explain"): "the plan for many workers looks through all ops, and so loads them",
    ("distinput/data/dataset.py", "list_files"): "paths and their patterns are for those who read files",
    ("distinput/ops/slices.py", "names"): "what names of files say is for states, which few first batches come with",
    ("distinput/plan/node.py", "identity"): "so is what functions do",
    ("distinput/plan/node.py", "count_elements"): "the stand-in for an input that was counted is a node itself",
    ("distinput/kernels/kernel.py", "_numba"): "numba is loaded with the first kernel to compile",
}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def problems(source: str, module: str, file: str, known: Collection[str]) -> list[str]:
    """What is wrong with the imports of one file of the package."""
    if room(module) not in FLOORS:
        return [f"{file}: `{room(module)}` is on no floor; give it one in FLOORS"]
    found = []
    for item in imports(source, module, file.endswith("__init__.py"), known):
        top = item.name.split(".")[0]
        where = f"{file}:{item.line}"
        if top == "distinput":
            found += [f"{where}: {text}" for text in _own(module, item.name)]
            if item.function is not None and (file, item.function) not in LAZY:
                found.append(
                    f"{where}: `{item.name}` is imported inside `{item.function}`; move it to the top of the file"
                )
        elif top in DOORS:
            if not any(fnmatch(file, door) for door in DOORS[top]):
                found.append(f"{where}: `{top}` may be imported only in {', '.join(DOORS[top])}")
        elif top not in sys.stdlib_module_names:
            found.append(f"{where}: `{top}` is not among the packages distinput uses; see DOORS")
    return found


def _own(module: str, name: str) -> list[str]:
    here, there = room(module), room(name)
    if there not in FLOORS:
        return [f"`{name}` is on no floor"]
    if here == there or FLOORS[there] < FLOORS[here] or (here, there) in ALLOWED:
        return []
    way = "up" if FLOORS[there] > FLOORS[here] else "sideways"
    return [f"`{name}` is {way}: floor {FLOORS[here]} may not import floor {FLOORS[there]}"]


FILES = sorted(PACKAGE.rglob("*.py"))
KNOWN = frozenset(module_name(file, ROOT) for file in FILES)


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(ROOT)))
def test_imports_go_down(file: Path) -> None:
    name = file.relative_to(ROOT).as_posix()
    assert problems(file.read_text(encoding="utf-8"), module_name(file, ROOT), name, KNOWN) == []


@pytest.mark.parametrize(
    "module, source, says",
    [
        ("distinput.core.nest", "from distinput.ops.map import Map", "is up"),
        ("distinput.core.nest", "def f():\n    from distinput.core import spec", "inside `f`"),
        ("distinput.core.nest", "import fsspec", "may be imported only in distinput/files"),
        ("distinput.core.nest", "def f():\n    import numba.core", "may be imported only in distinput/kernels"),
        ("distinput.core.nest", "import pandas", "not among the packages"),
        ("distinput.core.nest", "import distinput", "is up"),
        ("distinput.core.nest", "from .. import ops", "is up"),
        ("distinput.core.nest", "from importlib import import_module\nimport_module('distinput.ops')", "is up"),
        ("distinput.core.nest", "from distinput import elsewhere", "is up"),
        ("distinput.formats.text", "from distinput.partition import shard_plan", "is sideways"),
        ("distinput.helpers.text", "", "on no floor"),
        ("distinput.distribute.input.distribution", "import torch", "may be imported only in"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str, says: str) -> None:
    known = {"distinput.ops", "distinput.partition", "distinput.partition.shard_plan", "distinput.ops.map"}
    file = module.replace(".", "/") + ".py"
    assert any(says in problem for problem in problems(source, module, file, known))


@pytest.mark.parametrize(
    "module, source",
    [
        (
            "distinput.ops.map",
            "import json\nimport numpy as np\nfrom distinput.core import nest\nfrom distinput.errors import StateError",
        ),
        ("distinput.ops.map", "from distinput.ops.batch import Batch\nfrom . import batch"),
        ("distinput.kernels.row_loop", "def load():\n    import numba"),
        ("distinput.distribute.engines.torch", "import torch.distributed"),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    known = {"distinput.ops", "distinput.ops.batch", "distinput.core.nest"}
    assert problems(source, module, module.replace(".", "/") + ".py", known) == []


def test_every_exception_has_a_reason() -> None:
    assert all(reason.strip() for reason in (*ALLOWED.values(), *LAZY.values()))
    assert all(here in FLOORS and there in FLOORS for here, there in ALLOWED)
