# SPDX-License-Identifier: Apache-2.0
"""Boxes do not overlap, and stand below what they read from."""

from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.reports.graph import graph_of
from distinput.reports.svg import Rectangle, layout
from tests.depth import cases

Tree = di.data.Dataset


def datasets() -> st.SearchStrategy[Tree]:
    """Trees of `zip`s, with inputs that several steps share."""
    shared = di.data.Dataset.range(3)
    return st.recursive(
        st.sampled_from([shared, di.data.Dataset.range(4)]).map(lambda ds: ds.skip(1)) | st.just(shared),
        lambda below: st.lists(below, min_size=1, max_size=4).map(lambda several: di.data.Dataset.zip(tuple(several))),
        max_leaves=12,
    )


def apart(a: Rectangle, b: Rectangle) -> bool:
    return a.x + a.width <= b.x or b.x + b.width <= a.x or a.bottom <= b.y or b.bottom <= a.y


@settings(max_examples=cases(30, 600), deadline=None)
@given(datasets(), st.data())
def test_boxes_are_apart_and_below_their_inputs(dataset: Tree, data: st.DataObject) -> None:
    graph = graph_of(dataset)
    size = st.tuples(st.floats(10, 300), st.floats(10, 100))
    sizes = {step.number: data.draw(size) for step in graph.steps}
    placed = layout(graph, sizes)
    places = [placed.places[step.number] for step in graph.steps]
    assert [(place.width, place.height) for place in places] == [sizes[step.number] for step in graph.steps]
    slack = 1e-6
    assert all(place.x >= -slack and place.x + place.width <= placed.width + slack for place in places)
    assert all(place.y >= 0 and place.bottom <= placed.height + slack for place in places)
    for index, place in enumerate(places):
        assert all(apart(place, other) for other in places[:index])
    for source, step in graph.edges:
        assert placed.places[source].bottom < placed.places[step].y


def test_a_step_is_centred_below_its_inputs() -> None:
    numbers = di.data.Dataset.range
    graph = graph_of(di.data.Dataset.zip((numbers(1), numbers(2), numbers(3))))
    placed = layout(graph, {step.number: (100.0, 20.0) for step in graph.steps})
    assert placed.places[3].middle == placed.places[1].middle
