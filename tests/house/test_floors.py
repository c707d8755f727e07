# SPDX-License-Identifier: Apache-2.0
"""Imports go down the floors or stay in their package; packages from outside have one door each."""

import sys
from collections.abc import Collection
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.house.imports import imports, lazy_names, module_name

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"

# The rooms of the house: the second word of a module's name, and the floor it is on.
FLOORS: dict[str, float] = {
    "kernels": 0,
    "errors": 0,
    "url_secrets": 0,  # what must not be in the texts of errors
    "names": -1,  # of what is loaded later; below `kernels`, one of which is
    "values": 1,
    "columns": 1.1,
    "arrow": 1.2,
    "run": 1.3,
    "tpu": 1,  # named as `tf.tpu` is; where devices are, which resolvers and strategies are told
    "decoders": 2,
    "plan": 2,
    "files": 2,  # fsspec's door; not named `io`, since `distinput.io` is public and mirrors `tf.io`
    "cluster": 2,
    "formats": 3,
    "functions": 3,
    "streaming": 3,
    "writers": 3,
    "ops": 4,
    "sharding": 5,
    "rewrite": 5,
    "data": 6,
    "lineage": 7,  # which record it was: above the input of `distribute`, which reaches it by its table of parts
    "io": 6,
    "random": 6,
    "dtypes": 6,
    "distribute": 7,
    "inspect": 7,  # what the commands over files compute; not above `cli`, and not a part of `distribute`
    "cli": 8,
    "compat": 8,
    "moved": 0,  # old paths and new ones, as strings
    "diagnosis": 8,  # what is installed here, and what would make it faster
    "interop": 8,  # one module a neighbour: PyTorch, JAX, Keras, tables, ...
    "extend": 8,  # what others write ops, formats and engines with: names of all floors below
    "tf": 8,  # names of TensorFlow, on top: nothing below imports them
    "reports": 8,  # pictures, pages and metrics of pipelines and of what was measured of them
    "testing": 9,
    "train": 8,
    "__main__": 8,
    "": 10,  # distinput/__init__.py: the public names, above everything
}

# Siblings of one floor, and the two rooms that speak as a user does: (who, whom) -> why.
ALLOWED: dict[tuple[str, str], str] = {
    ("errors", "url_secrets"): "no message has a secret in it",
    ("cli", ""): "the command line is a user of the public names",
    ("cli", "diagnosis"): "the command `doctor` prints what it finds",
    ("cli", "testing"): "the command `judge` tries loaders as tests do",
    ("cli", "reports"): "the command `graph` draws, and `bench` writes a page",
    ("functions", "streaming"): "threads that call functions are tried and measured as all threads are",
    ("lineage", "distribute"): "which records steps are made of is told by how they are dealt",
    ("diagnosis", ""): "it tells the version of the whole",
    ("rewrite", "sharding"): "a rule replaces `shard_batches` by the reading of a worker's own rows",
    ("streaming", "formats"): "the portions in which a format is read are decoded ahead",
    ("streaming", "writers"): "what a pass keeps on its way is written to files",
    ("writers", "functions"): "a function of the user's may say which file an element goes to",
    ("writers", "formats"): "elements are written as their format reads them, and records as their encoding has it",
    ("tpu", "data"): "what is declined, and why, is in one table",
    ("testing", ""): "law suites and strategies are written in the public names, as users' own are",
    ("__main__", "cli"): "`python -m distinput` is the command line",
    ("data", "dtypes"): "dtypes are names that the dataset makers take",
    ("reports", ""): "a report says which version wrote it",
    ("random", "data"): "what is declined, and why, is in one table",
    ("io", "data"): "tf.io functions take and return what datasets hold",
    ("io", "dtypes"): "features are declared with dtypes",
}

