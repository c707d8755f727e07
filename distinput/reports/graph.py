# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline: its steps, what each hands to the next, and its picture in Mermaid's language."""

import string

from distinput.data.iterator import DatasetLike
from distinput.names.lazy import dataclass
from distinput.plan.node import Node, given, walk
from distinput.plan.text import bounds_text, spec_text_of
from distinput.rewrite.rules import Running

# ----------------------------------------------------------------------------
# The graph of a pipeline: its steps, what each one hands to the next, and the layer that each is drawn in.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class GraphStep:
    """A step of a pipeline, in words.

    Attributes:
      number: its place in the pipeline, inputs first, as in `Dataset.stats`.
      op: what it does.
      label: the `name=` that the user gave it, or "".
      arguments: their names and values as text, without those left at their defaults.
      spec: what an element looks like.
      count: how many elements, or between which bounds.
      origin: the line of the user's code that made it.
      layer: 0 for the last step; inputs are in a higher layer than the steps that read them.
    """

    number: int
    op: str
    label: str
    arguments: dict[str, str]
    spec: str
    count: str
    origin: str
    layer: int

    @property
    def key(self) -> str:
        """Its name in `Dataset.stats`."""
        return f"{self.number}:{self.op}"


@dataclass(frozen=True)
class Graph:
    """The steps of a pipeline, and which reads from which.

    Attributes:
      steps: inputs first; one that several steps read from is there once.
      edges: pairs of step numbers, from the input to the step that reads it, in the order of the inputs.

    >>> import distinput as di
    >>> numbers = di.data.Dataset.range(10)
    >>> graph = graph_of(di.data.Dataset.zip(numbers, numbers.skip(1)).batch(4))
    >>> [step.key for step in graph.steps], graph.edges
    (['0:range', '2:skip', '3:zip', '4:batch'], ((0, 2), (0, 3), (2, 3), (3, 4)))
    """

    steps: tuple[GraphStep, ...]
    edges: tuple[tuple[int, int], ...]

    def __getitem__(self, number: int) -> GraphStep:
        return next(step for step in self.steps if step.number == number)

    def inputs(self, number: int) -> list[int]:
        """The numbers of the steps that a step reads from, in its order."""
        return [source for source, step in self.edges if step == number]


def graph_of(what: DatasetLike | Node, running: bool = False) -> Graph:
    """The graph of a dataset.

    Specs that are not known yet are inferred, for which functions may be called with made-up elements, as `element_spec` does.

    Args:
      what: a dataset, or the tree of one.
      running: the steps that run, which rules made of those that were described.
    """
    node = what if isinstance(what, Node) else what.node
    if running:
        node = Running.of(node).node if isinstance(what, Node) else what._runs().node
    numbers: dict[int, int] = {}
    steps: list[Node] = []
    for number, step in enumerate(walk(node)):
        if id(step) not in numbers:
            numbers[id(step)] = number
            steps.append(step)
    layers: dict[int, int] = {id(node): 0}
    for step in reversed(steps):  # all that read a step come behind it
        for source in step.inputs:
            layers[id(source)] = max(layers.get(id(source), 0), layers[id(step)] + 1)
    edges = [(numbers[id(source)], numbers[id(step)]) for step in steps for source in step.inputs]
    return Graph(tuple(_in_words(step, numbers[id(step)], layers[id(step)]) for step in steps), tuple(edges))


def _in_words(step: Node, number: int, layer: int) -> GraphStep:
    return GraphStep(
        number, step.op, step.name or "", given(step), spec_text_of(step), bounds_text(step), str(step.origin), layer
    )


# ----------------------------------------------------------------------------
# The graph of a pipeline in Mermaid's language, which GitHub, GitLab and many sites draw.
# ----------------------------------------------------------------------------


_PLAIN = frozenset(string.ascii_letters + string.digits + " _.,:=+?()×∞…")
_MOST = 80
"""Characters of a line; more are cut."""


def mermaid_of(graph: Graph) -> str:
    """A flow chart, data flowing down.

    >>> import distinput as di
    >>> from distinput.reports import graph_of
    >>> print(mermaid_of(graph_of(di.data.Dataset.range(10).batch(4))))
    flowchart TB
      s0["<b>range</b> × 10<br/>first=0, stop=10<br/>int64"]
      s1["<b>batch</b> × 3<br/>batch_size=4<br/>int64#91;?#93;"]
      s0 --> s1

    Source: Mermaid's flow charts; "Special characters that break syntax" says how those are written.
    """
    boxes = [f'  s{step.number}["{_label(step)}"]' for step in graph.steps]
    arrows = [f"  s{source} --> s{step}" for source, step in graph.edges]
    return "\n".join(["flowchart TB", *boxes, *arrows])


def _label(step: GraphStep) -> str:
    arguments = ", ".join(f"{name}={value}" for name, value in step.arguments.items())
    head = f"<b>{_safe(step.op)}</b>" + (f" {_safe(step.label)}" if step.label else "")
    return "<br/>".join([" ".join(filter(None, (head, step.count))), *[_safe(t) for t in (arguments, step.spec) if t]])


def _safe(text: str) -> str:
    """Text in which every character that Mermaid or HTML could take for its own is written as its number."""
    short = text if len(text) <= _MOST else text[: _MOST - 1] + "…"
    return "".join(c if c in _PLAIN else f"#{ord(c)};" for c in short)
