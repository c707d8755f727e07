# SPDX-License-Identifier: Apache-2.0
"""`WholeBlock`: functions of one element, called once for all elements of a block."""

from collections.abc import Callable, Iterator, Sequence
from contextvars import copy_context
from itertools import chain as joined
from itertools import islice
from typing import Any

import numpy as np

from distinput.arrow.adopt import adopt
from distinput.columns.block import Block, ColumnBlock, Failure
from distinput.columns.column import Dense
from distinput.columns.regroup import as_nest, as_stated, leaves_for
from distinput.columns.rows import PACE_SECONDS, Stream, passing_over
from distinput.columns.state import State
from distinput.functions.claim import MadeBlock, behind
from distinput.functions.inference import samples
from distinput.functions.parts import Calling
from distinput.functions.vectorized.answers import Rules, same_bits
from distinput.functions.vectorized.stand_in import Refused, StandIn, Unfit
from distinput.functions.vectorized.transplant import Transplant
from distinput.plan.node import Node
from distinput.run.run import Run
from distinput.values.buffers import copy_of
from distinput.values.leaves import STRING, as_leaf
from distinput.values.nest import Structure, structure_of
from distinput.values.spec import LeafSpec, Spec

_SAMPLES = 5
"""Elements of the first block of a kind that are compared with calls for each of them; later one of each block."""


