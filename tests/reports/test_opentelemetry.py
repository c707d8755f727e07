# SPDX-License-Identifier: Apache-2.0
"""OpenTelemetry gets the values of the statistics when it asks."""

import sys
from typing import Any

import pytest

import distinput as di
from distinput.errors import EngineMissing

RANGE = di.data.Dataset.range


def test_values_are_asked_for_at_every_export() -> None:
    pytest.importorskip("opentelemetry.sdk.metrics", reason="OpenTelemetry is not installed")
    from opentelemetry.sdk.metrics import MeterProvider
    from opentelemetry.sdk.metrics.export import InMemoryMetricReader

    from distinput.reports.opentelemetry import observe

    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    dataset = RANGE(6).batch(2)
    observe({"train": dataset}, provider.get_meter("test"))

    def read() -> dict[str, dict[str, Any]]:
        data = reader.get_metrics_data()
        if data is None:
            return {}
        return {
            metric.name: {point.attributes["step"]: point.value for point in metric.data.data_points}
            for resource in data.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
        }

    assert not any(read().values())
    list(dataset)
    found = read()
    assert found["distinput.step_elements"] == {"0:range": 6, "1:batch": 3}
    assert found["distinput.step_busy"]["1:batch"] == dataset.stats()["1:batch"]["busy"]
    assert not found.get("distinput.step_workers")
    provider.shutdown()


def test_what_to_install_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "opentelemetry", None)
    monkeypatch.delitem(sys.modules, "distinput.reports.opentelemetry", raising=False)
    with pytest.raises(EngineMissing, match=r"distinput\[opentelemetry\]"):
        import distinput.reports.opentelemetry  # noqa: F401
