# SPDX-License-Identifier: Apache-2.0
"""A page about one pass: a single file of HTML without scripts, fonts or pictures from elsewhere."""

import json
import platform
from datetime import UTC, datetime
from typing import Any

from distinput.core.cores import cores
from distinput.core.quantities import bytes_text, number_text, seconds_text
from distinput.data.recording.recording import Recording
from distinput.data.stats import Stats
from distinput.plan.spec_text import spec_text_of
from distinput.reports.figures import COLUMNS, figures_of, rows_of
from distinput.reports.graph import graph_of
from distinput.reports.markup import Markup, tag
from distinput.reports.page_style import page_style
from distinput.reports.plan_sections import balance, shards_section, shuffle_section
from distinput.reports.plots import bars
from distinput.reports.sections import buffers_section, memory_section, timeline_section
from distinput.reports.svg import svg_of

__all__ = ["page"]


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
        tag("p", _circumstances(), class_="di-quiet"),
        _tiles(recording, stats),
        tag("p", stats.bottleneck, class_="di-verdict"),
        tag("h2", "Steps"),
        tag(
            "p",
            "The steps that ran. A bar is the part of the pass for which a step had its thread, or each of its workers; the "
            "slowest step is framed.",
            class_="di-quiet",
        ),
        tag("div", Markup(svg_of(graph, figures_of(stats), alone=False)), class_="di-wide"),
        tag("div", _table(stats), class_="di-wide"),
        *timeline_section(trace, stats, graph.steps[-1].key, begin, end),
        *buffers_section(trace, stats, begin, end),
        *memory_section(trace, begin, end),
        *shuffle_section(dataset.node, recording.epoch),
        *_replicas(recording),
        *([] if recording.distributed else shards_section(dataset.node, num_workers)),
        tag("h2", "Pipeline"),
        tag(
            "details",
            tag("summary", "As it was described, and the rules that changed it"),
            tag("pre", dataset.explain()),
        ),
    ]
    return "<!DOCTYPE html>\n" + tag(
        "html",
        tag(
            "head",
            tag("meta", charset="utf-8"),
            tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
            tag("title", "distinput report"),
            tag("style", Markup("\n" + page_style())),
        ),
        tag("body", tag("main", *body), _data(recording, stats)),
        xmlns="http://www.w3.org/1999/xhtml",
        lang="en",
    )


def _circumstances() -> str:
    from distinput import __version__

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
    return [*made, tag("div", bars(rows, "rows of each replica"), class_="di-wide")]


def _table(stats: Stats) -> Markup:
    return tag(
        "table",
        tag("thead", tag("tr", *[tag("th", column) for column in COLUMNS])),
        tag(
            "tbody",
            *[
                tag("tr", *[tag("td", cell) for cell in row], class_="di-slow" if row[0] == stats.slowest else None)
                for row in rows_of(stats)
            ],
        ),
    )


def _data(recording: Recording, stats: Stats) -> Markup:
    """The numbers for other programs; JSON in which nothing looks like markup."""
    told: dict[str, Any] = {
        "delivered": recording.delivered,
        "rows": recording.rows,
        "seconds": recording.seconds,
        "outside": stats.outside,
        "slowest": stats.slowest,
        "bottleneck": stats.bottleneck,
        "steps": dict(stats),
    }
    text = json.dumps(told)
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return tag("script", Markup(text), type="application/json", id="distinput")
