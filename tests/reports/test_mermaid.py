# SPDX-License-Identifier: Apache-2.0
"""Flow charts in Mermaid's language have every step and edge, and nothing of a name that Mermaid would read as its own."""

import re

from hypothesis import given, settings

import distinput as di
from distinput.reports.graph import graph_of, mermaid_of
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases
from tests.reports.pictures import HOSTILE

BOX = re.compile(r'  s(\d+)\["<b>(\w+)</b>((?:[\w .,:=+?()×∞…]|<br/>|#\d+;)*)"\]', re.ASCII)
EDGE = re.compile(r"  s(\d+) --> s(\d+)")


def read(text: str) -> tuple[dict[int, tuple[str, str]], list[tuple[int, int]]]:
    """Boxes and edges of a chart in the part of the language that we write; anything else fails."""
    boxes, edges = {}, []
    head, *lines = text.split("\n")
    assert head == "flowchart TB"
    for line in lines:
        if edge := EDGE.fullmatch(line):
            edges.append((int(edge[1]), int(edge[2])))
        else:
            box = BOX.fullmatch(line)
            assert box, line
            boxes[int(box[1])] = (box[2], re.sub(r"#(\d+);", lambda c: chr(int(c[1])), box[3]))
    return boxes, edges


@settings(max_examples=cases(8, 300), deadline=None)
@given(pipelines())
def test_every_step_and_edge_is_there(pipeline: Pipeline) -> None:
    graph = graph_of(pipeline.build())
    boxes, edges = read(mermaid_of(graph))
    assert {number: op for number, (op, _) in boxes.items()} == {step.number: step.op for step in graph.steps}
    assert edges == list(graph.edges)
    assert all(step.count in boxes[step.number][1] for step in graph.steps)


@settings(max_examples=cases(10, 400), deadline=None)
@given(HOSTILE)
def test_names_are_written_so_that_they_are_read_back(name: str) -> None:
    boxes, _ = read(mermaid_of(graph_of(di.data.Dataset.range(3).skip(1, name=name))))
    assert boxes[1][1].startswith(f" {name} × 2<br/>")


def test_long_lines_are_cut() -> None:
    chart = mermaid_of(graph_of(di.data.Dataset.from_tensors({f"component_{i}": 1.0 for i in range(50)})))
    assert "…" in chart
    assert "component_49" not in chart
