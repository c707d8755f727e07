# SPDX-License-Identifier: Apache-2.0
"""`import distinput` and a first batch are light: what is heavy, or may be missing, is loaded when it is first needed."""

import inspect
import subprocess
import sys
from collections.abc import Callable
from importlib import import_module
from pathlib import Path

import pytest

import distinput as di
from distinput.data.dataset import transformation
from distinput.names.lazy import lazy
from distinput.ops.take import Take
from distinput.plan.node import Node
from tests.house.import_time import Loaded, load_elsewhere

pytestmark = pytest.mark.fresh_process

# fsspec itself may be loaded (it is small); its remote parts, and these, may not.
HEAVY = (
    "dask",
    "distributed",
    "fsspec.implementations",
    "hypothesis",
    "jax",
    "llvmlite",
    "mpi4py",
    "numba",
    "pyarrow.dataset",
    "pytest",
    "ray",
    "tensorflow",
    "torch",
    "tqdm",
)


# What a first batch of what is in memory has no use for.
UNUSED = (
    "base64",
    "concurrent.futures",
    "distinput.arrow.arrow",
    "distinput.arrow.tabular",
    "distinput.columns.picked",
    "distinput.data.loader",
    "distinput.data.seal",
    "distinput.data.stats",
    "distinput.distribute",
    "distinput.functions",
    "distinput.kernels.spans",
    "distinput.names.words",
    "distinput.plan.batch_sizes",
    "distinput.plan.code",
    "distinput.plan.fingerprint",
    "distinput.plan.options",
    "distinput.url_secrets",
    "distinput.values.nullable",
    "distinput.values.ragged_rows",
    "distinput.values.ragged_tensor",
    "distinput.values.sparse_tensor",
    "fsspec",
    "hashlib",
    "logging",
    "multiprocessing",
    "numpy.typing",
    "pathlib",
    "pyarrow",
    "queue",
    "socket",
    "zlib",
)

# What `map` calls elsewhere, draws or leaves out with, and what workers compare.
UNUSED_BY_MAP = (
    "concurrent.futures",
    "distinput.functions.compiled",
    "distinput.functions.workers",
    "distinput.ops.on_error",
    "distinput.plan.code",
    "distinput.plan.options",
    "distinput.run.processes",
    "hashlib",
    "json",
    "logging",
    "numpy.random",
    "socket",
)

FUNCTION_BATCH = """
import sys
import numpy
import distinput as di
next(iter(di.data.Dataset.from_tensor_slices([1, 2, 3]).map(lambda x: x + 1).batch(2)))
print(*sys.modules)
"""

STRATEGY_BATCH = """
import sys
import numpy
import distinput as di
strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
step = next(iter(strategy.experimental_distribute_dataset(di.data.Dataset.range(10).batch(4))))
strategy.reduce("SUM", strategy.run(lambda batch: batch, args=(step,)), axis=0)
print(*sys.modules)
"""
UNUSED_BY_STRATEGY = (
    "concurrent.futures",
    "decimal",
    "distinput.columns.python_values",
    "distinput.columns.sparse_rows",
    "distinput.data.seal",
    "distinput.distribute.collectives",
    "distinput.distribute.input.comparison",
    "distinput.functions",
    "distinput.kernels.spans",
    "distinput.names.words",
    "distinput.ops.map",
    "distinput.ops.shuffle",
    "distinput.plan.code",
    "distinput.plan.fingerprint",
    "distinput.values.nullable",
    "distinput.values.ragged_tensor",
    "distinput.values.sparse_tensor",
    "fractions",
    "hashlib",
    "json",
    "logging",
    "numpy.random",
    "numpy.typing",
    "socket",
    "sysconfig",
)

FILE_BATCH = """
import sys
import numpy
import distinput as di
next(iter(di.data.TFRecordDataset(sys.argv[1]).batch(2)))
print(*sys.modules)
"""
UNUSED_BY_FILES = (
    "fsspec",
    "hashlib",
    "json",
    "logging",
    "lzma",
    "numpy.random",
    "numpy.typing",
    "pathlib",
    "pyarrow",
    "random",
    "shutil",
    "socket",
    "tempfile",
    "urllib.parse",
    "uuid",
    "zipfile",
)