# Packages from outside and the files that may import them; numpy and the standard library may be used everywhere.
DOORS: dict[str, tuple[str, ...]] = {
    "array_record": ("distinput/formats/array_record.py",),
    "av": ("distinput/formats/media.py",),
    "cloudpickle": (
        "distinput/run/segments.py",
        "distinput/run/processes.py",
        "distinput/distribute/seats/packing.py",
    ),
    "dask": ("distinput/cluster/*", "distinput/distribute/seats/*"),
    "distributed": ("distinput/cluster/*", "distinput/distribute/seats/*"),
    "accelerate": ("distinput/testing/judge/loaders/*",),
    "absl": ("distinput/testing/judge/loaders/libraries.py",),  # whose worker processes look for its flags
    "datasets": ("distinput/interop/huggingface.py", "distinput/testing/judge/loaders/*"),
    "deltalake": ("distinput/interop/tables.py",),
    "fsspec": ("distinput/files/*", "distinput/testing/faulty_files.py"),
    "grain": ("distinput/interop/grain.py", "distinput/testing/judge/loaders/*"),
    "google_crc32c": ("distinput/kernels/checksums.py",),
    "hypothesis": ("distinput/testing/*",),
    "jax": (
        "distinput/cluster/*",
        "distinput/distribute/engines/*",
        "distinput/distribute/devices/*",
        "distinput/distribute/tpu/*",
        "distinput/interop/*",
        "distinput/tpu/*",
    ),
    "keras": ("distinput/interop/keras.py",),
    "lance": ("distinput/interop/tables.py", "distinput/testing/judge/loaders/*"),
    "lancedb": ("distinput/testing/judge/loaders/*",),
    "litdata": ("distinput/testing/judge/loaders/*",),
    "llvmlite": ("distinput/kernels/*",),  # numba's own compiler, for the errors and names numba does not wrap
    "mpi4py": ("distinput/cluster/*", "distinput/distribute/engines/*", "distinput/distribute/devices/*"),
    "numba": ("distinput/kernels/*",),
    "obstore": ("distinput/files/*",),
    "numpy": ("*",),
    "PIL": ("distinput/decoders/image.py",),
    "pandas": ("distinput/interop/*",),
    "polars": ("distinput/data/export.py", "distinput/interop/*"),
    "pyarrow": (
        "distinput/arrow/adopt.py",
        "distinput/arrow/arrow.py",
        "distinput/arrow/arrow.py",
        "distinput/arrow/expression.py",
        "distinput/columns/column.py",
        "distinput/values/ragged_tensor.py",
        "distinput/arrow/record_batches.py",
        "distinput/arrow/tabular.py",
        "distinput/arrow/tabular.py",
        "distinput/arrow/validity.py",
        "distinput/arrow/record_batches.py",
        "distinput/data/export.py",
        "distinput/files/*",
        "distinput/formats/*",
        "distinput/inspect/columns.py",
        "distinput/inspect/records.py",
        "distinput/inspect/columns.py",
        "distinput/inspect/verification.py",
        "distinput/interop/*",
        "distinput/ops/tables.py",
        "distinput/ops/tables.py",
        "distinput/ops/tables.py",
        "distinput/testing/judge/loaders/libraries.py",
        "distinput/testing/sources/tables.py",
        "distinput/writers/*",
    ),
    "pytest": ("distinput/testing/*",),
    "pyiceberg": ("distinput/interop/tables.py",),
    "simplejpeg": ("distinput/decoders/image.py",),
    "ray": (
        "distinput/cluster/*",
        "distinput/distribute/seats/*",
        "distinput/interop/ray.py",
        "distinput/testing/judge/loaders/*",
    ),
    "streaming": ("distinput/testing/judge/loaders/*",),
    "torch": (
        "distinput/cluster/*",
        "distinput/distribute/engines/*",
        "distinput/distribute/devices/*",
        "distinput/interop/*",
        "distinput/testing/judge/loaders/*",  # the loaders of others, to be judged
    ),
    "tensorflow": ("distinput/testing/judge/loaders/libraries.py",),  # to be judged; nothing else ever imports it
    "torchcodec": ("distinput/formats/media.py",),
    "torchdata": ("distinput/testing/judge/loaders/*",),
    "webdataset": ("distinput/testing/judge/loaders/*",),
    "opentelemetry": ("distinput/reports/opentelemetry.py",),
    "rich": ("distinput/cli/*", "distinput/data/progress.py"),
    "tqdm": ("distinput/cli/*", "distinput/data/progress.py"),
    "transformers": ("distinput/interop/torch/trainer_feed.py",),  # in a Trainer that runs, which has loaded it
    "typing_extensions": (
        "distinput/data/iterator.py",
        "distinput/train/manager.py",
    ),  # read by type checkers alone, which bring it along
}


