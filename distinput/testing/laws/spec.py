# SPDX-License-Identifier: Apache-2.0
"""Law 4: every element fits the spec, and the cardinality is true."""

from typing import Any

import numpy as np

from distinput.core.nest import structure_of
from distinput.core.ragged_tensor import RaggedTensor
from distinput.core.spec import DatasetSpec, OptionalSpec, Spec, TensorSpec
from distinput.data.dataset import Dataset
from distinput.plan.node import INFINITE, UNKNOWN
from distinput.testing.laws.trace import most_of

__all__ = ["check_spec"]


def check_spec(dataset: Dataset, *, most: int | None = None) -> None:
    """Law 4: every element fits `element_spec`, with its keys in that order, and the cardinality is true.

    Args:
      dataset: any pipeline.
      most: elements looked at; None: 200 of a pipeline that does not end, else 10,000.

    Raises:
      AssertionError: an element does not fit, or there are more or fewer of them than stated.

    >>> import distinput as di
    >>> check_spec(di.data.Dataset.range(5).batch(2))
    """
    most = most_of(dataset) if most is None else most
    spec = Spec.of(dataset.element_spec)
    cardinality = dataset.cardinality()
    count = 0
    ended = False
    with iter(dataset) as elements:
        while count < most:
            try:
                element = next(elements)
            except StopIteration:
                ended = True
                break
            _check_fits(element, spec, f"element {count}")
            count += 1
    if cardinality == INFINITE and ended:
        raise AssertionError(f"spec: the cardinality is infinite, but there are {count} elements")
    if cardinality >= 0 and (count > cardinality or (ended and count != cardinality)):
        raise AssertionError(
            f"spec: the cardinality is {cardinality}, but there are {count} elements{'' if ended else ' or more'}"
        )
    if cardinality < UNKNOWN:
        raise AssertionError(f"spec: {cardinality} is no cardinality")
    if cardinality >= 0 and len(dataset) != cardinality:
        raise AssertionError(f"spec: the cardinality is {cardinality}, but len() is {len(dataset)}")


def _check_fits(element: Any, spec: Spec, what: str) -> None:
    structure = structure_of(element)
    if structure != spec.structure:
        raise AssertionError(f"spec: {what} has the structure {structure}, the spec has {spec.structure}")
    if structure.form != spec.structure.form:
        raise AssertionError(
            f"spec: {what} is {structure}, with keys or mappings in another order than {spec.structure}"
        )
    for leaf, leaf_spec, path in zip(structure.flatten(element), spec.leaves, structure.paths, strict=True):
        where = f"{what}{path}"
        if isinstance(leaf_spec, OptionalSpec):
            if not leaf_spec.holds(leaf):
                raise AssertionError(f"spec: {where} must fit {leaf_spec}, got {leaf!r}")
        elif isinstance(leaf_spec, DatasetSpec):
            if not isinstance(leaf, Dataset):
                raise AssertionError(f"spec: {where} must be a dataset, got {leaf!r}")  # noqa: TRY004 - a law is broken
            inner = Spec.of(leaf_spec.element_spec)
            for index, member in enumerate(leaf):
                _check_fits(member, inner, f"{where}, its element {index},")
        elif not (
            isinstance(leaf, np.ndarray | np.generic | bytes | RaggedTensor)
            and isinstance(leaf_spec, TensorSpec)
            and leaf_spec.fits_value(leaf)
        ):
            raise AssertionError(f"spec: {where} must fit {leaf_spec}, got {leaf!r}")
        elif isinstance(leaf, np.ndarray) and not leaf.ndim:
            raise AssertionError(f"spec: {where} must be a NumPy scalar, got an array of no dimension: {leaf!r}")
