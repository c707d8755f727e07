# SPDX-License-Identifier: Apache-2.0
"""A graph has every step of the tree once, and an edge for every input."""

from hypothesis import given, settings

import distinput as di
from distinput.plan.node import walk
from distinput.reports.graph import graph_of
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases

RANGE = di.data.Dataset.range


@settings(max_examples=cases(10, 400), deadline=None)
@given(pipelines())
def test_every_step_and_every_input_is_there(pipeline: Pipeline) -> None:
    node = pipeline.build().node
    graph = graph_of(node)
    distinct = {id(step): step for step in walk(node)}
    assert sorted(step.op for step in graph.steps) == sorted(step.op for step in distinct.values())
    assert len(graph.edges) == sum(len(step.inputs) for step in distinct.values())
    place = {step.number: index for index, step in enumerate(graph.steps)}
    assert all(place[source] < place[step] for source, step in graph.edges), "inputs come first"
    assert all(graph[source].layer > graph[step].layer for source, step in graph.edges), "data flows down"
    assert [step.number for step in graph.steps if step.layer == 0] == [graph.steps[-1].number]


@settings(max_examples=cases(6, 100), deadline=None)
@given(pipelines())
def test_steps_have_the_names_of_the_statistics(pipeline: Pipeline) -> None:
    dataset = pipeline.build()
    with iter(dataset) as elements:
        list(elements)
    named = {name for name in dataset.stats() if not name.startswith("inner:")}
    assert named <= {f"{number}:{step.op}" for number, step in enumerate(walk(dataset._runs().node))}
    assert {step.key for step in graph_of(dataset, running=True).steps} >= {
        name for name in named if _first(dataset, name)
    }


def _first(dataset: di.data.Dataset, name: str) -> bool:
    """Whether this is the first place of a step, which several may read from."""
    steps = list(walk(dataset._runs().node))
    number = int(name.split(":")[0])
    return all(step is not steps[number] for step in steps[:number])


def test_what_is_said_of_a_step() -> None:
    last = graph_of(RANGE(10).batch(4, name="fours")).steps[-1]
    assert (last.key, last.label, last.arguments) == ("1:batch", "fours", {"batch_size": "4"})
    assert (last.spec, last.count) == ("int64[?]", "× 3")
    assert last.origin.startswith(__file__)


def test_an_input_of_two_steps_is_there_once() -> None:
    numbers = RANGE(10)
    graph = graph_of(di.data.Dataset.zip((numbers, numbers.skip(1), numbers)))
    assert graph.edges == ((0, 2), (0, 4), (2, 4), (0, 4))
    assert graph.inputs(4) == [0, 2, 0]


def test_the_steps_that_run_are_those_that_rules_made() -> None:
    dataset = RANGE(9).map(abs).map(abs)
    assert [step.op for step in graph_of(dataset).steps] == ["range", "map", "map"]
    assert len(graph_of(dataset, running=True).steps) == 2
    assert graph_of(dataset.node, running=True).edges == graph_of(dataset, running=True).edges
