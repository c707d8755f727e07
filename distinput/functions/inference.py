# SPDX-License-Identifier: Apache-2.0
"""What a function returns, as far as that can be found before the iteration by trying it on samples.

Functions are not traced, so a spec found here is a claim (`functions/claim.py`), with which every element is compared.
"""

import threading
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextvars import copy_context
from itertools import islice, pairwise
from types import CodeType
from typing import Any

import numpy as np

from distinput.arrow.adopt import adopt
from distinput.columns.block import ColumnBlock, Failure
from distinput.columns.regroup import column_of
from distinput.errors import InvalidArgumentError
from distinput.functions.claim import SelfReferenceError
from distinput.plan.check import cells_of
from distinput.plan.families import InMemory, Rows, SameElements
from distinput.plan.node import Node
from distinput.run.run import Run, called_once
from distinput.values.leaves import STRING, as_leaf, zero
from distinput.values.nest import Structure
from distinput.values.ragged_rows import splits_of
from distinput.values.ragged_tensor import RaggedTensor
from distinput.values.sparse_tensor import SparseTensor
from distinput.values.spec import (
    DatasetSpec,
    ElementsSpec,
    LeafSpec,
    OptionalSpec,
    Spec,
    TensorSpec,
    merge_specs,
    opened,
)

# ----------------------------------------------------------------------------
# Elements on which a function is tried to find out what it returns: real ones if they are in memory, otherwise made up.
#
# A function may treat one number differently from the next, so numbers that occur in its code are tried too.
# ----------------------------------------------------------------------------


_VALUES = ((1, 2), (2, 3), (3, 1), (5, 4), (0, 2), (8, 5), (4, 7), (12, 3), (-3, 6))
"""(value, size of an unknown dimension) of the made-up elements."""

_SHAPED = ((1, 3, "same"), (0, 4, "same"), (7, 5, "falling"), (3, 6, "mixed"), (-2, 4, "mixed"))
"""The same, with how an array is filled."""

_ROWS = 12
"""Elements in memory that are tried first."""

_MOST_FAILURES = 100
"""Elements on which the functions of a source may fail before the first one on which they work."""

_MOST_NUMBERS, _LARGEST, _LARGEST_SIZE, _DEPTH = 16, 4096, 256, 3
"""How many numbers in the code of a function are tried; how large made-up elements may be, and sizes; and how deeply the
functions that it names are searched."""