class WholeBlock:
    """Functions of one element, called for all elements of a block; the first one gets the elements.

    Args:
      functions: the user's.
      measured: whether operations that are not exact by construction are measured, or refused.
      said: what the user says about the results of the last one.

    Raises:
      Refused: one of them cannot be called that way.
    """

    def __init__(self, functions: Sequence[Callable[..., Any]], *, measured: bool, said: Spec | None = None) -> None:
        self._said = said
        self._rules = Rules(measured=measured)
        self._functions = [Transplant(function, self._rules) for function in functions]
        self._kinds: set[Any] = set()
        self._blocks = 0

    def __call__(self, rows: Block) -> ColumnBlock:
        """The results for all rows.

        Raises:
          Refused: a function cannot be called that way.
          Unfit: these rows need calls for each of them.
        """
        for function in self._functions:
            function.check()
        columns = rows.materialize().columns
        if not all(isinstance(column, Dense) for column in columns) or not _is_plain(rows.structure):
            raise Refused("its elements are not nests of tuples and dicts of numbers of one shape")
        given = [np.asarray(column.array) for column in columns if isinstance(column, Dense)]
        value = rows.structure.build([StandIn(array, self._rules) for array in given])
        for function in self._functions:
            value = function.call(*value) if type(value) is tuple else function.call(value)
            value = _as_element(value, self._said if function is self._functions[-1] else None)
        structure = _structure(value)
        taken = {id(array) for array in given}
        made = [Dense(_column(leaf, rows.size, taken)) for leaf in structure.flatten(value)]
        return ColumnBlock(structure, made, rows.size)

    def compared(self, rows: Block, made: ColumnBlock, call: Callable[[Any], Any]) -> None:
        """Compare some results with those of calls for each element.

        Raises:
          Refused: they differ.
        """
        kind = str([(c.array.shape[1:], c.dtype) for c in rows.materialize().columns if isinstance(c, Dense)])
        many = _SAMPLES if kind not in self._kinds else 1
        self._kinds.add(kind)
        for row in sorted({(self._blocks + rows.size * i // many) % rows.size for i in range(many)}):
            wanted = _as_element(call(rows.row(row)), self._said)
            if structure_of(wanted) != made.structure:
                raise Refused("it returned another structure for a single element")
            for leaf, column in zip(made.structure.flatten(wanted), made.columns, strict=True):
                assert isinstance(column, Dense)
                if not same_bits(as_leaf(leaf), column.array[row]):
                    raise Refused("a result for a block differed from the one for a single element")
        self._blocks += 1


def _is_plain(structure: Structure) -> bool:
    if structure.kind == "leaf":
        return structure.mapping is None
    return structure.kind in ("tuple", "dict") and structure.mapping is None and all(map(_is_plain, structure.children))


def _is_leaf(value: Any) -> bool:
    return isinstance(value, StandIn)


def _structure(value: Any) -> Structure:
    return structure_of(value, is_leaf=_is_leaf)


def _as_element(value: Any, said: Spec | None) -> Any:
    """What a function returned as the next one gets it: a list is a tuple, a number one of NumPy."""
    value = as_nest(value, said)
    structure = _structure(value)
    stated = leaves_for(structure, said) or (None,) * structure.num_leaves
    leaves = zip(structure.flatten(value), stated, strict=True)
    return structure.build([leaf if _is_leaf(leaf) else _constant(leaf, spec) for leaf, spec in leaves])


def _constant(value: Any, spec: LeafSpec | None) -> Any:
    if isinstance(value, list) and any(map(_is_leaf, value)):
        raise Refused("it returns a list of arrays inside of its result")
    adopted = adopt(value)
    if isinstance(adopted, dict):
        raise Refused("it returns a table")
    return as_stated(np.asarray(adopted) if isinstance(adopted, np.ndarray) else adopted, spec)


def _column(leaf: Any, size: int, taken: set[int]) -> Any:
    """All rows of a result in memory that nobody else holds."""
    if not isinstance(leaf, StandIn):
        dtype = getattr(leaf, "dtype", STRING)
        if not isinstance(leaf, np.ndarray | np.generic) or dtype.kind not in "biuf":
            raise Refused("it returns text, a dataset, or another object that is no number")
        return np.broadcast_to(leaf, (size, *np.shape(leaf))).copy()
    array = leaf.block
    if len(array) != size:
        raise Unfit
    if array.base is not None or not array.flags.c_contiguous or id(array) in taken or not array.flags.owndata:
        array = copy_of(array)
    taken.add(id(array))
    return array


# ----------------------------------------------------------------------------
# `Vectorizer`: whether the functions of a `map` are called for whole blocks, and if not, why not.
# ----------------------------------------------------------------------------


_MOST_MISSES = 8
"""Blocks in a row that need calls for each element, after which it is not tried any more."""

_MOST_ROW_BYTES = 1 << 14
""""auto" leaves out larger elements: there a call costs little besides its work."""


class Vectorizer:
    """Calls functions for whole blocks as long as that works.

    Args:
      functions: the user's; the first one gets the elements.
      call: all functions, for one element.
      measured: whether operations that are not exact by construction are measured, and whole blocks are tried for few and for
        large elements too.
      reason: why whole blocks are not even tried.
      said: what the user says about the results.

    Attributes:
      reason: why the functions are called element by element, as a clause after "since"; None while they are not.
      blocks: how many whole blocks were made.
    """

    def __init__(
        self,
        functions: Sequence[Callable[..., Any]],
        call: Callable[[Any], Any],
        *,
        measured: bool,
        reason: str | None = None,
        said: Spec | None = None,
    ) -> None:
        self.reason = reason
        self._said = said
        self.blocks = 0
        self._functions, self._call, self._measured = functions, call, measured
        self._whole: WholeBlock | None = None
        self._misses = 0

    def refuses(self, row_bytes: float) -> bool:
        """Whether calls for each element are to be made, for elements of this size."""
        if self.reason is None and not self._measured and not self.blocks and row_bytes > _MOST_ROW_BYTES:
            self.reason = f"elements of {row_bytes:,.0f} bytes gain little; vectorize=True takes them too"
        return self.reason is not None

    def __str__(self) -> str:
        if self.reason is not None:
            return f"element by element, since {self.reason}"
        return "whole blocks" if self.blocks else "whole blocks are tried"

    def made(self, rows: Block) -> Block | None:
        """The results for these rows; None: call the functions for each of them."""
        if self.reason is not None:
            return None
        try:
            # In a context of its own, since an interrupt may come before errstate has restored the one that it found.
            block = copy_context().run(self._strictly, rows)
        except Refused as refusal:
            self.reason = str(refusal)
            return None
        except (Unfit, Exception):  # noqa: BLE001 - calls for each element say which one is at fault, and why
            self._misses += 1
            if self._misses >= _MOST_MISSES:
                self.reason = f"the values of {_MOST_MISSES} blocks in a row raised errors or warnings"
            return None
        self._misses = 0
        self.blocks += 1
        return block

    def _strictly(self, rows: Block) -> Block:
        with np.errstate(**_strict()):
            if self._whole is None:
                self._whole = WholeBlock(self._functions, measured=self._measured, said=self._said)
            made = self._whole(rows)
            self._whole.compared(rows, made, self._call)
            return made


def _strict() -> dict[str, Any]:
    """Floating-point errors of a block are raised, so that calls for each element give the warnings they always gave."""
    return {name: "ignore" if how == "ignore" else "raise" for name, how in np.geterr().items()}


# ----------------------------------------------------------------------------
# Results of functions that are called for whole blocks, in pieces that stay in a core's cache.
# ----------------------------------------------------------------------------


_PIECE_BYTES = 1 << 18
"""Bytes of the elements, or of the results, of one piece."""

_FIRST, _FEWEST, _MOST = 64, 16, 32768
"""Elements of the first piece, whose time tells how many the next ones may have; and the fewest and the most of a piece."""


def called_by_block(
    upstream: Stream,
    state: State,
    verdict: Vectorizer,
    calling: Calling,
    by_element: Callable[[Stream, State], Iterator[MadeBlock]],
) -> Iterator[MadeBlock]:
    """Blocks of results; `by_element` takes over with the first element for which the verdict is against whole blocks."""
    run, counter = calling.run, calling.counter
    latest: list[tuple[Block, State]] = []

    def kept() -> Stream:
        for pair in upstream:
            latest[:] = [pair]
            yield pair

    most = run.at_once(_FIRST)
    for rows, _, _, mark_at in passing_over(kept(), state):
        if type(rows) is Failure:
            yield rows, mark_at, rows
            continue
        first = 0
        row_bytes = rows.nbytes / max(1, rows.size)
        while first < rows.size:
            if most < _FEWEST or verdict.refuses(row_bytes):
                counter.choice = ""
                yield from by_element(joined(latest, upstream), mark_at(first))
                return
            part = rows.rows(first, first + most)
            begin = Run.clock()
            made = verdict.made(part)
            counter.choice = "whole blocks" if made is not None else "element by element"
            if made is not None:
                yield made, behind(mark_at, first), part
                row_bytes = max(row_bytes, made.nbytes / made.size)
            elif verdict.reason is None:
                done = calling.work(part, None)
                yield from calling.delivered(done, part, behind(mark_at, first))
            else:
                continue
            pace = PACE_SECONDS * part.size / max(Run.clock() - begin, 1e-9)
            piece = max(_FEWEST, _PIECE_BYTES / max(1.0, row_bytes))
            most = run.at_once(int(max(_FEWEST, min(pace, 8 * part.size, piece, _MOST))))
            first += part.size


# ----------------------------------------------------------------------------
# A trial of whole blocks on a few elements, real or made up, for `explain()` before the first pass.
# ----------------------------------------------------------------------------


_ELEMENTS = 4


def tried(verdict: Vectorizer, source: Node) -> str:
    """What a fresh verdict says of some elements of `source`."""
    try:
        spec = source.spec
        elements = list(islice(samples(source), 1)) * _ELEMENTS  # others may have other shapes
        rows = Block.of_elements(spec.structure, elements) if elements else None
    except Exception:  # noqa: BLE001 - then only a pass can tell
        return str(verdict)
    if rows is not None:
        verdict.refuses(rows.nbytes / rows.size)
        verdict.made(rows)
    return str(verdict)
