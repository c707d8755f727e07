# SPDX-License-Identifier: Apache-2.0
"""Where tests and docstring examples run, what examples may use, and what is left out where a package is not installed."""

import gc
import importlib.util
import os
import re
import signal
from collections import Counter, defaultdict
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import Any
from zlib import crc32

import pytest
from _pytest.doctest import DoctestModule

# JAX reads this once, before its first computation: eight virtual devices on any machine.
_EIGHT = "--xla_force_host_platform_device_count=8"
if "xla_force_host_platform_device_count" not in os.environ.get("XLA_FLAGS", ""):
    os.environ["XLA_FLAGS"] = f"{os.environ.get('XLA_FLAGS', '')} {_EIGHT}".strip()

# Dask's own 30 s are too few for a process that shares its core with many; nobody starts a worker again whose nanny gave up.
os.environ.setdefault("DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT", "120s")
# Their workers are forked from a process that has loaded Dask, which else takes seconds of a core for each.
if os.environ.get("DISTINPUT_TESTS") != "deep":
    os.environ.setdefault("DASK_DISTRIBUTED__WORKER__MULTIPROCESSING_METHOD", "forkserver")

# Packages that distinput works without. `make test` installs them, but for LitData, Ray and TensorFlow; `make test-core` none.
# fmt: off
_OPTIONAL = [
    "PIL", "accelerate", "aiohttp", "array_record", "av", "cloudpickle", "cryptography", "dask", "datasets", "deltalake",
    "distributed", "duckdb", "flask_cors", "flax", "google_crc32c", "grain", "jax", "keras", "lance", "lightning", "litdata",
    "loky", "megatron", "ml_dtypes", "moto", "mpi4py", "obstore", "opentelemetry", "orbax", "pandas", "polars", "pyiceberg",
    "ray", "rich", "simplejpeg", "tensorflow", "torch", "torchdata", "torchtitan", "tqdm", "transformers", "webdataset", "z3",
    "zensical",
]
# fmt: on
_MISSING = frozenset(name for name in _OPTIONAL if importlib.util.find_spec(name) is None)
_IMPORTED = re.compile(r"^(?:(?:try|with importing\([\s\S]*?\)):\n    )?(?:import|from) +(\w+)", re.MULTILINE)
# What an example calls that loads an optional package itself.
_CALLED = {
    "Pickled(": "cloudpickle",
    "RangeServer(": "aiohttp",
    "TPUStrategy(": "jax",
    "decode_image(": "PIL",
    "from_hf(": "datasets",
    "image_folder(": "PIL",
    "ImageFolderDataset(": "PIL",
    "to_hf(": "datasets",
    "to_pandas(": "pandas",
    "to_polars(": "polars",
}
_TESTS = Path(__file__).parent / "tests"
_LEFT_OUT = pytest.StashKey[Counter[str]]()

# They import Keras, of which a process has one backend: tests run them in processes of their own.
collect_ignore = ["distinput/interop/keras.py", "tests/interop/keras_loops.py"]
# They are for suites of others, which import them, and import what these need.
collect_ignore += ["tests/outside/dlio_entrant.py", "tests/outside/lance_entrant.py"]
if "jax" in _MISSING:  # most modules of this package import it, the others import these
    collect_ignore += ["distinput/distribute/tpu"]
collect_ignore_glob = ["tests/proofs/[!t]*.py", "tests/proofs/theorems.py"] if "z3" in _MISSING else []  # the same


def pytest_addoption(parser: pytest.Parser) -> None:
    """Know the setting `timeout` also where pytest-timeout, which reads it, is not installed."""
    if importlib.util.find_spec("pytest_timeout") is None:
        parser.addini("timeout", "seconds that a test may take (pytest-timeout)")


def pytest_configure(config: pytest.Config) -> None:
    """Begin to count what is left out, and let interrupts through, which a shell has ignored by what it starts behind `&`."""
    config.stash[_LEFT_OUT] = Counter()
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


_PART, _PARTS = map(int, os.environ.get("DISTINPUT_TESTS_PART", "0/1").split("/"))
"""Which of several processes this is; each has other files (tests/in_parts.py)."""


_MOST_CASES = int(os.environ.get("DISTINPUT_TESTS_CASES", "0"))
"""Cases of one test that are tried; 0: all. `make test` tries them all, and one shows what a missing package changes."""


