# SPDX-License-Identifier: Apache-2.0
"""The metrics of a pass, for systems that monitor, and the text format that Prometheus scrapes."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from distinput.data.dataset import Dataset
from distinput.data.stats import Stats

# ----------------------------------------------------------------------------
# The metrics of a pass, for the formats that monitoring systems read: one table of names, units and meanings.
# ----------------------------------------------------------------------------


class Metric(NamedTuple):
    """One metric.

    Attributes:
      name: without the prefix and the unit.
      unit: "seconds", "bytes", or "" for plain numbers.
      counts: True if it only grows within a pass; a new pass begins at 0.
      help: what it is.
      of: its value in an entry of `Stats`; None: this step has none.
    """

    name: str
    unit: str
    counts: bool
    help: str
    of: Callable[[Mapping[str, Any]], float | None]


METRICS = (
    Metric("step_blocks", "", True, "Blocks that a step sent in the latest pass.", lambda told: told["blocks"]),
    Metric("step_elements", "", True, "Elements that a step sent in the latest pass.", lambda told: told["rows"]),
    Metric("step_sent", "bytes", True, "Bytes that a step sent; of recorded passes.", lambda told: told.get("bytes")),
    Metric("step_busy", "seconds", True, "Work of a step on its own thread.", lambda told: told["busy"]),
    Metric(
        "step_waiting", "seconds", True, "Waiting of a step for threads or processes.", lambda told: told["waiting"]
    ),
    Metric("step_worked", "seconds", True, "Work of the workers of a step together.", lambda told: told.get("worked")),
    Metric("step_workers", "", False, "Threads or processes that work for a step.", lambda told: told.get("workers")),
    Metric("step_dropped", "", True, "Elements left out because of an error.", lambda told: told.get("dropped")),
)
"""Of each step."""


class MetricPoint(NamedTuple):
    """A value of a metric.

    Attributes:
      metric: which.
      labels: "dataset", "step" and "op".
      value: now.
    """

    metric: Metric
    labels: dict[str, str]
    value: float


_OUTSIDE = Metric("consumer", "seconds", True, "Time that the loop spent on the elements.", lambda _: None)
_SLOWEST = Metric("slowest_step", "", False, "1 for the step that the others wait for.", lambda _: None)


def points(what: "Dataset[Any] | Stats | Mapping[str, Dataset[Any] | Stats]") -> Iterator[MetricPoint]:
    """All values now.

    Args:
      what: a dataset, for its latest pass; statistics; or several of them by their names.
    """
    named = {"": what} if isinstance(what, Dataset | Stats) else what
    for dataset, each in named.items():
        stats = each if isinstance(each, Stats) else each.stats()
        for step, told in stats.items():
            labels = {"dataset": dataset, "step": step, "op": step.split(":")[1]}
            for metric in METRICS:
                value = metric.of(told)
                if value is not None:
                    yield MetricPoint(metric, labels, value)
        if stats:
            yield MetricPoint(_OUTSIDE, {"dataset": dataset}, stats.outside)
            yield MetricPoint(_SLOWEST, {"dataset": dataset, "step": stats.slowest}, 1)


# ----------------------------------------------------------------------------
# The metrics of a pass in the text format that Prometheus scrapes.
# ----------------------------------------------------------------------------


def prometheus_text(what: "Dataset[Any] | Stats | Mapping[str, Dataset[Any] | Stats]") -> str:
    r"""What a server answers at `/metrics`, or a job writes for the textfile collector; no package is needed.

    Args:
      what: a dataset, for its latest pass; statistics; or several of them by their names, which become the label "dataset".

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(6).batch(2)
    >>> _ = list(ds)
    >>> [line for line in prometheus_text({"train": ds}).splitlines() if line.startswith("distinput_step_elements_total")]
    ['distinput_step_elements_total{dataset="train",step="0:range",op="range"} 6', 'distinput_step_elements_total{dataset="train",step="1:batch",op="batch"} 3']

    Source: Prometheus' text-based exposition format, version 0.0.4, and its rules for names.
    """  # noqa: E501
    families: dict[Metric, list[MetricPoint]] = {}
    for point in points(what):
        families.setdefault(point.metric, []).append(point)
    lines = []
    for metric, found in families.items():
        name = _name(metric)
        lines += [f"# HELP {name} {metric.help}", f"# TYPE {name} {'counter' if metric.counts else 'gauge'}"]
        lines += [f"{name}{_labels(point.labels)} {point.value!r}" for point in found]
    return "\n".join(lines) + "\n" if lines else ""


def _name(metric: Metric) -> str:
    return "_".join(filter(None, ("distinput", metric.name, metric.unit, "total" if metric.counts else "")))


def _labels(labels: Mapping[str, str]) -> str:
    told = ",".join(f'{name}="{value.translate(_ESCAPED)}"' for name, value in labels.items() if value)
    return f"{{{told}}}" if told else ""


_ESCAPED = str.maketrans({"\\": r"\\", "\n": r"\n", '"': r"\""})
