# SPDX-License-Identifier: Apache-2.0
"""What elements of several datasets have in common."""

from collections.abc import Callable

from distinput.core.leaves import dtype_name
from distinput.core.rows import Stream
from distinput.core.spec import ElementsSpec, LeafSpec, Spec
from distinput.plan.node import Node

__all__ = ["common_spec", "in_one_order"]


def common_spec(op: str, sources: tuple[Node, ...]) -> Spec:
    """The spec that the elements of all sources fit.

    Raises:
      TypeError: structures or dtypes differ.
    """
    merged = sources[0].spec
    for source in sources[1:]:
        merged = _merged(op, merged, source.spec)
    return merged


def in_one_order(stream: Stream, spec: Callable[[], Spec]) -> Stream:
    """Elements of several datasets with one order of keys, that of `spec`, which is asked for where there are keys."""
    for block, state in stream:
        yield block.built_as(spec().structure) if block.size and block.structure.form else block, state


def _merged(op: str, a: Spec, b: Spec) -> Spec:
    if a.structure != b.structure:
        raise TypeError(
            f"{op}: all datasets must have the same structure of elements, got {a.structure} and {b.structure}"
        )
    return Spec(a.structure, tuple([_common(op, x, y) for x, y in zip(a.leaves, b.leaves, strict=True)]))


def _common(op: str, a: LeafSpec, b: LeafSpec) -> LeafSpec:
    if isinstance(a, ElementsSpec) and type(a) is type(b):
        try:
            inner = _merged(op, Spec.of(a.element_spec), Spec.of(b.element_spec)).nest
        except TypeError:
            raise TypeError(f"{op}: all datasets must have the same element type, got {a} and {b}") from None
        return a.of_elements(inner, b)
    if isinstance(a, ElementsSpec) or isinstance(b, ElementsSpec):
        raise TypeError(f"{op}: all datasets must have the same element type, got {a} and {b}")
    if a.ragged_rank != b.ragged_rank:
        raise TypeError(f"{op}: all datasets must have the same element type, got {a} and {b}")
    if a.dtype != b.dtype:
        raise TypeError(
            f"{op}: all datasets must have the same dtypes, got {dtype_name(a.dtype)} and {dtype_name(b.dtype)}"
        )
    return a.merged_with(b)  # type: ignore[no-any-return]  # specs of one kind
