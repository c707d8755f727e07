# SPDX-License-Identifier: Apache-2.0
"""A page about one pass: a single file of HTML without scripts, fonts or pictures from elsewhere."""

import json
import platform
from datetime import UTC, datetime
from typing import Any

from distinput import __version__
from distinput.data.recording import Recording
from distinput.data.stats import SHORT, Stats
from distinput.names.words import bytes_text, number_text, seconds_text
from distinput.plan.text import spec_text_of
from distinput.reports.graph import graph_of
from distinput.reports.markup import MONOSPACE, SANS, Markup, colours, quiet, tag, wide
from distinput.reports.plots import PLOT_STYLE, WIDTH, bars
from distinput.reports.sections import (
    COLUMNS,
    balance,
    buffers_section,
    figures_of,
    memory_section,
    rows_of,
    shards_section,
    shuffle_section,
    timeline_section,
)
from distinput.reports.svg import GRAPH_STYLE, svg_of
from distinput.reports.timeline import TIMELINE_STYLE
from distinput.run.threads import cores

# ----------------------------------------------------------------------------
# The style sheet of report pages.
# ----------------------------------------------------------------------------


_PAGE = f"""
body {{ margin: 0; background: var(--di-page); color: var(--di-ink); font: 15px/1.55 {SANS}; }}
main {{ max-width: 1060px; margin: 0 auto; padding: 28px 20px 60px; }}
h1 {{ font-size: 25px; line-height: 1.3; margin: 0 0 4px; }}
h2 {{ font-size: 18px; margin: 40px 0 8px; }}
p {{ margin: 6px 0 12px; max-width: 75ch; }}
a {{ color: var(--di-blue); }}
code, pre {{ font: 12.5px/1.5 {MONOSPACE}; }}
h1 + p code {{ font-size: 13.5px; overflow-wrap: anywhere; }}
pre {{ background: var(--di-soft); border: 1px solid var(--di-line); border-radius: 7px; padding: 12px 14px;
  overflow-x: auto; }}
.di-quiet {{ color: var(--di-dim); font-size: 13.5px; }}
.di-tiles {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(150px, 1fr)); gap: 12px; margin: 20px 0; }}
.di-tiles div {{ background: var(--di-soft); border: 1px solid var(--di-line); border-radius: 9px; padding: 10px 14px; }}
.di-tiles b {{ display: block; font-size: 21px; font-weight: 600; font-variant-numeric: tabular-nums; }}
.di-tiles span {{ color: var(--di-dim); font-size: 13px; }}
.di-verdict {{ border-left: 4px solid var(--di-orange); background: var(--di-soft); border-radius: 0 9px 9px 0;
  padding: 12px 16px; margin: 18px 0; overflow-wrap: anywhere; }}
.di-wide {{ overflow-x: auto; margin: 10px 0; }}
.di-wide svg {{ display: block; margin: 0 auto; }}
.di-wide .di-plot {{ min-width: {WIDTH}px; }}
@media print {{ .di-wide .di-plot {{ min-width: 0; }} }}
table {{ border-collapse: collapse; font-size: 13.5px; font-variant-numeric: tabular-nums; }}
th, td {{ padding: 5px 12px 5px 0; text-align: right; border-bottom: 1px solid var(--di-line); white-space: nowrap; }}
th {{ color: var(--di-dim); font-weight: 500; }}
th:first-child, td:first-child, th:last-child, td:last-child {{ text-align: left; }}
td:first-child {{ font-family: {MONOSPACE}; font-size: 12.5px; }}
tr.di-slow td {{ color: var(--di-orange); font-weight: 600; }}
.di-legend {{ display: flex; flex-wrap: wrap; gap: 4px 16px; font-size: 13px; color: var(--di-dim); padding: 0; }}
.di-legend i {{ display: inline-block; width: 11px; height: 11px; border-radius: 3px; margin-right: 6px; }}
summary {{ cursor: pointer; color: var(--di-dim); }}
@media print {{ main {{ max-width: none; }} h2 {{ break-after: avoid; }} }}
"""


def page_style() -> str:
    """All rules of a report page; they need no fonts or files from elsewhere."""
    return colours(":root") + _PAGE + GRAPH_STYLE + PLOT_STYLE + TIMELINE_STYLE


_SHORT_PASS = (
    "A pass as short as this says little: in a first one, loading libraries and compiled loops takes a good part of a second, "
    "which counts for the step that needed them. Record a longer pass, or make one before it."
)
_STEPS = (
    "The steps that ran. A bar is the part of the pass for which a step had its thread, or each of its workers; the "
    "slowest step is framed."
)
_DESCRIBED = "As it was described, and the rules that changed it"


