# SPDX-License-Identifier: Apache-2.0
"""`pytest --judge MODULE:FUNCTION`: the laws of loaders as tests.

pytest imports this file in every run where distinput is installed, so it imports nothing: what judges is loaded when it is
asked for. It stands outside of the package for the same reason.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import pytest


def pytest_addoption(parser: "pytest.Parser") -> None:
    """The words of `--judge`."""
    group = parser.getgroup("judge", "laws of loaders (distinput)")
    group.addoption(
        "--judge",
        action="append",
        default=[],
        metavar="MODULE:FUNCTION",
        help="judge the loader that this function makes, each law as a test; without files to test, nothing else is run",
    )
    group.addoption("--judge-records", type=int, default=97, metavar="N", help="how many records it has (97)")
    group.addoption("--judge-ranks", default="1,2,3,4", metavar="N,...", help="numbers of ranks to try (1,2,3,4)")
    group.addoption("--judge-batch", type=int, default=4, metavar="N", help="rows of a rank in a step (4)")
    group.addoption("--judge-workers", default="", metavar="N,...", help="numbers of workers of a rank to try (none)")
    group.addoption("--judge-patience", type=float, default=60.0, metavar="S", help="seconds for one step (60)")
    how = "how the ranks of a job are played: in turn, processes or threads (in turn)"
    group.addoption("--judge-play", default="in turn", metavar="HOW", help=how)
    group.addoption("--judge-report", metavar="FILE", help="write the reports too: .html, .json, .md or .txt")


def pytest_configure(config: "pytest.Config") -> None:
    """Load what judges, if it was asked for."""
    if config.getoption("judge"):
        from distinput.testing.judge.pytest_laws import PytestLaws

        config.pluginmanager.register(PytestLaws(config), "distinput-judge")
