# SPDX-License-Identifier: Apache-2.0
"""What a function returns, as far as that can be found before the iteration by trying it on samples.

Functions are not traced, so a spec found here is a claim (`functions/claim.py`), with which every element is compared.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from itertools import islice, pairwise
from typing import Any

import numpy as np

from distinput.core.adopt import adopt
from distinput.core.nest import Structure
from distinput.core.spec import ElementsSpec, LeafSpec, Spec, TensorSpec, merge_specs, opened
from distinput.errors import InvalidArgumentError
from distinput.functions.claim import SelfReferenceError
from distinput.functions.samples import further_samples, in_memory, made_up_samples, real_elements, samples
from distinput.plan.node import Node

__all__ = ["infer", "results_of"]


def infer(op: str, call: Callable[[Any], Any], source: Node, *functions: Callable[..., Any]) -> Spec:
    """The spec of what `call` returns for the elements of `source`.

    If these are numbers of known shapes, `call` is tried on some of them, or on made-up ones; a dimension is known if it is the
    same in all results. Text and bytes are never made up: the first real element shows dtype and rank, and every dimension is
    unknown. The same holds if the samples give different answers. If a dimension of the input is unknown, or the input is a
    dataset, the first real element must agree with the samples.

    Args:
      op: for the message.
      call: element -> result.
      source: the elements.
      functions: the user's functions that `call` calls.

    Raises:
      InvalidArgumentError: there is no element, and `call` fails on all made-up ones.
      TypeError: elements in memory show that it returns results of several kinds.
    """
    leaves = source.spec.leaves
    told = _told_by_samples(op, call, source, functions) if all(map(_is_numeric, leaves)) else None
    if told is not None and all(map(_is_known, leaves)):
        return told
    shown = _shown(call, source)
    if shown is None:
        return _without_elements(op, call, source)
    both = None if told is None else merge_specs(told, shown)
    return opened(shown) if both is None else both


def results_of(call: Callable[[Any], Any], source: Node) -> Iterator[Any]:
    """What `call` returns for some elements of `source`, skipping those on which it fails: shows which datasets it makes.

    The elements are real ones if they are in memory; otherwise made up, or the first real one if `call` fails on all of those.
    """
    found = False
    for result in _results(call, samples(source)):
        found = True
        yield result
    if not found and in_memory(source) is None:
        yield from list(
            islice(_results(call, real_elements(source)), 1)
        )  # the run that reads it is closed before the yield


def _is_numeric(leaf: LeafSpec) -> bool:
    if isinstance(leaf, ElementsSpec):
        return all(map(_is_numeric, Spec.of(leaf.element_spec).leaves))
    return leaf.dtype.kind in "biufc" and leaf.shape is not None


def _is_known(leaf: LeafSpec) -> bool:
    return isinstance(leaf, TensorSpec) and leaf.size is not None


def _told_by_samples(
    op: str, call: Callable[[Any], Any], source: Node, functions: tuple[Callable[..., Any], ...]
) -> Spec | None:
    """The spec that fits the results for all samples on which the function works; None if they tell too little."""
    real = in_memory(source)
    specs = list(_specs(call, samples(source)))
    if len(specs) < (1 if real else 2):
        return None
    told = _merged(specs)
    if told is not None and any(map(_knows_a_dimension, told.leaves)):
        specs += _specs(call, further_samples(source, functions))
        told = _merged(specs)
    if told is not None and real is not None and any(map(_knows_a_dimension, told.leaves)):
        # Elements in memory may be alike by chance; whether a dimension is known must not depend on that.
        alike = (merge_specs(told, spec) for spec in _specs(call, made_up_samples(source.spec)))
        told = _merged([told, *[spec for spec in alike if spec is not None]])
    if told is None and real is source:
        a, b = next((a, b) for a, b in pairwise(specs) if merge_specs(a, b) is None)
        what = f"structure, got {a.structure} and {b.structure}"
        if a.structure == b.structure:
            what = f"dtype, got {a.nest} and {b.nest}"
        raise TypeError(
            f"{op}: the function must return one {what}; give output_signature=, or return one kind of result"
        )
    # A function often returns None for what it does not know.
    return None if told is None or _holds_none(told.structure) else told


def _specs(call: Callable[[Any], Any], elements: Iterator[Any]) -> Iterator[Spec]:
    """The specs of what `call` returns for elements, skipping those on which it fails."""
    for result in _results(call, elements):
        try:
            yield Spec.of_value(adopt(result))
        except SelfReferenceError:
            raise
        except Exception:  # noqa: BLE001 - the element may be made up
            continue


def _merged(specs: Sequence[Spec]) -> Spec | None:
    """The spec that fits all, if there is one."""
    found: Spec | None = specs[0] if specs else None
    for spec in specs[1:]:
        found = None if found is None else merge_specs(found, spec)
    return found


def _results(call: Callable[[Any], Any], elements: Iterator[Any]) -> Iterator[Any]:
    """What `call` returns for elements, skipping those on which it fails."""
    for element in elements:
        filters = warnings.filters
        try:
            # In a context of its own, since an interrupt may come before errstate has restored the one that it found.
            result = copy_context().run(_silently, call, element)
        except SelfReferenceError:
            raise
        except Exception:  # noqa: BLE001 - it need not work for made-up elements
            continue
        finally:
            warnings.filters = filters  # for the same reason
        yield result


def _silently(call: Callable[[Any], Any], element: Any) -> Any:
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call(element)


def _holds_none(structure: Structure) -> bool:
    return structure.kind == "none" or any(map(_holds_none, structure.children))


def _knows_a_dimension(leaf: LeafSpec) -> bool:
    if isinstance(leaf, ElementsSpec):
        return any(map(_knows_a_dimension, Spec.of(leaf.element_spec).leaves))
    return bool(leaf.shape) and any(d is not None for d in leaf.shape or ())


_MOST_FAILURES = 100
"""Real elements on which a function may fail before the first one that shows what it returns."""


def _shown(call: Callable[[Any], Any], source: Node) -> Spec | None:
    """The spec of what `call` returns for the first real element on which it works; None if there are no elements."""
    failure: Exception | None = None
    for count, element in enumerate(real_elements(source)):
        try:
            return Spec.of_value(adopt(call(element)))
        except SelfReferenceError:
            raise
        except Exception as error:  # noqa: BLE001 - raised if no element shows more
            failure = failure or error
            if count >= _MOST_FAILURES:
                break
    if failure is not None:
        raise failure
    return None


def _without_elements(op: str, call: Callable[[Any], Any], source: Node) -> Spec:
    """A spec for a source without elements, which none can contradict."""
    failure: Exception | None = None

    def tried(element: Any) -> Any:
        nonlocal failure
        try:
            return call(element)
        except Exception as error:
            failure = failure or error
            raise

    told = _merged(list(_specs(tried, made_up_samples(source.spec))))
    if told is None:
        why = f" ({failure!r})" if failure is not None else ""
        raise InvalidArgumentError(
            f"{op}: cannot tell what the function returns: the input has no element, and made-up elements do not tell it"
            f"{why}; pass output_signature="
        )
    return opened(told)
