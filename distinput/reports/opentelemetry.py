# SPDX-License-Identifier: Apache-2.0
"""The metrics of a pass for OpenTelemetry, which asks for them when it exports."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from distinput.data.dataset import Dataset
from distinput.errors import importing
from distinput.reports.metrics import METRICS, Metric, points

with importing("reports.opentelemetry: OpenTelemetry is not installed; `pip install 'distinput[opentelemetry]'`"):
    from opentelemetry import metrics


def observe(datasets: "Mapping[str, Dataset[Any]]", meter: Any = None) -> None:
    """Let a meter ask for the metrics of the latest pass of some datasets.

    Instruments are called `distinput.step_elements` and so on, with the attributes "dataset", "step" and "op".

    Args:
      datasets: by the names that they have in the metrics.
      meter: of OpenTelemetry; None: `opentelemetry.metrics.get_meter("distinput")`.

    Source: asynchronous instruments of the OpenTelemetry metrics API.
    """
    asked = metrics.get_meter("distinput") if meter is None else meter
    for metric in METRICS:
        make = asked.create_observable_counter if metric.counts else asked.create_observable_gauge
        unit = {"seconds": "s", "bytes": "By"}.get(metric.unit, "1")
        make(f"distinput.{metric.name}", callbacks=[_observed(metric, datasets)], unit=unit, description=metric.help)


def _observed(metric: Metric, datasets: "Mapping[str, Dataset[Any]]") -> Callable[[Any], Iterable[Any]]:
    def observed(options: Any) -> Iterable[Any]:  # noqa: ARG001 - what OpenTelemetry calls it with
        return [metrics.Observation(p.value, p.labels) for p in points(datasets) if p.metric is metric]

    return observed
