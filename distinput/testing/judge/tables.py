# SPDX-License-Identifier: Apache-2.0
"""Reports of several loaders side by side: text, JSON, Markdown, HTML."""

import json
from collections.abc import Callable, Mapping, Sequence
from html import escape
from types import MappingProxyType

from distinput.testing.judge.finding import Ruling, Verdict
from distinput.testing.judge.report import JudgeReport

__all__ = ["SUFFIXES", "WORDS", "WRITERS", "as_html", "as_json", "as_markdown", "as_text"]

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
    """A table with a row for each loader and a column for each law, then what was found of each."""
    laws = _laws(reports)
    lines = [f"| loader | {' | '.join(laws)} |", "|---" * (len(laws) + 1) + "|"]
    lines += [f"| {each.name} | {' | '.join(WORDS[_of(each, law).verdict] for law in laws)} |" for each in reports]
    alike = len({report.jobs for report in reports}) == 1
    if alike and reports[0].jobs:
        lines += ["", f"All were tried with {'; '.join(reports[0].jobs)}."]
    for report in reports:
        tried = [] if alike else [f"Tried with {'; '.join(report.jobs)}.", ""]
        versions = [f"With {_packages(report)}.", ""] if report.versions else []
        lines += ["", f"### {report.name}", "", *versions, *tried]
        for each in report.findings:
            if each.verdict in (Verdict.BROKEN, Verdict.REFUSED):
                lines.append(f"* {each.law}, {WORDS[each.verdict]}: {_plain(each.says)}")
        if not (report.broken or report.refused):
            lines.append(f"Kept: {', '.join(report.kept)}.")
    return "\n".join(lines) + "\n"


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

_CLASSES = {
    Verdict.KEPT: "kept",
    Verdict.REFUSED: "refused",
    Verdict.BROKEN: "broken",
    Verdict.NOT_JUDGED: "none",
}


def as_html(reports: Sequence[JudgeReport]) -> str:
    """One page that needs no other file: the table, then each report with what was found."""
    laws = _laws(reports)
    parts = [
        "<!doctype html>\n<html lang='en'><head><meta charset='utf-8'><title>Judge of loaders</title>",
        f"<style>{_STYLE}</style></head><body><h1>Judge of loaders</h1>",
    ]
    if len(reports) > 1:
        heads = "".join([f"<th>{escape(law)}</th>" for law in laws])
        rows = [
            f"<tr><th>{escape(report.name)}</th>{''.join([_cell(_of(report, law)) for law in laws])}</tr>"
            for report in reports
        ]
        parts += [f"<table><thead><tr><th>loader</th>{heads}</tr></thead><tbody>", *rows, "</tbody></table>"]
    for report in reports:
        told = [
            f"<tr><th>{escape(each.law)}</th>{_cell(each)}<td>{escape(each.says)}</td></tr>" for each in report.findings
        ]
        parts.append(
            f"<h2>{escape(report.name)}</h2><p>{escape(_packages(report))} {escape('; '.join(report.jobs))}</p>"
        )
        parts += ["<table><thead><tr><th>law</th><th>verdict</th><th>what was found</th></tr></thead><tbody>", *told]
        parts.append("</tbody></table>")
    return "\n".join(parts) + "\n</body></html>\n"


def _cell(finding: Ruling) -> str:
    text = "–" if finding.verdict is Verdict.NOT_JUDGED else finding.verdict.value  # noqa: RUF001
    return f"<td class='{_CLASSES[finding.verdict]}' title='{escape(finding.says)}'>{escape(text)}</td>"


WRITERS: Mapping[str, Callable[[Sequence[JudgeReport]], str]] = MappingProxyType(
    {"html": as_html, "json": as_json, "markdown": as_markdown, "text": as_text}
)
"""Ways to write reports, by name."""

SUFFIXES: Mapping[str, str] = MappingProxyType({".html": "html", ".json": "json", ".md": "markdown", ".txt": "text"})
"""Names of files and the ways to write them."""
