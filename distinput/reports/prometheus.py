# SPDX-License-Identifier: Apache-2.0
"""The metrics of a pass in the text format that Prometheus scrapes."""

from collections.abc import Mapping
from typing import Any

from distinput.data.handle import DatasetHandle
from distinput.data.stats import Stats
from distinput.reports.metrics import Metric, MetricPoint, points

__all__ = ["prometheus_text"]


def prometheus_text(what: "DatasetHandle[Any] | Stats | Mapping[str, DatasetHandle[Any] | Stats]") -> str:
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
    told = ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items() if value)
    return f"{{{told}}}" if told else ""


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