MOST_MODULES = 44
"""Modules, of ours and of others, that a first batch may load after NumPy; each costs about 0.2 ms, with its classes."""
USED = ("batch", "slices")

# A pipeline for each rule, in which it fires; in an order in which the op that a rule is about is new where that can be.
RULES_FIRE = """
import tempfile
from pathlib import Path

from pyarrow.compute import field

import distinput as di
from distinput.rewrite.rules import FIRST, RULES, rewrite

ds = di.data.Dataset.from_tensor_slices(list(range(8)))
pipelines = {
    "shard_of_one": lambda: ds.shard(1, 0),
    "own_shares": lambda: ds.batch(4).shard_batches(2, 0),
    "batch_then_unbatch": lambda: ds.batch(2, drop_remainder=False).unbatch(),
    "part_of_range": lambda: di.data.Dataset.range(8).take(3),
    "take_everything": lambda: ds.take(-1),
    "take_of_take": lambda: ds.repeat(2).take(3).take(2),
    "skip_before_take": lambda: ds.repeat(2).take(3).skip(2),
    "skip_nothing": lambda: ds.skip(0),
    "skip_of_skip": lambda: ds.repeat(2).skip(1).skip(2),
    "concatenate_of_slices": lambda: ds.concatenate(ds),
    "balanced_concatenations": lambda: chain(),
    "zip_of_zip": lambda: ds.enumerate().enumerate(),
    "shuffle_of_one": lambda: ds.shuffle(1),
    "read_for_batches": lambda: ds.shuffle(4).batch(2),
    "prefetch_of_views": lambda: ds.prefetch(1),
    "prefetch_of_prefetch": lambda: ds.map(abs).prefetch(1).prefetch(2),
    "map_of_map": lambda: ds.map(abs).map(abs),
    "map_rows_of_map_rows": lambda: ds.map_rows(abs).map_rows(abs),
    "call_after_global_shuffle": lambda: ds.map(abs).global_shuffle(),
    "call_after_shuffle": lambda: ds.map(abs).shuffle(3),
    "read_after_shuffle": lambda: di.data.Dataset.from_source([1, 2]).global_shuffle(),
    "select_in_files": lambda: rows().select(["x"]),
    "select_in_made": lambda: ds.flat_map(lambda x: rows()).select(["x"]),
    "select_before_filter": lambda: rows().filter(field("x") > 0).select(["x"]),
    "select_before_order": lambda: rows().shuffle(2).select(["x"]),
    "select_before_handing_out": lambda: rows().as_text().select(["x"]),
    "filter_before_handing_out": lambda: rows().as_text().filter(field("x") > 0),
    "filter_in_files": lambda: rows().filter(field("x") > 0),
}
path = str(Path(tempfile.mkdtemp()) / "a.parquet")
di.io.write_parquet(path, {"x": [1, 2], "y": [3, 4]})

def rows():
    return di.data.ParquetDataset(path)

def chain():
    made = ds
    for _ in range(40):
        made = made.concatenate(ds)
    return made

for name, make in pipelines.items():
    fired = rewrite(make().node)[1]
    assert name in fired, (name, fired)
assert pipelines.keys() == {rule.__name__ for rule in (*FIRST, *RULES)}
"""


@pytest.fixture(scope="module")
def loaded() -> Loaded:
    return load_elsewhere()


@pytest.mark.parametrize("name", HEAVY)
def test_import_leaves_it_alone(name: str, loaded: Loaded) -> None:
    assert _below(name, loaded["modules"]) == []


@pytest.mark.parametrize("name", UNUSED)
def test_a_first_batch_leaves_it_alone(name: str, loaded: Loaded) -> None:
    assert _below(name, loaded["batch"]) == []


