# SPDX-License-Identifier: Apache-2.0
"""What the judge says: findings, a report, and tables of reports."""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from enum import Enum
from pathlib import PurePath
from types import MappingProxyType
from typing import Any

from distinput.files.sink import Sink
from distinput.names.lazy import dataclass
from distinput.reports.markup import Markup, tag

# ----------------------------------------------------------------------------
# What a law says about a loader.
# ----------------------------------------------------------------------------


class Verdict(Enum):
    """What became of a law.

    Attributes:
      KEPT: in every job that was tried.
      REFUSED: in some job the loader raised an error before it delivered anything; where it went on, the law is kept.
      BROKEN: in some job.
      NOT_JUDGED: the loader does not offer what the law is about.
    """

    KEPT = "kept"
    REFUSED = "refused"
    BROKEN = "broken"
    NOT_JUDGED = "not judged"


@dataclass(frozen=True)
class Ruling:
    """What one law says.

    Args:
      verdict: the verdict.
      says: one line: what was found, and in which job.
      figures: numbers of the same, JSON values.
      law: its name, given by the judge.
    """

    verdict: Verdict
    says: str
    figures: Mapping[str, Any] = field(default_factory=dict)
    law: str = ""

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {"law": self.law, "verdict": self.verdict.value, "says": self.says, "figures": dict(self.figures)}

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "Ruling":
        """What `to_json` gave."""
        return Ruling(Verdict(value["verdict"]), value["says"], value["figures"], value["law"])


def kept(says: str, **figures: Any) -> Ruling:
    """The law is kept."""
    return Ruling(Verdict.KEPT, says, figures)


def broken(says: str, **figures: Any) -> Ruling:
    """The law is broken."""
    return Ruling(Verdict.BROKEN, says, figures)


def refused(says: str, **figures: Any) -> Ruling:
    """The loader says that it cannot do this."""
    return Ruling(Verdict.REFUSED, says, figures)


def not_judged(says: str) -> Ruling:
    """The law does not apply."""
    return Ruling(Verdict.NOT_JUDGED, says)


# ----------------------------------------------------------------------------
# The report about one loader.
# ----------------------------------------------------------------------------


_MARKS = {Verdict.KEPT: "kept", Verdict.REFUSED: "refused", Verdict.BROKEN: "BROKEN", Verdict.NOT_JUDGED: "-"}