def samples(source: Node) -> Iterator[Any]:
    """Some elements of `source`, or made-up ones that fit its spec."""
    base = in_memory(source)
    if base is None:
        return made_up_samples(source.spec)
    count = base.cardinality
    rows = range(_ROWS) if not 0 <= count <= _ROWS else range(count)
    spread = [count // 3, count // 2, count - 1] if count > _ROWS else []
    return base.fetch(np.array([*rows, *spread]), 0).elements()


def made_up_samples(spec: Spec) -> Iterator[Any]:
    """Made-up elements that fit a spec; none if it leaves a rank open."""
    if any(isinstance(leaf, TensorSpec) and leaf.shape is None for leaf in spec.leaves):
        return iter(())
    return (_made_up(spec, value, size, "rising") for value, size in _VALUES)


def further_samples(source: Node, functions: tuple[Callable[..., Any], ...]) -> Iterator[Any]:
    """More samples: numbers that occur in the code of `functions` with their neighbours, and arrays filled in other ways."""
    numbers = sorted({c + d for function in functions for c in _numbers(function) for d in (-1, 0, 1)}, key=abs)
    base = in_memory(source)
    if base is not None:
        rows = np.array(base.rows_of(numbers)[: 3 * _MOST_NUMBERS], np.int64)
        return base.fetch(rows, 0).elements() if len(rows) else iter(())
    numbers = [n for n in numbers if abs(n) <= _LARGEST][: 3 * _MOST_NUMBERS]
    sized = [(n, n if 0 <= n <= _LARGEST_SIZE else 3, "rising") for n in numbers]
    return (_made_up(source.spec, value, size, fill) for value, size, fill in (*_SHAPED, *sized))


def in_memory(source: Node) -> InMemory | None:
    """The source in memory whose elements `source` hands on, all or some of them; None if there is no such source."""
    node = source
    while isinstance(node, SameElements):
        node = node.input
    return node if isinstance(node, InMemory) and node.cardinality else None


def _made_up(spec: Spec, value: int, size: int, fill: str) -> Any:
    """An element that fits `spec`.

    Args:
      spec: of the element.
      value: the first number.
      size: of unknown dimensions.
      fill: how arrays continue: "rising", "same", "falling" or "mixed".
    """
    spec = spec.folded
    return spec.structure.build([_made_up_leaf(leaf, value, size, fill) for leaf in spec.leaves])


def _made_up_leaf(leaf: LeafSpec, value: int, size: int, fill: str) -> Any:
    if isinstance(leaf, OptionalSpec):
        return leaf.value_type(_made_up(Spec.of(leaf.element_spec), value, size, fill), leaf.element_spec)
    if isinstance(leaf, DatasetSpec):
        inner = Spec.of(leaf.element_spec)
        elements = [_made_up(inner, value + i, size, fill) for i in range(size)]
        rows = [[as_leaf(x) for x in inner.structure.flatten(e)] for e in elements]
        columns = [column_of(list(c)) for c in zip(*rows, strict=True)]
        values = Rows(ColumnBlock(inner.structure, columns, size), leaves=inner.leaves).to_user()
        if not leaf.dataset_shape:
            return values
        listed = np.empty([size if d is None else d for d in leaf.dataset_shape], object)
        listed.fill(values)
        return listed
    assert isinstance(leaf, TensorSpec), "an iterator is no component of an element"
    if leaf.ragged_rank:
        return _made_up_ragged(leaf, value, size, fill)
    shape = tuple([size if d is None else d for d in leaf.shape or ()])
    if leaf.is_sparse:
        return _made_up_sparse(leaf, shape, value, size, fill)
    if leaf.dtype == STRING:
        text = str(value).encode()
        return np.full(shape, text, dtype=object) if shape else text
    if leaf.dtype.kind not in "iufb":
        return np.zeros(shape, leaf.dtype) if shape else zero(leaf.dtype, ())
    count = int(np.prod(shape))
    steps = {
        "rising": np.arange(count),
        "same": np.zeros(count, np.int64),
        "falling": -np.arange(count),
        "mixed": np.arange(count) * 5 % 7 * (np.arange(count) % 2 * 2 - 1),
    }[fill]
    values = (steps.reshape(shape) + value).astype(leaf.dtype)
    return values if shape else values[()]


def _made_up_sparse(leaf: TensorSpec, shape: tuple[int, ...], value: int, size: int, fill: str) -> Any:
    """A sparse tensor of a shape, with values on its diagonal."""
    places = np.repeat(np.arange(min(shape, default=0))[:, None], len(shape), axis=1)
    values = _made_up_leaf(TensorSpec((len(places),), leaf.dtype), value, size, fill)
    return SparseTensor(places, values, np.array(shape, np.int64))


def _made_up_ragged(leaf: TensorSpec, value: int, size: int, fill: str) -> Any:
    """A ragged tensor: rows of unknown lengths have `size` values or a few less."""
    assert leaf.shape is not None
    assert leaf.ragged_rank is not None
    rows = size if leaf.shape[0] is None else leaf.shape[0]
    levels = []
    for d in leaf.shape[1 : leaf.ragged_rank + 1]:
        lengths = np.full(rows, d) if d is not None else np.maximum(size - np.arange(rows) % 3, 0)
        levels.append(splits_of(lengths))
        rows = int(lengths.sum())
    made = _made_up_leaf(TensorSpec((rows, *leaf.shape[leaf.ragged_rank + 1 :]), leaf.dtype), value, size, fill)
    for splits in reversed(levels):
        made = RaggedTensor(made, splits)
    return made


def real_elements(source: Node) -> Iterator[Any]:
    """The elements of `source` in any order, each made without the later ones, skipping those on which a function fails."""
    node = _at_once(source)
    failures: list[Exception] = []
    found = False
    with Run(run_ahead=0).asking(tolerant=True, sampling=True) as run:
        stream = node.open(node.start(0), run)
        try:
            for block, _ in stream:
                if type(block) is Failure:
                    failures.append(block.error)
                    if len(failures) > _MOST_FAILURES:
                        break
                for element in block.elements() if block.size else ():
                    found = True
                    yield element
        finally:
            stream.close()  # type: ignore[attr-defined]
    if failures and not found:
        raise failures[0]


def _at_once(node: Node) -> Node:
    """The same elements in any order, without steps that make or hold many of them before the first; a hint divides none."""
    if isinstance(node, SameElements) and (node.delays or getattr(node, "is_hint", False)):
        return _at_once(node.input)
    return node.with_changed_inputs(_at_once)


def _numbers(function: Any) -> set[int]:
    """Integers in the code of a function, in its closure, and in the functions that it names."""
    found: set[int] = set()
    _look_into(function, found, set(), _DEPTH)
    return set(sorted(found, key=abs)[:_MOST_NUMBERS])


def _look_into(value: Any, found: set[int], seen: set[int], depth: int) -> None:
    if id(value) in seen or depth < 0:
        return
    seen.add(id(value))
    whole_float = isinstance(value, float) and value.is_integer()
    if whole_float or (isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)):
        found.add(int(value))
    elif isinstance(value, tuple | list | frozenset | set | Mapping):
        if len(value) <= 4 * _MOST_NUMBERS:
            for item in value:
                _look_into(item, found, seen, depth - 1)
    elif isinstance(value, CodeType):
        for constant in value.co_consts:
            _look_into(constant, found, seen, depth)
    elif not isinstance(value, type):
        for part in parts_of(value):
            _look_into(part, found, seen, depth - 1)


