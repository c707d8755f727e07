# SPDX-License-Identifier: Apache-2.0
"""What is claimed about the results of a function, and the check that every result fits it.

What a function returns is not known before it is called. So a spec that was found by trying it is a claim: every element is
compared with it, a block at a time, and one that differs is an error. If nobody asked for the spec, the first element makes the
claim.
"""

import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from itertools import groupby
from threading import get_ident
from typing import Any

import numpy as np

from distinput.columns.block import Block, ColumnBlock, failed
from distinput.columns.column import Array, Column, Dense
from distinput.columns.ragged import Arrays, Datasets, Objects, Ragged, frozen_rows, ragged_spec
from distinput.columns.regroup import as_nest, as_stated, column_of_values, leaves_for, loose_rows
from distinput.columns.rows import Stream, Together
from distinput.columns.state import Mark
from distinput.errors import FailedPreconditionError
from distinput.run.run import element_text
from distinput.values.leaves import STRING, as_leaves, dtype_name, dtype_of, is_ragged, shape_of
from distinput.values.nest import Structure, structure_of
from distinput.values.spec import (
    DatasetSpec,
    ElementsSpec,
    LeafSpec,
    OptionalSpec,
    RaggedTensorSpec,
    Spec,
    TensorSpec,
    merge_specs,
    opened,
    shape_fits,
)

# ----------------------------------------------------------------------------
# Whether elements are what a signature says, looked at a block at a time.
#
# Whole numbers become those of the signature where these hold more: what a function returns as a number of Python has no
# type of its own. Everything else must fit.
# ----------------------------------------------------------------------------


Misfit = tuple[int, str, str]
"""A row, what it must be, and what it is."""


def widened(block: Block, spec: Spec) -> Block:
    """The rows with integers cast to the dtypes of `spec`, where that is safe."""
    columns = block.columnar().columns
    if len(columns) != len(spec.leaves):
        return block
    changed = [_wider(column, leaf) for column, leaf in zip(columns, spec.leaves, strict=True)]
    if all(new is old for new, old in zip(changed, columns, strict=True)):
        return block
    return ColumnBlock(block.structure, changed, block.size)


def is_exactly(block: Block, spec: Spec) -> bool:
    """Whether the arrays of a block have the very nest, dtypes and shapes of a spec, so that no row need be looked at."""
    return (
        isinstance(block, ColumnBlock)
        and block.structure is spec.structure
        and all(map(_is_array_of, block.columns, spec.leaves))
    )


def _is_array_of(column: Column, of: LeafSpec) -> bool:
    return type(column) is Dense and type(of) is TensorSpec and (column.dtype, column.inner) == (of.dtype, of.shape)


def _wider(column: Column, leaf: LeafSpec) -> Column:
    if isinstance(leaf, ElementsSpec):
        return column
    if leaf.ragged_rank == 0:
        column = _loose(column)
    if column.dtype == leaf.dtype or column.dtype.kind not in "iu":
        return column
    if leaf.dtype.kind not in "iu" or not np.can_cast(column.dtype, leaf.dtype, "safe"):
        return column
    column = column.materialize()  # another dtype is another array
    if column.ragged_rank is not None:
        return frozen_rows(column, lambda rows: _wider(rows, leaf))
    if isinstance(column, Dense):
        return Dense(column.array.astype(leaf.dtype))
    if isinstance(column, Ragged) and isinstance(column.flat, Dense):
        return Ragged(Dense(column.flat.array.astype(leaf.dtype)), column.starts, column.sizes, column.loose)
    if isinstance(column, Objects | Arrays):
        return type(column)([item.astype(leaf.dtype) for item in column.items], leaf.dtype)
    return column


def _loose(column: Column) -> Column:
    """Rows that the signature calls those of ragged tensors: their batches are ragged."""
    if column.lengths() is None or isinstance(column, Datasets):
        return column
    return loose_rows(column)


def first_misfit(block: Block, spec: Spec, *, datasets_alike: bool = True) -> Misfit | None:
    """The first row that does not fit a spec; None if all fit.

    Args:
      block: elements.
      spec: what they must be.
      datasets_alike: whether the elements of datasets among them must fit as well.
    """
    if not block.size:
        return None
    if not _alike(block.structure, spec.structure):
        return 0, f"elements nested as {spec.structure}", f"{block.structure}, each dot a component"
    first: Misfit | None = None
    for column, leaf, path in zip(block.columnar().columns, spec.leaves, spec.structure.paths, strict=True):
        row = _misfit(column, leaf, datasets_alike)
        if row is not None and (first is None or row < first[0]):
            first = row, f"{leaf}{f' in component {path}' if path else ''}", _described(column, row)
    return first