@dataclass(frozen=True)
class JudgeReport:
    """What the laws say about a loader.

    Args:
      name: of the loader.
      findings: one for each law, in order.
      jobs: what it was tried in, in words.
      versions: of the packages that it needs.
      seconds: how long the trial took.

    >>> from distinput.testing.judge.report import Ruling, Verdict
    >>> report = JudgeReport("mine", (Ruling(Verdict.BROKEN, "2 lost (8, 9)", {"lost": 2}, "exactly once"),))
    >>> report.ok, report["exactly once"].figures["lost"]
    (False, 2)
    >>> print(report)
    mine: 1 of 1 laws is broken
      BROKEN   exactly once  2 lost (8, 9)
    """

    name: str
    findings: tuple[Ruling, ...]
    jobs: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict)
    seconds: float = 0.0

    def __getitem__(self, law: str) -> Ruling:
        """The finding of a law.

        Raises:
          KeyError: it was not judged in this trial at all.
        """
        of_law = {each.law: each for each in self.findings}
        if law not in of_law:
            raise KeyError(f"judge: no finding of law {law!r}; there are {', '.join(of_law)}")
        return of_law[law]

    def _with(self, *verdicts: Verdict) -> tuple[str, ...]:
        return tuple([each.law for each in self.findings if each.verdict in verdicts])

    @property
    def broken(self) -> tuple[str, ...]:
        """The laws that are broken."""
        return self._with(Verdict.BROKEN)

    @property
    def kept(self) -> tuple[str, ...]:
        """The laws that are kept in all jobs."""
        return self._with(Verdict.KEPT)

    @property
    def refused(self) -> tuple[str, ...]:
        """The laws in a job of which the loader raised an error before it delivered anything."""
        return self._with(Verdict.REFUSED)

    @property
    def not_judged(self) -> tuple[str, ...]:
        """The laws about what the loader does not offer."""
        return self._with(Verdict.NOT_JUDGED)

    @property
    def ok(self) -> bool:
        """No law is broken."""
        return not self.broken

    def __str__(self) -> str:
        """One line a law."""
        judged = len(self.findings) - len(self.not_judged)
        bad = len(self.broken)
        said = "no law is broken" if not bad else f"{bad} of {judged} laws {'is' if bad == 1 else 'are'} broken"
        packages = _packages(self)
        width = max((len(each.law) for each in self.findings), default=0)
        lines = [f"{self.name}{f' ({packages})' if packages else ''}: {said}"]
        lines += [f"  {_MARKS[each.verdict]:7}  {each.law:{width}}  {each.says}" for each in self.findings]
        return "\n".join(lines)

    def check(self) -> None:
        """Refuse a loader that breaks a law.

        Raises:
          AssertionError: with the whole report.
        """
        if not self.ok:
            raise AssertionError(str(self))

    def to_json(self) -> dict[str, Any]:
        """As JSON."""
        return {
            "name": self.name,
            "ok": self.ok,
            "versions": dict(self.versions),
            "jobs": list(self.jobs),
            "seconds": round(self.seconds, 3),
            "findings": [each.to_json() for each in self.findings],
        }

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> "JudgeReport":
        """What `to_json` gave."""
        findings = tuple(map(Ruling.from_json, value["findings"]))
        return JudgeReport(value["name"], findings, tuple(value["jobs"]), value["versions"], value["seconds"])


def parsed(text: str) -> list[JudgeReport]:
    """The reports in a JSON file of one or more."""
    value = json.loads(text)
    return [JudgeReport.from_json(each) for each in (value if isinstance(value, list) else [value])]


# ----------------------------------------------------------------------------
# Reports of several loaders side by side: text, JSON, Markdown, HTML.
# ----------------------------------------------------------------------------


WORDS = {Verdict.KEPT: "kept", Verdict.REFUSED: "refused", Verdict.BROKEN: "**broken**", Verdict.NOT_JUDGED: "–"}  # noqa: RUF001
"""Verdicts in a table of Markdown."""


def _laws(reports: Sequence[JudgeReport]) -> list[str]:
    return list(dict.fromkeys([each.law for report in reports for each in report.findings]))


def _of(report: JudgeReport, law: str) -> Ruling:
    return next((each for each in report.findings if each.law == law), Ruling(Verdict.NOT_JUDGED, "", law=law))


def _packages(report: JudgeReport) -> str:
    return ", ".join([f"{name} {version}" for name, version in report.versions.items()])


def as_text(reports: Sequence[JudgeReport]) -> str:
    """One report after the other."""
    return "\n\n".join(map(str, reports))


def as_json(reports: Sequence[JudgeReport]) -> str:
    """A list of reports."""
    return json.dumps([report.to_json() for report in reports], indent=2)


def as_markdown(reports: Sequence[JudgeReport]) -> str:
    """A table with a row for each loader and a column for each law, whose cells lead to what was found."""
    laws = _laws(reports)
    lines = [f"| loader | {' | '.join(laws)} |", "|---" * (len(laws) + 1) + "|"]
    lines += [
        f"| {' | '.join([cell(each.name, each), *[verdict_cell(each, law) for law in laws]])} |" for each in reports
    ]
    for report in reports:
        packages = f"With {_packages(report)}. " if report.versions else ""
        lines += ["", f"### {report.name}", "", f"{packages}Tried with {'; '.join(report.jobs)}.", ""]
        lines += [f"* {each.law}, {WORDS[each.verdict]}: {_plain(each.says)}" for each in report.findings]
    return "\n".join(lines) + "\n"