def test_a_first_batch_loads_the_ops_it_is_made_of(loaded: Loaded) -> None:
    wanted = ["distinput.ops", *[f"distinput.ops.{name}" for name in USED]]
    assert _below("distinput.ops", loaded["batch"]) == wanted
    assert _below("distinput.formats", loaded["batch"]) == []


def test_a_first_batch_loads_few_modules(loaded: Loaded) -> None:
    found = sorted(set(loaded["batch"]) - set(loaded["numpy"]))
    assert len(found) <= MOST_MODULES, found


@pytest.mark.parametrize("program, unused", [(FUNCTION_BATCH, UNUSED_BY_MAP), (STRATEGY_BATCH, UNUSED_BY_STRATEGY)])
def test_a_first_batch_of_a_job_leaves_them_alone(program: str, unused: tuple[str, ...]) -> None:
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    modules = run.stdout.split()
    assert [name for name in unused if _below(name, modules)] == []


def test_a_first_batch_of_a_file_leaves_them_alone(tmp_path: Path) -> None:
    file = str(tmp_path / "a.tfrecord")
    with di.io.TFRecordWriter(file) as writer:
        writer.write(b"a record")
    program = [sys.executable, "-c", FILE_BATCH, file]
    run = subprocess.run(program, capture_output=True, text=True, check=True, timeout=300)
    assert [name for name in UNUSED_BY_FILES if _below(name, run.stdout.split())] == []


def test_rules_are_loaded_with_the_ops_they_are_about() -> None:
    run = subprocess.run([sys.executable, "-c", RULES_FIRE], capture_output=True, text=True, check=False, timeout=300)
    assert run.returncode == 0, run.stderr


@pytest.mark.parametrize("room", ["distinput.data", "distinput.formats", "distinput.io", "distinput.ops"])
def test_a_name_that_is_not_there_is_an_attribute_error(room: str) -> None:
    with pytest.raises(AttributeError, match=f"module '{room}' has no attribute 'nowhere'"):
        import_module(room).nowhere  # noqa: B018 - asked for to be refused


def test_what_fails_in_a_file_is_not_taken_for_its_absence(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "some_room").mkdir()
    (tmp_path / "some_room" / "__init__.py").write_text("")
    (tmp_path / "some_room" / "broken.py").write_text("import no_such_package")
    monkeypatch.syspath_prepend(tmp_path)
    load, _, _ = lazy(import_module("some_room").__name__)
    with pytest.raises(ModuleNotFoundError, match="no_such_package"):
        load("broken")


def test_a_method_is_made_of_its_op_when_it_is_first_named() -> None:
    named: list[str] = []

    def load() -> Callable[[Node, int], Node]:
        named.append("take")
        return Take

    class Handle(di.data.Dataset):
        first = transformation(load)

    calls: list[int] = []

    class Heir(Handle):
        def first(self, count: int) -> di.data.Dataset:
            calls.append(count)
            made: di.data.Dataset = super().first(count)
            return made

    assert named == []
    assert Heir(di.data.Dataset.range(5).node).first(2).to_list() == [0, 1]
    assert (named, calls) == (["take"], [2])
    method = Handle.first
    assert Handle.first is method
    assert named == ["take"]
    assert (method.__name__, method.__qualname__, method.__doc__) == ("first", "Dataset.first", Take.__doc__)
    assert str(inspect.signature(method)).startswith("(self, count: int")
    assert Handle(di.data.Dataset.range(5).node).first(2).to_list() == [0, 1]


def _below(name: str, modules: list[str]) -> list[str]:
    return [module for module in modules if module == name or module.startswith(f"{name}.")]


def test_the_figure_is_printed() -> None:
    script = Path(__file__).parent / "import_time.py"
    run = subprocess.run(
        [sys.executable, script, "--runs", "1"], capture_output=True, text=True, check=True, timeout=300
    )
    assert "ms more" in run.stdout


def test_nothing_starts_at_import() -> None:
    program = "import threading, distinput; print(threading.active_count())"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert run.stdout.strip() == "1"