def _alike(a: Structure, b: Structure) -> bool:
    """Whether nests are the same, except that a list may stand for a tuple."""
    sequences = ("list", "tuple")
    if a.kind != b.kind and not (a.kind in sequences and b.kind in sequences):
        return False
    return a.keys == b.keys and len(a.children) == len(b.children) and all(map(_alike, a.children, b.children))


def _misfit(column: Column, leaf: LeafSpec, datasets_alike: bool) -> int | None:
    """The first row of a column that does not fit a spec; arrays and spans are checked as a whole."""
    if isinstance(leaf, OptionalSpec):
        items = column.items if isinstance(column, Datasets) and column.optional else [None]
        return _first_false(np.asarray([item is not None and item.leaf_spec.is_subtype_of(leaf) for item in items]))
    if isinstance(leaf, DatasetSpec):
        if isinstance(column, Datasets) and not datasets_alike:
            return None
        nests = [item.element_spec for item in column.items] if isinstance(column, Datasets) else [None]
        return _first_false(np.asarray([nest == leaf.element_spec for nest in nests]))
    assert isinstance(leaf, TensorSpec)
    if isinstance(column, Datasets) or column.dtype != leaf.dtype:
        return 0
    if leaf.ragged_rank or column.ragged_rank is not None:
        return _ragged_misfit(column, leaf)
    shape = leaf.shape
    if shape is None:
        return None
    if leaf.sizes is not None:
        return _first_false(np.fromiter(map(leaf.fits_value, column.values()), bool, len(column)))
    if column.inner is not None:
        return None if shape_fits(column.inner, shape) else 0
    if isinstance(column, Ragged | Arrays):  # rows that differ in their first dimension alone
        inner = column.flat.inner if isinstance(column, Ragged) else column.items[0].shape[1:]
        if not shape or not shape_fits(inner, shape[1:]):
            return 0
        sizes = column.sizes if isinstance(column, Ragged) else column.lengths()
        return None if shape[0] is None else _first_false(sizes == shape[0])
    return _first_false(np.asarray([shape_fits(shape_of(item), shape) for item in column.values()]))


def _ragged_misfit(column: Column, leaf: TensorSpec) -> int | None:
    """As `_misfit`, where the column or the spec is one of ragged tensors."""
    if column.ragged_rank is None:
        return 0
    found = ragged_spec(column)
    if not found.alike(leaf) or leaf.shape is None:
        return 0
    if shape_fits(found.shape, leaf.shape):
        return None
    return _first_false(np.fromiter(map(leaf.fits_value, column.values()), bool, len(column)))


def _first_false(rows: Array) -> int | None:
    return None if rows.all() else int(rows.argmin())


def _described(column: Column, row: int) -> str:
    if isinstance(column, Datasets) and not column.optional:
        return f"a dataset of {column.items[row].element_spec}"
    return described(column.row(row))


def described(leaf: Any) -> str:
    """A leaf in words."""
    if getattr(leaf, "is_optional", False):
        return f"an Optional of {leaf.element_spec}"
    if getattr(leaf, "nest_leaf", False):
        return "a dataset"
    if is_ragged(leaf):
        return f"a ragged tensor of shape {leaf.shape} with ragged_rank {leaf.ragged_rank} and dtype {dtype_name(leaf.dtype)}"
    text, dtype = " ".join(repr(leaf).split()), dtype_of(leaf)
    kind = f"shape {list(shape_of(leaf))} and dtype {'string' if dtype == STRING else dtype}"
    return f"{kind}, {text if len(text) <= 80 else text[:80] + '...'},"


# ----------------------------------------------------------------------------
# What a function is said to return, the check of every result, and blocks of what fits.
# ----------------------------------------------------------------------------


MadeBlock = tuple[Block, Callable[[int], Mark], Block]
"""The results for some elements, a function that gives the mark after so many of them, and these elements."""

_MOST_AT_ONCE = 32
"""Threads that may ask for the same spec at a time; if there are more, a function asks for its own spec on other threads."""


_LARGE_BYTES = 1 << 17
"""From this size on an array is a block of its own: the allocator asks for fresh pages to put several side by side."""


class SelfReferenceError(FailedPreconditionError):
    """A function asked for the spec of its own results."""