def _leave_out_cases(items: list[pytest.Item]) -> None:
    """Keep of a test with many parameters the first case, and as many others as may be, far apart."""
    cases: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        cases[item.nodeid.partition("[")[0]].append(item)
    kept = {id(item) for of_one in cases.values() for item in of_one[:: -(-len(of_one) // _MOST_CASES)]}
    left_out = [item for item in items if id(item) not in kept]
    items[:] = [item for item in items if id(item) in kept]
    if left_out:
        left_out[0].config.hook.pytest_deselected(items=left_out)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out a module, or a package, that imports at its top what is not installed, and files of other processes."""
    if (
        collection_path.is_file()
        and crc32(str(collection_path.relative_to(config.rootpath)).encode()) % _PARTS != _PART
    ):
        return True
    module = collection_path / "__init__.py" if collection_path.is_dir() else collection_path
    if not _MISSING or module.suffix != ".py" or not module.exists():
        return None
    missing = _MISSING.intersection(_IMPORTED.findall(module.read_text("utf-8")))
    config.stash[_LEFT_OUT].update(missing)
    return True if missing else None


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without collecting garbage: what is made now stays, and each look through all of it takes a second."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


_NUMBER = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
_COUNT = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """Collect the rooms in each process of a run from another one on: the asserts that one has rewritten the others read."""
    report = yield
    if collector.path == _TESTS and (rooms := report.result):
        first = len(rooms) * _NUMBER // _COUNT
        report.result = rooms[first:] + rooms[:first]
    return report


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for examples in the package, and in files of tests that have some: to look takes as long as to collect tests."""
    made = yield
    if file_path.is_relative_to(_TESTS) and b">>> " not in file_path.read_bytes():
        return [collector for collector in made if not isinstance(collector, DoctestModule)]
    return made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Begin with the files that have long tests; skip what needs a package that is not installed.

    That is a test whose mark `needs` names one, and an example that imports one.
    """
    if _MOST_CASES:
        _leave_out_cases(items)
    long = {item.path for item in items if item.get_closest_marker("slow") is not None}
    # All processes of a run must have the same order, wherever each began.
    depth = len(_TESTS.parts) + 1 if _COUNT > 1 else 0
    items.sort(key=lambda item: (item.path not in long, item.path.parts[:depth]))
    for item in items if _MISSING else ():
        needed = {name for mark in item.iter_markers("needs") for name in mark.args}
        if isinstance(item, pytest.DoctestItem) and item.dtest is not None:
            source = "".join(example.source for example in item.dtest.examples)
            needed.update(_IMPORTED.findall(source), (name for call, name in _CALLED.items() if call in source))
        for name in sorted(needed & _MISSING):
            item.add_marker(pytest.mark.skip(f"{name} is not installed: make test"))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say how many modules and packages were left out, and for want of what."""
    for name, count in sorted(config.stash[_LEFT_OUT].items()):
        terminalreporter.write_line(f"left out, since they need {name}: {count} modules and packages")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """What a test or an example registers is unknown to the next one. No fixture: it costs as much as a short test."""
    from distinput.data.dataset import Dataset
    from distinput.data.registration import OPS
    from distinput.distribute.devices import BACKENDS
    from distinput.distribute.engines import ENGINES
    from distinput.distribute.seats import SEATS
    from distinput.formats import FORMATS
    from distinput.names.lazy import Registry
    from distinput.rewrite.rules import FIRST, RULES
    from distinput.sharding.policies import POLICIES

    tables: list[Registry[Any]] = [BACKENDS, ENGINES, FORMATS, SEATS, OPS]
    known = [dict(table._known) for table in tables]
    rules, policies = (list(FIRST), list(RULES)), dict(POLICIES)
    try:
        return (yield)
    finally:
        for name in set(OPS) - set(known[-1]):
            delattr(Dataset, name)
        for table, names in zip(tables, known, strict=True):
            table._known = names
        FIRST[:], RULES[:] = rules
        for policy in set(POLICIES) - set(policies):
            del POLICIES[policy]


@pytest.fixture
def doctest_namespace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What a docstring example has: `distinput`, `di`, `np`, and an empty folder to write to."""
    import numpy as np

    import distinput

    monkeypatch.chdir(tmp_path)
    return {"distinput": distinput, "di": distinput, "np": np}