def room(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def problems(source: str, module: str, file: str, known: Collection[str]) -> list[str]:
    """What is wrong with the imports of one file of the package."""
    if room(module) not in FLOORS:
        return [f"{file}: `{room(module)}` is on no floor; give it one in FLOORS"]
    found = []
    names = lazy_names(source)
    for item in imports(source, module, file.endswith("__init__.py"), known):
        top = item.name.split(".")[0]
        where = f"{file}:{item.line}"
        if top == "distinput":
            if item.line not in names:
                found += [f"{where}: {text}" for text in _own(module, item.name)]
            if item.function is not None:
                found.append(
                    f"{where}: `{item.name}` is imported inside `{item.function}`; it belongs at the top, "
                    "or in `names.lazy.later`"
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


def test_imports_go_down() -> None:
    wrong = []
    for file in FILES:
        name = file.relative_to(ROOT).as_posix()
        found = problems(file.read_text(encoding="utf-8"), module_name(file, ROOT), name, KNOWN)
        wrong += [f"{name}: {problem}" for problem in found]
    assert wrong == []


@pytest.mark.parametrize(
    "module, source, says",
    [
        ("distinput.values.nest", "from distinput.ops.map import Map", "is up"),
        ("distinput.values.nest", "def f():\n    from distinput.values import spec", "inside `f`"),
        ("distinput.values.nest", "import fsspec", "may be imported only in distinput/files"),
        ("distinput.values.nest", "def f():\n    import numba.core", "may be imported only in distinput/kernels"),
        ("distinput.values.nest", "import sklearn", "not among the packages"),
        ("distinput.values.nest", "import distinput", "is up"),
        ("distinput.values.nest", "from .. import ops", "is up"),
        ("distinput.values.nest", "from importlib import import_module\nimport_module('distinput.ops')", "is up"),
        ("distinput.values.nest", "from distinput import elsewhere", "is up"),
        ("distinput.formats.text", "from distinput.functions import workers", "is sideways"),
        ("distinput.helpers.text", "", "on no floor"),
        ("distinput.distribute.input.distribution", "import torch", "may be imported only in"),
    ],
)
def test_a_wrong_import_is_seen(module: str, source: str, says: str) -> None:
    known = {"distinput.ops", "distinput.functions.workers", "distinput.ops.map"}
    file = module.replace(".", "/") + ".py"
    assert any(says in problem for problem in problems(source, module, file, known))


@pytest.mark.parametrize(
    "module, source",
    [
        (
            "distinput.ops.map",
            "import json\nimport numpy as np\nfrom distinput.values import nest\nfrom distinput.errors import StateError",
        ),
        ("distinput.ops.map", "from distinput.ops.batch import Batch\nfrom . import batch"),
        ("distinput.kernels.row_loop", "def load():\n    import numba"),
        (
            "distinput.data",
            "\nif TYPE_CHECKING:\n    from distinput.tf import a as a\nelse:\n    __getattr__, __dir__, __all__ = lazy()",
        ),
        ("distinput.distribute.engines.torch", "import torch.distributed"),
    ],
)
def test_a_right_import_passes(module: str, source: str) -> None:
    known = {"distinput.ops", "distinput.ops.batch", "distinput.values.nest"}
    assert problems(source, module, module.replace(".", "/") + ".py", known) == []


def test_every_exception_has_a_reason() -> None:
    assert all(reason.strip() for reason in ALLOWED.values())
    assert all(here in FLOORS and there in FLOORS for here, there in ALLOWED)
