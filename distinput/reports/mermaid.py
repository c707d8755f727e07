# SPDX-License-Identifier: Apache-2.0
"""The graph of a pipeline in Mermaid's language, which GitHub, GitLab and many sites draw."""

import string

from distinput.reports.graph import Graph, GraphStep

__all__ = ["mermaid_of"]

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