class Claim:
    """What a step claims about its elements; shared by all copies that rewriting makes of the step.

    Attributes:
      spec: found when somebody asked for it.
      kind: structure, dtypes and ranks of the first element of an iteration that began before anybody asked.
    """

    def __init__(self) -> None:
        self.spec: Spec | None = None
        self.kind: Spec | None = None
        self._asking: list[int] = []
        self._endless = False

    def __getstate__(self) -> dict[str, Any]:
        return {"spec": self.spec, "kind": self.kind, "_asking": [], "_endless": False}

    @property
    def wanted(self) -> Spec | None:
        """The spec with which elements are compared; None before the first element."""
        return self.spec or self.kind

    def asked(self, op: str, find: Callable[[], Spec]) -> Spec:
        """The spec, which `find` computes on the first request.

        Raises:
          SelfReferenceError: `find` asks for the spec itself.
        """
        if self.spec is not None:
            return self.spec
        thread = get_ident()
        if thread in self._asking and not self._is_asked_above():
            self._asking.remove(thread)  # a call that an interrupt ended
        self._endless = self._endless or len(self._asking) >= _MOST_AT_ONCE
        error = SelfReferenceError(
            f"{op}: the function asks for the element_spec of the dataset that it makes itself, which is found out by calling "
            "the function; ask for it before, or give the new dataset another name"
        )
        if self._endless or thread in self._asking:
            raise error
        try:
            self._asking.append(thread)
            spec = find()
        except Exception as failure:
            if self._endless:  # which is why the function failed
                raise error from failure
            raise
        finally:
            with suppress(ValueError):
                self._asking.remove(thread)
            if not self._asking:
                self._endless = False
        if self.kind is not None:  # whose keys have the order of the elements that were sent already
            both = merge_specs(spec, self.kind)
            spec = self.kind if both is None else Spec(self.kind.structure, spec.leaves)
        self.spec = self.spec or spec
        return self.spec

    def _is_asked_above(self) -> bool:
        """Whether a call of `asked` is under way on this thread. An interrupt may have ended one before it was noted."""
        frame = sys._getframe(1).f_back
        while frame is not None:
            if frame.f_code is Claim.asked.__code__ and frame.f_locals["self"] is self:
                return True
            frame = frame.f_back
        return False

    def misfit(self, block: Block, ask: Callable[[], Spec]) -> Misfit | None:
        """The first row of a block that does not fit the claim.

        Args:
          block: at least one element.
          ask: gives the spec, which may allow more than the first element shows.
        """
        if self.wanted is None:
            self.kind = _kind_of(block)
        wanted = self.wanted
        assert wanted is not None
        found = first_misfit(block, wanted, datasets_alike=False)
        if found is not None and self.spec is None:
            with suppress(Exception):  # without a spec nothing allows more
                found = first_misfit(block, ask(), datasets_alike=False)
        return found


def held(
    op: str,
    made: Iterator[MadeBlock],
    claim: Claim,
    signature: Spec | None,
    ask: Callable[[], Spec],
    note: Callable[[Exception], None],
    *,
    tolerant: bool,
    refused: Callable[..., Exception] | None = None,
) -> Stream:
    """The blocks of `made`, each compared with the signature or the claim.

    Args:
      op: for the message.
      made: results of a function.
      claim: what is claimed about them, unless there is a signature.
      signature: what the user says about them.
      ask: gives the spec.
      note: is called with the error.
      tolerant: whether an element that differs becomes a failure.
      refused: makes the error; None: `unlike`.

    Raises:
      TypeError: an element differs; those before it are sent first, and `note` is called.
    """

    def built(rows: Block) -> Block:
        """With one order of keys for all elements, whatever order the function gives them in."""
        wanted = signature or claim.wanted
        return rows if wanted is None or not rows.size else rows.built_as(wanted.structure)

    for block, mark_at, arguments in made:
        if signature is not None and is_exactly(block, signature):
            yield block, mark_at(block.size)
            continue
        rows = block if signature is None or not block.size else widened(block, signature)
        done = 0
        while rows.size:
            found = claim.misfit(rows, ask) if signature is None else first_misfit(rows, signature)
            if found is None:
                break
            row, wanted, got = found
            if row:
                yield built(rows.rows(0, row)), mark_at(done + row)
            failure = (refused or unlike)(op, wanted, got, arguments.row(done + row), signed=signature is not None)
            note(failure)
            done += row + 1
            rows = rows.rows(row + 1, rows.size)
            yield failed(failure, tolerant=tolerant), mark_at(done)
        if rows.size or not done:
            yield built(rows), mark_at(block.size)


def behind(at: Callable[[int], Mark], first: int) -> Callable[[int], Mark]:
    """The mark after so many rows, counted from row `first`."""
    return lambda done: at(first + done)


def between(before: Mark, after: Mark, size: int) -> Callable[[int], Mark]:
    """A function that gives the mark after so many of the `size` elements between two marks."""
    return lambda done: after if done == size else {**before, "skip": before["skip"] + done}


def alike(op: str, stream: Stream, claim: Claim, ask: Callable[[], Spec], given: Any, *, tolerant: bool) -> Stream:
    """The elements of a dataset that a function made of `given`, each compared with the claim about all such elements.

    Raises:
      TypeError: one differs.
    """
    for block, after in stream:
        found = claim.misfit(block, ask) if block.size else None  # a failure has no rows
        if found is not None:
            _, wanted, got = found
            error = TypeError(
                f"{op}: the datasets that the function makes must have elements of one kind, {wanted} as at first, got {got} "
                f"for {element_text(given)}; bring them to one kind in the function, or give output_signature= to a map in it"
            )
            yield failed(error, tolerant=tolerant), after
            continue
        yield block if claim.wanted is None or not block.size else block.built_as(claim.wanted.structure), after


