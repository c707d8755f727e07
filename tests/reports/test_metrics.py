# SPDX-License-Identifier: Apache-2.0
"""Metrics are what the statistics say, under names that monitoring systems take."""

import re

import distinput as di
from distinput.reports.metrics import METRICS, points
from tests.reports.test_figures import STATS

RANGE = di.data.Dataset.range


def test_values_are_those_of_the_statistics() -> None:
    found = {(p.metric.name, p.labels.get("step")): p.value for p in points(STATS)}
    assert found["step_elements", "0:range"] == 1000
    assert found["step_sent", "0:range"] == 8000
    assert found["step_worked", "1:map"] == 6.0
    assert found["step_dropped", "1:map"] == 3
    assert ("step_sent", "1:map") not in found
    assert found["consumer", None] == 0.25
    assert found["slowest_step", "1:map"] == 1


def test_several_datasets_have_names() -> None:
    a, b = RANGE(4).batch(2), RANGE(5)
    assert list(points({"a": a, "b": b})) == []
    list(a), list(b)
    assert {p.labels["dataset"] for p in points({"a": a, "b": b.stats()})} == {"a", "b"}
    assert {p.labels["dataset"] for p in points(a)} == {""}


def test_names_are_unique_and_plain() -> None:
    names = [metric.name for metric in METRICS]
    assert len(set(names)) == len(names)
    assert all(re.fullmatch("[a-z_]+", name) for name in names)
