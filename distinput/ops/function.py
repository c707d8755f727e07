# SPDX-License-Identifier: Apache-2.0
"""User functions: TensorFlow's calling convention, and what they return without running them on the data."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from distinput.core.block import Block
from distinput.core.column import column_of
from distinput.core.nest import structure_of
from distinput.core.run import Run
from distinput.core.spec import DatasetSpec, LeafSpec, Spec, TensorSpec, merge_shapes
from distinput.core.values import STRING, as_leaf, dtype_of, shape_of, zero
from distinput.errors import InvalidArgumentError
from distinput.ops.slices import rows_node
from distinput.plan.node import Node

__all__ = ["calling", "infer", "made_up_results", "spec_of_value"]

_PROBES = ((1, 2), (2, 3), (3, 1), (5, 4), (0, 2), (8, 5))
"""(value, size of an unknown dimension) of the made-up elements."""


def calling(function: Callable[..., Any]) -> Callable[[Any], Any]:
    """`function` as a function of one element: a tuple is unpacked into arguments, a list that it returns is a tuple.

    Source: the convention of `tf.data.Dataset.map`.
    """

    def call(element: Any) -> Any:
        result = function(*element) if type(element) is tuple else function(element)
        return tuple(result) if type(result) is list else result

    return call


def spec_of_value(value: Any) -> Spec:
    """The spec that exactly this value has."""
    structure = structure_of(value)
    return Spec(structure, tuple([_leaf_spec(as_leaf(leaf)) for leaf in structure.flatten(value)]))


def _leaf_spec(leaf: Any) -> LeafSpec:
    if isinstance(leaf, Node):
        return leaf.leaf_spec
    return TensorSpec(shape_of(leaf), dtype_of(leaf))


def infer(op: str, call: Callable[[Any], Any], source: Node) -> Spec:
    """The spec of what `call` returns for the elements of `source`.

    The function runs on made-up elements with several values and several sizes for each unknown dimension; a dimension of
    the result is known where it is the same for all of them. When the function fails on made-up elements, the first real
    element tells dtype and rank, and all dimensions stay unknown.

    Raises:
      InvalidArgumentError: neither way gives an answer.
    """
    made: list[Spec] = []
    failure: Exception | None = None
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for value, size in _PROBES:
            try:
                made.append(spec_of_value(call(_probe(source.spec, value, size))))
            except Exception as error:  # noqa: BLE001 - what was made up may be anything to the function
                failure = failure or error
    if len(made) >= 2:
        merged = made[0]
        for other in made[1:]:
            merged = _merge(op, merged, other)
        return merged
    element = _first_element(source)
    if element is None:
        raise InvalidArgumentError(
            f"{op}: cannot tell what the function returns: it fails on made-up elements ({failure!r}) and the input has no "
            "element; pass output_signature="
        )
    return spec_of_value(call(element[0])).map(_without_dims)


def made_up_results(call: Callable[[Any], Any], source: Node) -> list[Any]:
    """What `call` returns for made-up elements of `source`, those aside for which it fails."""
    made = []
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        for value, size in _PROBES:
            try:
                made.append(call(_probe(source.spec, value, size)))
            except Exception:  # noqa: BLE001 - the function need not work for what was made up
                continue
    return made


def _without_dims(leaf: LeafSpec) -> LeafSpec:
    if isinstance(leaf, DatasetSpec) or leaf.shape is None:
        return leaf
    return leaf.with_shape((None,) * len(leaf.shape))


def _merge(op: str, a: Spec, b: Spec) -> Spec:
    if a.structure != b.structure:
        raise TypeError(f"{op}: the function must return one structure, got {a.structure} and {b.structure}")
    leaves: list[LeafSpec] = []
    for x, y in zip(a.leaves, b.leaves, strict=True):
        if isinstance(x, DatasetSpec) and isinstance(y, DatasetSpec):
            leaves.append(DatasetSpec(_merge(op, Spec.of(x.element_spec), Spec.of(y.element_spec)).nest))
        elif isinstance(x, TensorSpec) and isinstance(y, TensorSpec) and x.dtype == y.dtype:
            leaves.append(x.with_shape(merge_shapes(x.shape, y.shape)))
        else:
            raise TypeError(f"{op}: the function must return one dtype, got {x} and {y}")
    return Spec(a.structure, tuple(leaves))


def _probe(spec: Spec, value: int, size: int) -> Any:
    return spec.structure.build([_probe_leaf(leaf, value, size) for leaf in spec.leaves])


def _probe_leaf(leaf: LeafSpec, value: int, size: int) -> Any:
    if isinstance(leaf, DatasetSpec):
        inner = Spec.of(leaf.element_spec)
        elements = [_probe(inner, value + i, size) for i in range(size)]
        rows = [[as_leaf(x) for x in inner.structure.flatten(e)] for e in elements]
        columns = [column_of(list(c)) for c in zip(*rows, strict=True)]
        made = rows_node(Block(inner.structure, columns, size), inner.leaves).to_user()
        if not leaf.dataset_shape:
            return made
        listed = np.empty([size if d is None else d for d in leaf.dataset_shape], object)
        listed.fill(made)
        return listed
    if leaf.shape is None:
        raise InvalidArgumentError("an element of unknown rank cannot be made up")
    shape = tuple([size if d is None else d for d in leaf.shape])
    if leaf.dtype == STRING:
        text = str(value).encode()
        return np.full(shape, text, dtype=object) if shape else text
    if leaf.dtype.kind in "iufb":
        filled = np.arange(int(np.prod(shape))).reshape(shape) + value if shape else np.asarray(value)
        made = filled.astype(leaf.dtype)
        return made if shape else made[()]
    return zero(leaf.dtype, shape)


def _first_element(source: Node) -> tuple[Any] | None:
    with Run() as run:
        stream = source.open(source.start(0), run)
        try:
            for block, _ in stream:
                if block.size:
                    return (block.row(0),)
        finally:
            stream.close()  # type: ignore[attr-defined]
    return None
