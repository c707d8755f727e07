# SPDX-License-Identifier: Apache-2.0
"""What notebooks show is well-formed, says what `repr` says, and lets no name break out."""

from typing import Any
from xml.etree.ElementTree import Element

import numpy as np
from hypothesis import given, settings

import distinput as di
from distinput.sharding.planning import shard_plan
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases
from tests.reports.pictures import HOSTILE, parsed, words_of

RANGE = di.data.Dataset.range


def read(value: Any) -> Element:
    text = value._repr_html_()
    assert "<script" not in text
    return parsed(text)


@settings(max_examples=cases(8, 200), deadline=None)
@given(pipelines())
def test_every_dataset_is_shown(pipeline: Pipeline) -> None:
    dataset = pipeline.build()
    text = words_of(read(dataset))
    assert dataset.node.op in text


@settings(max_examples=cases(15, 300), deadline=None)
@given(HOSTILE)
def test_names_cannot_break_out(name: str) -> None:
    read(RANGE(3).skip(1, name=name))
    read(di.distribute.PerReplica([name, name]))


def test_statistics_are_a_table() -> None:
    dataset = RANGE(6).batch(2)
    assert "No element was asked for yet." in words_of(read(dataset.stats()))
    list(dataset)
    found = words_of(read(dataset.stats()))
    assert dataset.stats().bottleneck in found
    assert "1:batch" in found


def test_a_plan_has_a_bar_for_each_worker() -> None:
    found = words_of(read(shard_plan(RANGE(10).batch(4).node, 2)))
    assert "2 workers with 1 replica each" in found
    assert "worker 1" in found


def test_distributed_datasets_and_values() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    distributed = strategy.experimental_distribute_dataset(RANGE(3).batch(2))
    assert "known beforehand: 2 steps" in words_of(read(distributed))
    steps = [words_of(read(step)) for step in distributed]
    assert "(1,)" in steps[0]
    assert "int64" in steps[0]
    large = words_of(read(di.distribute.PerReplica([np.zeros((1000, 8))])))
    assert "(1000, 8)" in large
    assert len(large) < 300