def unlike(op: str, wanted: str, got: str, given: Any, *, signed: bool = False) -> TypeError:
    """The error for a result that does not fit the claim or the signature.

    Args:
      op: the op that called the function.
      wanted: what the result must be.
      got: the result.
      given: the element that the function was called with.
      signed: whether that is what the user's signature says.
    """
    if signed:
        return TypeError(
            f"{op}: map_func must return what output_signature says, {wanted}, got {got} for {element_text(given)}; change "
            "one of them"
        )
    return TypeError(
        f"{op}: the function must return {wanted} for every element, as it did at first, got {got} for "
        f"{element_text(given)}; give output_signature= (with None for a dimension that varies), or return one kind of result"
        f"{listed_instead(got)}"
    )


def listed_instead(got: str) -> str:
    """What to add about a result with several components, as `unlike` has it: it was perhaps a list for an array."""
    return "; a list becomes a tuple, np.array(...) of it is one array" if got.startswith("(") else ""


def formed(
    results: list[Any], said: Spec | None = None, together: Together | None = None
) -> Iterator[tuple[Block | Exception, int, int]]:
    """Results of a function as blocks of one kind each: (block, first place, end); an error in the place of a bad result.

    Nearly always all results are of one kind, and then none is looked at on its own.

    Args:
      results: at least one.
      said: what the user says about them.
      together: where the arrays of some results lie; None: nowhere in particular.
    """
    if list in set(map(type, results)):
        results = [as_nest(result, said) for result in results]
    # Large arrays are copied once, by who makes batches of them, and not side by side before that.
    column_of = column_of_values if together is None or not together.holds_all else together.column
    step = 1 if column_of is column_of_values and _is_large(results[0]) else len(results)
    parts = [results[first : first + step] for first in range(0, len(results), step)]
    try:
        blocks = [Block.of_elements(structure_of(part[0]), part, said, column_of) for part in parts]
    except Exception as error:  # noqa: BLE001 - which result is at fault is found below
        whole: Exception = error
    else:
        yield from [(block, place * step, (place + 1) * step) for place, block in enumerate(blocks)]
        return
    kinds: list[Any] = []
    for result in results:
        try:
            kinds.append(_kind_of_one(result, said))
        except Exception as error:  # noqa: BLE001 - yielded in the place of the result
            kinds.append(error)
    if not any(isinstance(kind, Exception) or kind != kinds[0] for kind in kinds):
        raise whole
    first = 0
    for _, group in groupby(range(len(kinds)), lambda place: kinds[place]):
        end = first + len(list(group))
        if isinstance(kinds[first], Exception):
            yield from [(kinds[place], place, place + 1) for place in range(first, end)]
        else:
            yield Block.of_elements(kinds[first][0], results[first:end], said), first, end
        first = end


def _is_large(result: Any) -> bool:
    """Whether one of the arrays in a result is so large that copying it costs more than a block."""
    leaves = result.values() if type(result) is dict else result if type(result) is tuple else (result,)
    return any(type(leaf) is np.ndarray and leaf.nbytes >= _LARGE_BYTES for leaf in leaves)


def _kind_of_one(result: Any, said: Spec | None) -> tuple[Structure, list[Any]]:
    structure = structure_of(result)
    raw, stated = structure.flatten(result), leaves_for(structure, said)
    leaves = as_leaves(raw, structure.paths, as_stated, stated or (None,) * len(raw))
    return structure, [
        getattr(leaf, "is_optional", None)
        if getattr(leaf, "nest_leaf", False)
        else (dtype_of(leaf), getattr(leaf, "ragged_rank", None))
        for leaf in leaves
    ]


def _kind_of(block: Block) -> Spec:
    """Structure, dtypes and ranks of the first element of a block."""
    return opened(Spec(block.structure, tuple(map(_leaf_of, block.columnar().columns))))


def _leaf_of(column: Column) -> LeafSpec:
    if isinstance(column, Datasets):
        return column.items[0].leaf_spec if column.optional else DatasetSpec(())
    if column.ragged_rank is not None:
        return ragged_spec(column)
    if column.inner is not None:
        return TensorSpec(column.inner, column.dtype)
    if isinstance(column, Ragged):
        shape = (None, *column.flat.inner)
        return RaggedTensorSpec(shape, column.dtype, 0) if column.loose else TensorSpec(shape, column.dtype)
    return TensorSpec(shape_of(column.row(0)), column.dtype)
