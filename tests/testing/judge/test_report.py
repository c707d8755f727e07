# SPDX-License-Identifier: Apache-2.0
"""Reports, one by one."""

import json
from pathlib import Path

import pytest

from distinput.testing import judge
from distinput.testing.judge.report import SUFFIXES, JudgeReport, parsed, write_reports
from tests.testing.judge import toys


def _report() -> JudgeReport:
    return judge(toys.maker(toys.Unequal), 17, ranks=(1, 2), batch=4, laws=["exactly once", "equal steps", "workers"])


def test_a_report_says_each_law_in_a_line() -> None:
    assert str(_report()).splitlines() == [
        "unequal: 1 of 2 laws is broken",
        "  kept     exactly once  each record once; in 2 jobs",
        "  BROKEN   equal steps   17 records, 2 ranks, batches of 4: the ranks have [3, 2] steps",
        "  -        workers       make_loader takes no workers",
    ]


def test_a_report_comes_back_from_json() -> None:
    report = _report()
    (again,) = parsed(json.dumps([report.to_json()]))
    assert str(again) == str(report)
    assert again["equal steps"].figures == {
        "steps": [3, 2],
        "job": again["equal steps"].figures["job"],
        "jobs": 1,
        "of": 2,
    }
    assert parsed(json.dumps(report.to_json()))[0].broken == ("equal steps",)


@pytest.mark.parametrize("name", ["made.json", "made.1.json", "..json"])
def test_the_suffix_of_a_file_is_that_which_commands_check(name: str, tmp_path: Path) -> None:
    assert (tmp_path / name).suffix in SUFFIXES
    write_reports(str(tmp_path / name), [_report()])
    assert len(parsed((tmp_path / name).read_text("utf-8"))) == 1


def test_a_broken_law_is_an_error_for_those_who_check() -> None:
    with pytest.raises(AssertionError, match=r"the ranks have \[3, 2\] steps"):
        _report().check()
    judge(toys.maker(toys.Right), 17, ranks=2, laws=["exactly once"]).check()


def test_a_law_that_was_not_judged_is_named() -> None:
    with pytest.raises(KeyError, match="no finding of law 'restart'"):
        _report()["restart"]
