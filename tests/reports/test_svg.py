# SPDX-License-Identifier: Apache-2.0
"""Pictures are well-formed XML that shows every step, whatever its name is."""

from hypothesis import given, settings

import distinput as di
from distinput.reports.graph import graph_of
from distinput.reports.svg import GRAPH_STYLE, Figures, svg_of
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases
from tests.reports.pictures import HOSTILE, attribute_numbers, parsed, words_of

SVG = "{http://www.w3.org/2000/svg}"
RANGE = di.data.Dataset.range


@settings(max_examples=cases(8, 300), deadline=None)
@given(pipelines())
def test_every_step_is_in_the_picture(pipeline: Pipeline) -> None:
    graph = graph_of(pipeline.build())
    root = parsed(svg_of(graph))
    boxes = root.findall(f"{SVG}g")
    assert [words_of(box.findall(f"{SVG}text")[0]) for box in boxes] == [step.op for step in graph.steps]
    assert len(root.findall(f"{SVG}path")) == len(graph.edges)
    for step, box in zip(graph.steps, boxes, strict=True):
        assert step.count in words_of(box)
        assert step.spec in words_of(box)


@settings(max_examples=cases(10, 400), deadline=None)
@given(HOSTILE)
def test_names_cannot_break_out(name: str) -> None:
    root = parsed(svg_of(graph_of(RANGE(3).skip(1, name=name))))
    assert {element.tag.removeprefix(SVG) for element in root.iter()} <= {
        "g", "path", "polygon", "rect", "style", "svg", "text", "title",
    }  # fmt: skip
    assert not any(key.startswith("on") for element in root.iter() for key in element.attrib)
    assert len(root.findall(f"{SVG}g")) == 2


@settings(max_examples=cases(8, 300), deadline=None)
@given(pipelines())
def test_everything_is_within_the_picture(pipeline: Pipeline) -> None:
    root = parsed(svg_of(graph_of(pipeline.build())))
    left, top, width, height = map(float, root.attrib["viewBox"].split())
    for rect in root.iter(f"{SVG}rect"):
        x, y, wide, high = attribute_numbers(rect, "x", "y", "width", "height")
        assert left <= x
        assert x + wide <= left + width
        assert top <= y
        assert y + high <= top + height


def test_figures_are_written_into_the_box_of_their_step() -> None:
    graph = graph_of(RANGE(10).batch(4))
    root = parsed(svg_of(graph, {"1:batch": Figures(("12 ms", "3 rows"), 0.25, slowest=True)}))
    first, last = root.findall(f"{SVG}g")
    assert "12 ms" not in words_of(first)
    assert {"12 ms", "3 rows"} <= {text.text for text in last.iter(f"{SVG}text")}
    _, track, bar = last.findall(f"{SVG}rect")
    assert float(bar.attrib["width"]) == round(0.25 * float(track.attrib["width"]), 1)
    assert "di-slowest" in last.findall(f"{SVG}rect")[0].attrib["class"]


def test_long_texts_are_cut_and_shown_whole_on_pointing() -> None:
    element = {f"component_{i}": 1.0 for i in range(50)}
    graph = graph_of(di.data.Dataset.from_tensors(element))
    box = parsed(svg_of(graph)).find(f"{SVG}g")
    assert box is not None
    shown = [words_of(text) for text in box.findall(f"{SVG}text")]
    assert len(shown) < 12
    assert shown[-1].endswith("…")
    assert "component_49" in words_of(box)


def test_a_picture_alone_brings_its_style_light_and_dark() -> None:
    graph = graph_of(RANGE(3))
    assert "prefers-color-scheme: dark" in svg_of(graph)
    assert GRAPH_STYLE in svg_of(graph)
    assert "<style" not in svg_of(graph, alone=False)
