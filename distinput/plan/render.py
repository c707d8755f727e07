# SPDX-License-Identifier: Apache-2.0
"""A pipeline as text: one line a node, the last op first, its inputs indented below it."""

from distinput.plan.node import Node
from distinput.plan.spec_text import count_text, spec_text_of

__all__ = ["render"]


def render(node: Node) -> str:
    """The tree below `node`.

    >>> import distinput as di
    >>> print(render(di.data.Dataset.range(10).batch(4).node))
    batch(batch_size=4)  int64[?]  x3
      range(first=0, stop=10)  int64  x10
    """
    return "\n".join(_lines(node, ""))


def _lines(node: Node, indent: str) -> list[str]:
    lines = [f"{indent}{node}  {spec_text_of(node)}  {count_text(node.cardinality)}"]
    for source in node.inputs:
        lines += _lines(source, indent + "  ")
    return lines
