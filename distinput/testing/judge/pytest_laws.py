# SPDX-License-Identifier: Apache-2.0
"""The laws of loaders as tests of pytest; `pytest_distinput` loads this for `pytest --judge`."""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from distinput.testing.judge.command import numbers_in
from distinput.testing.judge.judging import begin, ruling
from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.loaders.known import made
from distinput.testing.judge.report import SUFFIXES, WRITERS, JudgeReport, Ruling, Verdict, write_reports
from distinput.testing.judge.trial import Trial


class _Broken(Exception):
    """A law is broken."""


class _Law(pytest.Item):
    """One law for one loader."""

    def __init__(self, *, law: str, loader: str, found: "PytestLaws", **named: Any) -> None:
        super().__init__(**named)
        self._law, self._loader, self._found = law, loader, found

    def runtest(self) -> None:
        """Judge it: a broken law fails, one that does not apply or that the loader refuses is skipped."""
        finding = self._found.judged(self._loader, self._law)
        told = {"loader": self._loader, "jobs": self._found.jobs(self._loader), **finding.to_json()}
        self.user_properties.append(("judge", json.dumps(told)))  # which comes from processes of pytest-xdist too
        if finding.verdict is Verdict.BROKEN:
            raise _Broken(f"{self._loader}: {self._law}: {finding.says}")
        if finding.verdict is not Verdict.KEPT:
            pytest.skip(f"{finding.verdict.value}: {finding.says}")

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """What was found, without the lines of the judge."""
        return str(excinfo.value) if isinstance(excinfo.value, _Broken) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int | None, str]:
        """Where pytest says that the test is."""
        return Path(self._loader), None, self.name


class PytestLaws:
    """Adds a test for each law and loader, and the reports at the end.

    Args:
      config: of pytest, with the words of `pytest_distinput`.
    """

    def __init__(self, config: pytest.Config) -> None:
        self._config = config
        self._trials: dict[str, Trial] = {}
        self._told: list[dict[str, Any]] = []
        report = config.getoption("judge_report")
        if report is not None and Path(report).suffix not in SUFFIXES:
            raise pytest.UsageError(f"--judge-report must end in {', '.join(SUFFIXES)}, got {report}")
        if config.args_source is not pytest.Config.ArgsSource.ARGS:
            config.args = []  # nothing is collected where no files were named

    def pytest_collection_modifyitems(self, session: pytest.Session, items: list[pytest.Item]) -> None:
        """Add the tests."""
        if os.getcwd() not in sys.path:
            sys.path.insert(0, os.getcwd())
        for loader in self._config.getoption("judge"):
            try:
                made(loader)
            except (ImportError, ValueError) as error:
                raise pytest.UsageError(f"--judge {loader}: {error}") from error
            for law in LAWS:
                word = law.replace(" ", "_")
                items.append(
                    _Law.from_parent(session, name=law, nodeid=f"{loader}::{word}", law=law, loader=loader, found=self)
                )

    def judged(self, loader: str, law: str) -> Ruling:
        """What a law says; the passes over a loader are shared by its laws."""
        if loader not in self._trials:
            option = self._config.getoption
            self._trials[loader] = begin(
                made(loader),
                option("judge_records"),
                ranks=numbers_in(option("judge_ranks")),
                batch=option("judge_batch"),
                workers=numbers_in(option("judge_workers")),
                patience=option("judge_patience"),
                play=option("judge_play"),
            )
        return ruling(self._trials[loader], law)

    def jobs(self, loader: str) -> list[str]:
        """What a loader is tried in."""
        return list(map(str, self._trials[loader].jobs))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a test has found."""
        if report.when == "call":
            self._told += [json.loads(str(value)) for name, value in report.user_properties if name == "judge"]

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the reports, and write them where that was asked for."""
        reports = list(self._reports())
        if not reports:
            return
        terminalreporter.section("judge of loaders")
        terminalreporter.write_line(WRITERS["text"](reports))
        path = self._config.getoption("judge_report")
        if path is not None:
            write_reports(path, reports)

    def _reports(self) -> Iterator[JudgeReport]:
        for loader in dict.fromkeys([each["loader"] for each in self._told]):
            of_loader = [each for each in self._told if each["loader"] == loader]
            told = sorted(of_loader, key=lambda each: list(LAWS).index(each["law"]))
            yield JudgeReport(loader, tuple(map(Ruling.from_json, told)), tuple(told[0]["jobs"]))
