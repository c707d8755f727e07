# SPDX-License-Identifier: Apache-2.0
"""Specs and numbers of elements in a few characters, for lines that people read."""

from distinput.core.leaves import STRING
from distinput.core.spec import ElementsSpec, LeafSpec, Spec
from distinput.plan.bounds import cardinality_bounds
from distinput.plan.node import INFINITE, UNKNOWN, Node

__all__ = ["bounds_text", "count_text", "spec_text", "spec_text_of"]


def spec_text(spec: Spec, comma: str = ", ") -> str:
    """A nest of dtypes and shapes.

    Args:
      spec: what an element looks like.
      comma: between the sizes of a shape.

    >>> import distinput as di
    >>> spec_text(di.data.Dataset.from_tensors({"x": [[1.0, 2.0]], "n": 3}).batch(2).node.spec)
    "{'x': float32[?, 1, 2], 'n': int32[?]}"
    """
    spec = spec.folded
    return str(spec.structure.build([_Word(_leaf_text(leaf, comma)) for leaf in spec.leaves]))


def spec_text_of(node: Node) -> str:
    """The spec of a node, or which error its function raised while the spec was inferred."""
    try:
        return spec_text(node.spec)
    except Exception as error:  # noqa: BLE001 - the spec of an opaque function may need data that is not there yet
        return f"<{type(error).__name__} while inferring the spec>"


def count_text(cardinality: int) -> str:
    """A number of elements.

    >>> [count_text(n) for n in (7, INFINITE, UNKNOWN)]
    ['x7', 'endless', 'x?']
    """
    return {INFINITE: "endless", UNKNOWN: "x?"}.get(cardinality, f"x{cardinality}")


def bounds_text(node: Node) -> str:
    """How many elements, or between which bounds, with a multiplication sign; "" if it cannot be found out now.

    >>> import distinput as di
    >>> ds = di.data.Dataset.range(2000)
    >>> [bounds_text(each.node) for each in (ds, ds.filter(lambda x: x > 3), ds.repeat())]
    ['× 2,000', '× 0…2,000', '× ∞']
    """
    try:
        endless = node.cardinality == INFINITE
        low, high = cardinality_bounds(node)
    except Exception:  # noqa: BLE001 - a file may be missing, which iterating the dataset reports
        return ""
    if endless:
        return "× ∞"
    if high is None:
        return "× ?" if low == 0 else f"× {low:,} or more"
    return f"× {low:,}" if low == high else f"× {low:,}…{high:,}"


class _Word(str):
    """Text that prints without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _leaf_text(leaf: LeafSpec, comma: str) -> str:
    if isinstance(leaf, ElementsSpec):
        return leaf.called.rpartition(" ")[2]
    dtype = ("sparse " if leaf.is_sparse else "") + ("string" if leaf.dtype == STRING else leaf.dtype.name)
    if leaf.shape is None:
        return f"{dtype}[...]"
    return dtype + (f"[{comma.join('?' if d is None else str(d) for d in leaf.shape)}]" if leaf.shape else "")
