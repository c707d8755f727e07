# SPDX-License-Identifier: Apache-2.0
"""The page of conformance has all loaders and laws, and says what judging gives; loaders that are quick are judged again."""

import importlib.util
import re
from importlib.metadata import version
from pathlib import Path
from types import ModuleType

import pytest

from distinput.testing.judge.laws import LAWS
from distinput.testing.judge.loaders import LOADERS
from distinput.testing.judge.loaders.known import CASES, Known
from distinput.testing.judge.report import WORDS

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "conformance.md").read_text(encoding="utf-8")
QUICK = ("exactly once", "equal steps", "partial batches")


@pytest.fixture(scope="module")
def script() -> ModuleType:
    """docs/make_conformance.py, which is a script and not part of a package."""
    spec = importlib.util.spec_from_file_location("make_conformance", ROOT / "docs" / "make_conformance.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def plain(text: str) -> list[list[str]]:
    """The rows of tables, without their links."""
    lines = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| ")]
    return [[re.sub(r"^\[(.*)\]\([\w./-]*#\S+\)$", r"\1", cell) for cell in line] for line in lines]


def rows() -> dict[str, list[str]]:
    """The verdicts of each loader, by its name."""
    lines = plain(PAGE)
    table = lines[: next(number for number, line in enumerate(lines) if line[0] == "reported")]
    assert table[0] == ["loader", *LAWS]
    return {name: verdicts for name, *verdicts in table[1:]}


def test_the_page_has_all_loaders_and_laws(script: ModuleType) -> None:
    assert list(rows()) == [known.name for known in LOADERS]
    assert set(script.SAYS) == set(LAWS)
    assert all(f"### {known.name}\n" in PAGE for known in LOADERS)
    assert all(f"| {case.about} |" in PAGE for case in CASES.values())


@pytest.mark.parametrize("known", [LOADERS[0], LOADERS[3]], ids=lambda known: known.name)
def test_the_page_says_what_judging_gives(known: Known) -> None:
    for package in known.missing:
        pytest.importorskip(package, reason=f"{package} is not installed")
    if known is LOADERS[3] and f"torch {version('torch').partition('+')[0]}" not in PAGE:
        pytest.skip("another version of torch")
    report = known.judge(QUICK)
    said = dict(zip(LAWS, rows()[known.name], strict=True))
    assert [WORDS[report[law].verdict] for law in QUICK] == [said[law] for law in QUICK]


def test_our_loaders_keep_what_they_offer() -> None:
    for name, verdicts in rows().items():
        assert not name.startswith("distinput") or set(verdicts) <= {"kept", "–"}  # noqa: RUF001


def test_the_page_about_workers_that_die_says_the_same_and_leads_there(script: ModuleType) -> None:
    (_, *laws), *told = plain(script.DEATHS.read_text("utf-8"))
    assert laws == [*script.OF_DEATHS]
    places = [list(LAWS).index(law) for law in laws]
    assert told == [[name, *[verdicts[place] for place in places]] for name, verdicts in rows().items()]


def test_the_page_that_compares_says_the_same() -> None:
    (_, *loaders), *told = [
        row for row in plain((ROOT / "docs" / "why.md").read_text("utf-8")) if len(row) > len(QUICK)
    ]
    places = [list(LAWS).index(row[0].partition(":")[0]) for row in told]
    assert [row[1:] for row in told] == [[rows()[loader][place] for loader in loaders] for place in places]
    assert len(told) == 5


def test_a_killed_input_worker_costs_us_nothing_and_rows_of_others_stay() -> None:
    spec = importlib.util.spec_from_file_location("make_killed_worker", ROOT / "docs" / "make_killed_worker.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    ours, *others = module.SERVICES
    lines = {
        name: next(line for line in PAGE.splitlines() if line.startswith(f"| {name} |")) for name in (ours, *others)
    }
    assert lines[ours].endswith("| 0 | 0 | exact | as without it |")
    assert PAGE.endswith(module.section(PAGE, {ours: lines[ours] + "\n"}))
