# SPDX-License-Identifier: Apache-2.0
"""How the tests run: the Hypothesis profiles, and what the last lines of a run say."""

import gc
import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Verbosity, settings

from distinput.run.threads import _open
from tests.depth import DEEP
from tests.golden.families import summary_lines
from tests.nursery import FORKED, restore_variables
from tests.temporary import remove_folders

# No deadline: on a shared machine a single example may wait for a core. The bounds keep the whole suite to minutes.
_SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
# The same commit always gives the same answer in CI; new examples are looked for by people, with "dev" and "thorough".
settings.register_profile("ci", max_examples=16, derandomize=True, **_SHARED)
settings.register_profile("dev", max_examples=16, **_SHARED)
# `make test-core` looks for what is wrong where packages are missing; the searches are those of `make test`.
settings.register_profile("core", max_examples=6, derandomize=True, **_SHARED)
settings.register_profile("thorough", max_examples=2000, **_SHARED)
settings.register_profile("debug", max_examples=10, verbosity=Verbosity.verbose, **_SHARED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


def pytest_sessionfinish() -> None:
    """Use the processes no more that have loaded what those of many tests need, and the folders that tests have made."""
    FORKED.close()
    remove_folders()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_protocol(item: pytest.Item) -> Iterator[None]:
    """Fork the processes that a test starts (tests/nursery.py), its fixtures included, unless it says that they must be new."""
    _quicken_collections()
    FORKED.on = not DEEP and item.get_closest_marker("fresh_process") is None
    loads = item.get_closest_marker("loads")
    FORKED.loads = loads.args[0] if loads else ""
    before = set(threading.enumerate())
    try:
        return (yield)
    finally:
        FORKED.on, FORKED.loads = False, ""
        restore_variables()
        _let_threads_end(before)


_FOR_YOUNG_ONES_TO_END = 0.02
_FOR_THREADS_TO_END = 1.0  # seconds for those that a test leaves; some are for all tests, and do not end


def _let_threads_end(before: set[threading.Thread]) -> None:
    """Wait for threads of this library that a test has left to end, which the next one would take for its own."""
    names = {each: each.name for each in set(threading.enumerate()) - before}
    left = [each for each, name in names.items() if name.startswith("distinput") and name != "distinput-kernels"]
    # What an iterator in a circle has begun ends with it. Most circles are young; a look at all objects costs 0.05 s of a core.
    for generation, seconds in (1, _FOR_YOUNG_ONES_TO_END), (2, _FOR_THREADS_TO_END):
        if left:
            gc.collect(generation)
        until = time.monotonic() + seconds
        for thread in set(left) - _serving():
            thread.join(max(0.0, until - time.monotonic()))
        left = [each for each in left if each.is_alive()]


def _serving() -> set[threading.Thread]:
    """The threads of replicas that are idle, and serve devices that something still holds, such as a cache of strategies."""
    held = [each for each in list(_open) if not each._ended and type(each).__name__ == "_IdleThreads"]
    return {member.thread for each in held for group in each.idle for member in group.members}  # type: ignore[attr-defined]


_MODULES_BETWEEN = 50
_modules = 0


def _quicken_collections() -> None:
    """Leave what modules have made out of garbage collections: with PyTorch, JAX and Keras loaded each takes half a second."""
    global _modules
    if len(sys.modules) >= _modules + _MODULES_BETWEEN:
        gc.collect()
        gc.freeze()
        gc.set_threshold(700, 10, 40)  # looks through all that tests have made cost as much as all others
        _modules = len(sys.modules)


# In this file, not in tests/golden: with pytest-xdist the process that prints the summary collects nothing itself, and
# so loads only the conftest files at the top of the test paths.
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of TensorFlow's golden answers is covered, what is not yet, and how jobs of several processes failed."""
    _engines_summary(terminalreporter)
    _hostile_summary(terminalreporter)
    outcomes = {
        name: sum(_is_golden(report) for report in terminalreporter.stats.get(name, []))
        for name in ("passed", "failed")
    }
    if any(outcomes.values()):
        terminalreporter.section("golden answers of TensorFlow")
        for line in summary_lines(Path(__file__).parent / "golden" / "public.jsonl", **outcomes):
            terminalreporter.write_line(line)


def _engines_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many faults were played on real processes, how long the others waited for the error, and what was left out."""
    stats = terminalreporter.stats
    reports = [report for name in ("passed", "failed", "skipped") for report in stats.get(name, [])]
    ours = [report for report in reports if "tests/engines/" in report.nodeid.replace("\\", "/")]
    if not ours:
        return
    terminalreporter.section("jobs of several processes")
    found: dict[str, list[float]] = {}
    for report in ours:
        if report.when == "call" and report.outcome == "passed":
            for name, value in report.user_properties:
                found.setdefault(name, []).append(float(value))
    says = {
        "fault": "workers died or failed: the others had their error {median:.2f} s later, at the latest {longest:.2f} s later",
        "late": "workers stood still for longer than the time-out: the others gave up {longest:.2f} s later at the latest",
        "job": "jobs of MPI lost a worker: mpiexec ended each, the longest took {longest:.2f} s from its start",
    }
    for name, text in says.items():
        if seconds := sorted(found.get(name, [])):
            figures = text.format(median=seconds[len(seconds) // 2], longest=seconds[-1])
            terminalreporter.write_line(f"engines: {len(seconds)} {figures}; none hung")
    left_out = Counter(str(report.longrepr[2]) for report in ours if report.outcome == "skipped")
    for why, count in sorted(left_out.items()):
        terminalreporter.write_line(f"engines: {count} tests left out: {why.removeprefix('Skipped: ')}")


def _hostile_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """How many hostile inputs were tried, of each kind."""
    tried: Counter[str] = Counter()
    for name in ("passed", "failed"):
        for report in terminalreporter.stats.get(name, []):
            if report.when == "call" and "tests/formats/hostile/" in report.nodeid.replace("\\", "/"):
                kind = report.nodeid.partition("[")[2].rstrip("]") or report.nodeid.rpartition("::test_")[2]
                counts = [value for key, value in report.user_properties if key == "tried"]
                tried.update({kind: sum(counts)} if counts else {})
    if tried:
        terminalreporter.section("hostile files")
        told = ", ".join(f"{kind} {count}" for kind, count in sorted(tried.items()))
        terminalreporter.write_line(f"hostile: {sum(tried.values())} inputs tried ({told})")


def _is_golden(report: object) -> bool:
    return getattr(report, "when", "") == "call" and "test_golden.py::test_case[" in getattr(report, "nodeid", "")
