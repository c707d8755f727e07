# SPDX-License-Identifier: Apache-2.0
"""A pipeline in one line: its last step, what its elements look like, and how many there are."""

from distinput.core.spec import Spec
from distinput.plan.describe import given
from distinput.plan.node import Node, walk
from distinput.plan.spec_text import bounds_text, spec_text

__all__ = ["summary"]


def summary(node: Node) -> str:
    """What is known of a pipeline without calling a function or opening a file; what is not known yet is a question mark.

    >>> import distinput as di
    >>> summary(di.data.Dataset.from_tensor_slices({"x": [[1.0, 2.0]] * 6}).batch(4).node)
    "batch(4) {'x': float32[?,2]} × 2"
    """
    label = "" if node.name is None else f"[{node.name}]"
    told = given(node)
    arguments = [*told.values()] if len(told) == 1 else [f"{name}={text}" for name, text in told.items()]
    return f"{node.op}{label}({', '.join(arguments)}) {_spec(node)} {_count(node)}"


def _spec(node: Node) -> str:
    try:
        spec = _known(node)
    except Exception:  # noqa: BLE001 - whoever iterates the dataset gets the error
        spec = None
    return "?" if spec is None else spec_text(spec, ",")


def _known(node: Node) -> Spec | None:
    """The spec, if it was asked for before, or follows from specs that were."""
    spec: Spec | None = vars(node).get("spec")  # a cached property
    if spec is not None or node._asks or any(_known(source) is None for source in node.inputs):
        return spec
    return node.spec


def _count(node: Node) -> str:
    asks = any((step.reads_files and "counts" not in vars(step)) or step.counting_calls for step in walk(node))
    return "× ?" if asks else bounds_text(node) or "× ?"
