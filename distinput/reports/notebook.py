# SPDX-License-Identifier: Apache-2.0
"""What notebooks show of datasets, statistics, plans, distributed datasets and values: small pieces of HTML."""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.data.stats import Stats
from distinput.reports.graph import graph_of
from distinput.reports.markup import MONOSPACE, SANS, Markup, colours, tag
from distinput.reports.plots import PLOT_STYLE
from distinput.reports.sections import COLUMNS, plan_parts, rows_of
from distinput.reports.svg import GRAPH_STYLE, svg_of
from distinput.sharding.shard_plan import ShardPlan, workers_of

if TYPE_CHECKING:
    from distinput.distribute.core.values import DistributedValues
    from distinput.distribute.input.distributed_dataset import DistributedDataset

_STYLE = (
    f".di-note {{ font: 13px/1.5 {SANS}; color: var(--di-ink); }}\n"
    f".di-note code, .di-note pre, .di-note td {{ font: 12px/1.5 {MONOSPACE}; }}\n"
    ".di-note table { border-collapse: collapse; }\n"
    ".di-note th, .di-note td { text-align: left; padding: 3px 14px 3px 0; border-bottom: 1px solid var(--di-line); }\n"
    ".di-note th { color: var(--di-dim); font-weight: 500; }\n"
    ".di-note svg { max-width: 100%; height: auto; }\n"
)
_MOST_LETTERS = 70


def dataset_html(dataset: Dataset[Any]) -> str:
    """A dataset: its line, and its graph, for which specs that are not known yet are inferred."""
    picture = svg_of(graph_of(dataset), alone=False)  # after which `repr` knows the spec
    return _note(GRAPH_STYLE, tag("code", repr(dataset)), tag("div", Markup(picture)))


def stats_html(stats: Stats) -> str:
    """Statistics: a table, and the sentence about the slowest step."""
    return _note("", _table(COLUMNS, rows_of(stats)), tag("p", stats.bottleneck))


def plan_html(plan: ShardPlan) -> str:
    """Who reads what."""
    head = workers_of(plan.num_workers, plan.replicas_per_worker)
    return _note(
        PLOT_STYLE, tag("b", head), *plan_parts(plan), tag("details", tag("summary", "files"), tag("pre", str(plan)))
    )


def distributed_html(dataset: "DistributedDataset") -> str:
    """How a dataset is distributed, and what a step looks like."""
    spec = tag("p", "A step: ", tag("code", repr(dataset.element_spec)))
    return _note("", tag("b", type(dataset).__name__), spec, tag("pre", dataset.explain()))


def values_html(values: "DistributedValues") -> str:
    """A row for each replica: shape, dtype and the first numbers."""
    present = getattr(values, "present", (True,) * len(values.values))
    rows = [
        (str(replica), *(_told(value) if there else ("no data", "", "")))
        for replica, (value, there) in enumerate(zip(values.values, present, strict=True))
    ]
    return _note("", tag("b", type(values).__name__), _table(("replica", "shape", "dtype", "value"), rows))


def _told(value: Any) -> tuple[str, str, str]:
    if isinstance(value, np.ndarray | np.generic):
        text = np.array2string(np.asarray(value), threshold=6, edgeitems=3, separator=", ").replace("\n", " ")
        return str(value.shape), str(value.dtype), _cut(text)
    return str(getattr(value, "shape", "")), str(getattr(value, "dtype", type(value).__name__)), _cut(repr(value))


def _cut(text: str) -> str:
    return text if len(text) <= _MOST_LETTERS else text[: _MOST_LETTERS - 1] + "…"


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> Markup:
    cells = [tag("tr", *[tag("td", cell) for cell in row]) for row in rows]
    return tag("table", tag("thead", tag("tr", *[tag("th", name) for name in head])), tag("tbody", *cells))


def _note(style: str, *inside: Markup) -> str:
    """A piece of HTML with its style, which ends at its own border."""
    return tag("div", tag("style", Markup("\n" + colours(".di-note") + _STYLE + style)), *inside, class_="di-note")