def cell(text: str, report: JudgeReport, page: str = "") -> str:
    """Text that leads to what was found of a loader.

    Args:
      text: of Markdown.
      report: of the loader.
      page: where `as_markdown` of the report is, if on another page.

    >>> cell("kept", JudgeReport("Ours, `take(n)`", (), (), {}, 0.0))
    '[kept](#ours-taken)'
    """
    place = re.sub(r"[^\w\- ]", "", report.name.lower()).replace(" ", "-")
    return f"[{text}]({page}#{place})"


def verdict_cell(report: JudgeReport, law: str, page: str = "") -> str:
    """The same for what one law says of it."""
    return cell(WORDS[_of(report, law).verdict], report, page)


def _plain(text: str) -> str:
    """What was said, in a line of Markdown."""
    return " ".join(text.split()).replace("|", "\\|").replace("<", "&lt;").replace("*", "\\*")


_STYLE = """
body { font: 15px/1.45 system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
body { color: #222; background: #fff }
table { border-collapse: collapse; margin: 1em 0 }
td, th { border: 1px solid #ccc; padding: .3em .6em; text-align: left; vertical-align: top }
.kept { background: #dff2e1 } .broken { background: #f9d7d3; font-weight: 600 }
.refused { background: #fbeecb } .none { color: #888 }
@media (prefers-color-scheme: dark) { body { color: #ddd; background: #181818 } td, th { border-color: #444 }
.kept { background: #1f4426 } .broken { background: #5b1f1a } .refused { background: #514317 } }
"""


def as_html(reports: Sequence[JudgeReport]) -> str:
    """One page that needs no other file: the table, then each report with what was found."""
    laws = _laws(reports)
    parts = [tag("h1", "Judge of loaders")]
    if len(reports) > 1:
        parts.append(
            _table(("loader", *laws), [(each.name, *[_cell(_of(each, law)) for law in laws]) for each in reports])
        )
    for report in reports:
        parts += [tag("h2", report.name), tag("p", f"{_packages(report)} {'; '.join(report.jobs)}")]
        told = [(each.law, _cell(each), tag("td", each.says)) for each in report.findings]
        parts.append(_table(("law", "verdict", "what was found"), told))
    head = Markup("<meta charset='utf-8'>"), tag("title", "Judge of loaders"), tag("style", Markup(_STYLE))
    return f"<!doctype html>\n{tag('html', tag('head', *head), tag('body', *parts), lang='en')}\n"


def _table(headings: Sequence[str], rows: Sequence[tuple[object, ...]]) -> Markup:
    """A table whose rows begin with a heading."""
    head = tag("thead", tag("tr", *[tag("th", each) for each in headings]))
    return tag("table", head, tag("tbody", *[tag("tr", tag("th", first), *cells) for first, *cells in rows]))


def _cell(finding: Ruling) -> Markup:
    word = finding.verdict.value
    kind, text = ("none", "–") if finding.verdict is Verdict.NOT_JUDGED else (word, word)  # noqa: RUF001
    return tag("td", text, class_=kind, title=finding.says)


WRITERS: Mapping[str, Callable[[Sequence[JudgeReport]], str]] = MappingProxyType(
    {"html": as_html, "json": as_json, "markdown": as_markdown, "text": as_text}
)
"""Ways to write reports, by name."""

SUFFIXES: Mapping[str, str] = MappingProxyType({".html": "html", ".json": "json", ".md": "markdown", ".txt": "text"})
"""Names of files and the ways to write them."""


def write_reports(path: str, reports: Sequence[JudgeReport]) -> None:
    """Write reports to a file, in the format that its suffix names, one of `SUFFIXES`."""
    with Sink(path) as sink:
        sink.write(WRITERS[SUFFIXES[PurePath(path).suffix]](reports).encode())
