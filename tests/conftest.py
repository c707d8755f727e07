# SPDX-License-Identifier: Apache-2.0
"""How the tests run: the Hypothesis profiles, and what the last lines of a run say."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Verbosity, settings

from tests.golden.families import summary_lines

# No deadline: on a shared machine a single example may wait for a core. The bounds keep the whole suite to minutes.
_SHARED = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "print_blob": True}
# The same commit always gives the same answer in CI; new examples are looked for by people, with "dev" and "thorough".
settings.register_profile("ci", max_examples=40, derandomize=True, **_SHARED)
settings.register_profile("dev", max_examples=25, **_SHARED)
settings.register_profile("thorough", max_examples=2000, **_SHARED)
settings.register_profile("debug", max_examples=10, verbosity=Verbosity.verbose, **_SHARED)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "ci" if os.environ.get("CI") else "dev"))


# In this file, not in tests/golden: with pytest-xdist the process that prints the summary collects nothing itself, and
# so loads only the conftest files at the top of the test paths.
def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say how much of TensorFlow's golden answers is covered, and what is not yet."""
    outcomes = {
        name: sum(_is_golden(report) for report in terminalreporter.stats.get(name, []))
        for name in ("passed", "failed")
    }
    if any(outcomes.values()):
        terminalreporter.section("golden answers of TensorFlow")
        for line in summary_lines(Path(__file__).parent / "golden" / "public.jsonl", **outcomes):
            terminalreporter.write_line(line)


def _is_golden(report: object) -> bool:
    return getattr(report, "when", "") == "call" and "test_golden.py::test_case[" in getattr(report, "nodeid", "")