def page(recording: Recording, num_workers: int = 4) -> str:
    """The page.

    Args:
      recording: of a pass that has ended, or been broken off.
      num_workers: show how the data would be divided among so many workers; 1 leaves that out.

    Returns:
      HTML that is well-formed XML too. A script element of type `application/json` with the id `distinput` holds the numbers.
    """
    dataset, trace, stats = recording.dataset, recording.trace, recording.stats()
    begin, end = recording.begin, recording.begin + recording.seconds
    graph = graph_of(dataset, running=True)
    spec_text_of(dataset.node)  # so that `repr` knows it
    body: list[Markup] = [
        tag("h1", "Report of a pass"),
        tag("p", tag("code", repr(recording.given))),
        quiet(_circumstances()),
        _tiles(recording, stats),
        tag("p", stats.bottleneck, class_="di-verdict"),
        *([quiet(_SHORT_PASS)] if recording.seconds < SHORT else []),
        tag("h2", "Steps"),
        quiet(_STEPS),
        wide(Markup(svg_of(graph, figures_of(stats), alone=False))),
        wide(_table(stats)),
        *timeline_section(trace, stats, graph.steps[-1].key, begin, end),
        *buffers_section(trace, stats, begin, end),
        *memory_section(trace, begin, end),
        *shuffle_section(dataset.node, recording.epoch),
        *_replicas(recording),
        *([] if recording.distributed else shards_section(dataset.node, num_workers)),
        tag("h2", "Pipeline"),
        tag("details", tag("summary", _DESCRIBED), tag("pre", dataset.explain())),
    ]
    head = [
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("title", "distinput report"),
        tag("style", Markup("\n" + page_style())),
    ]
    parts = tag("head", *head), tag("body", tag("main", *body), _data(recording, stats))
    return "<!DOCTYPE html>\n" + tag("html", *parts, xmlns="http://www.w3.org/1999/xhtml", lang="en")


def _circumstances() -> str:
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    where = f"{platform.system()} {platform.machine()}, {cores()} cores"
    return f"{now}, distinput {__version__}, Python {platform.python_version()}, {where}"


def _tiles(recording: Recording, stats: Stats) -> Markup:
    seconds, delivered, steps = recording.seconds, recording.delivered, recording.distributed
    last = list(stats.values())[-1] if stats else {}
    memory = max((sample.value for sample in recording.trace.samples if sample.what == "memory"), default=0)
    tiles = [
        (f"{delivered:,}", "steps delivered" if steps else "elements delivered"),
        (seconds_text(seconds), "from the first request to the end"),
        (number_text(delivered / seconds) if seconds else "-", "steps a second" if steps else "elements a second"),
    ]
    if last.get("bytes") and seconds:
        tiles.append((f"{bytes_text(last['bytes'] / seconds)}/s", "of data"))
    tiles.append((seconds_text(stats.outside), "in the loop that took them"))
    if memory:
        tiles.append((bytes_text(memory), "most memory"))
    return tag("div", *[tag("div", tag("b", figure), tag("span", name)) for figure, name in tiles], class_="di-tiles")


def _replicas(recording: Recording) -> list[Markup]:
    """The rows that each replica of this worker got."""
    if not recording.rows:
        return []
    rows = [(f"replica {replica}", float(n), f"{n:,} rows") for replica, n in enumerate(recording.rows)]
    made = [tag("h2", "Replicas"), tag("p", balance(recording.rows, "rows", "replica"))]
    return [*made, wide(bars(rows, "rows of each replica"))]


def _table(stats: Stats) -> Markup:
    rows = [
        tag("tr", *[tag("td", cell) for cell in row], class_="di-slow" if row[0] == stats.slowest else None)
        for row in rows_of(stats)
    ]
    return tag("table", tag("thead", tag("tr", *[tag("th", column) for column in COLUMNS])), tag("tbody", *rows))


def _data(recording: Recording, stats: Stats) -> Markup:
    """The numbers for other programs; JSON in which nothing looks like markup."""
    told: dict[str, Any] = {name: getattr(recording, name) for name in ("delivered", "rows", "seconds")}
    told |= {name: getattr(stats, name) for name in ("outside", "slowest", "bottleneck")}
    text = json.dumps({**told, "steps": dict(stats)})
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return tag("script", Markup(text), type="application/json", id="distinput")
