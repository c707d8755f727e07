# SPDX-License-Identifier: Apache-2.0
"""A pipeline as text: one line a node, the last op first, its inputs indented below it."""

from distinput.core.leaves import STRING
from distinput.core.spec import DatasetSpec, LeafSpec
from distinput.plan.node import INFINITE, UNKNOWN, Node

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
    lines = [f"{indent}{node}  {_spec_text(node)}  {_count(node.cardinality)}"]
    inputs = node.inputs
    for source in inputs:
        lines += _lines(source, indent + "  ")
    return lines


def _spec_text(node: Node) -> str:
    try:
        spec = node.spec
    except Exception as error:  # noqa: BLE001 - the spec of an opaque function may need data that is not there yet
        return f"<{type(error).__name__} while inferring the spec>"
    return str(spec.structure.build([_Word(_leaf_text(leaf)) for leaf in spec.leaves]))


class _Word(str):
    """Text that prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _leaf_text(leaf: LeafSpec) -> str:
    if isinstance(leaf, DatasetSpec):
        return "dataset"
    dtype = "string" if leaf.dtype == STRING else leaf.dtype.name
    if leaf.shape is None:
        return f"{dtype}[...]"
    return dtype + (f"[{', '.join('?' if d is None else str(d) for d in leaf.shape)}]" if leaf.shape else "")


def _count(cardinality: int) -> str:
    return {INFINITE: "endless", UNKNOWN: "x?"}.get(cardinality, f"x{cardinality}")