def parts_of(function: Any) -> Iterator[Any]:
    """Everything on which the result of a function may depend: its code, defaults, closure, and the globals that it names."""
    function = getattr(function, "__func__", function)
    for name in ("func", "args", "keywords", "__wrapped__"):  # of partial objects and wrappers
        yield getattr(function, name, ())
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        call = vars(type(function)).get("__call__")
        code = getattr(call, "__code__", None)
        if isinstance(code, CodeType):
            yield call
            yield list(getattr(function, "__dict__", {}).values())
        return
    yield code
    yield getattr(function, "__defaults__", None) or ()
    yield from cells_of(function).values()
    known = getattr(function, "__globals__", {})
    yield from [known[name] for name in code.co_names if name in known]


# ----------------------------------------------------------------------------
# What a function returns, found by calling it with samples.
# ----------------------------------------------------------------------------


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
        # The run that reads it is closed before the yield.
        yield from list(islice(_results(call, real_elements(source)), 1))


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
            if threading.current_thread() is threading.main_thread():
                warnings.filters = filters  # for the same reason
        yield result


def _silently(call: Callable[[Any], Any], element: Any) -> Any:
    if threading.current_thread() is not threading.main_thread():  # filters are those of the whole process
        with np.errstate(all="ignore"):
            return call(element)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return call(element)


def _holds_none(structure: Structure) -> bool:
    return structure.kind == "none" or any(map(_holds_none, structure.children))


def _knows_a_dimension(leaf: LeafSpec) -> bool:
    if isinstance(leaf, ElementsSpec):
        return any(map(_knows_a_dimension, Spec.of(leaf.element_spec).leaves))
    return bool(leaf.shape) and any(d is not None for d in leaf.shape or ())


def _shown(call: Callable[[Any], Any], source: Node) -> Spec | None:
    """The spec of what `call` returns for the first real element on which it works; None if there are no elements."""
    failure: Exception | None = None
    for count, element in enumerate(real_elements(source)):
        try:
            return Spec.of_value(adopt(called_once(call, element)))
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
