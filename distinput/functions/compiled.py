# SPDX-License-Identifier: Apache-2.0
"""Functions compiled by numba, called for every element of a block in compiled code."""

from collections.abc import Callable, Iterator
from functools import cached_property, partial
from typing import Any

from distinput.columns.block import Block, ColumnBlock, Failure, sound_parts
from distinput.columns.column import Dense
from distinput.columns.rows import PACE_SECONDS, Stream, passing_over
from distinput.columns.state import State
from distinput.functions.claim import MadeBlock, behind
from distinput.kernels.row_loop import RowLoop, row_loop
from distinput.run.run import Run, element_text
from distinput.values.buffers import empty
from distinput.values.nest import LEAF, Structure, tuple_of
from distinput.values.spec import LeafSpec, Spec, TensorSpec

_FEWEST = 64
"""Rows of the first call, whose time tells how many rows the next ones may take before results have to be sent."""


class Compiled:
    """A function compiled by numba, on elements that are numbers or tuples of numbers.

    Args:
      function: numba's.
      spec: of the elements.
    """

    op = "map"

    def __init__(self, function: Any, spec: Spec) -> None:
        self.functions = (function,)
        self.settled, self.kinds = True, ()  # as a chain of one function
        self.said = None  # its results have the types of numba
        self._given = spec

    def settle(self, kinds: tuple[Spec | None, ...]) -> None:
        """Do nothing: numba knows what the function returns."""

    @cached_property
    def loop(self) -> RowLoop | None:
        """The compiled loop; None if numba finds that the function does not take and return numbers."""
        return row_loop(self.functions[0], [leaf.dtype for leaf in self._given.leaves if isinstance(leaf, TensorSpec)])

    @cached_property
    def spec(self) -> Spec:
        """The spec of the results: numbers of the types that numba infers."""
        assert self.loop is not None
        leaves: tuple[LeafSpec, ...] = tuple([TensorSpec((), dtype) for dtype in self.loop.dtypes])
        structure: Structure = tuple_of([LEAF] * len(leaves)) if self.loop.is_tuple else LEAF
        return Spec(structure, leaves)

    def block(self, rows: Block) -> Block:
        """The results for all rows."""
        assert self.loop is not None
        arrays = [column.array for column in rows.materialize().columns if isinstance(column, Dense)]
        made = [empty((rows.size,), dtype) for dtype in self.loop.dtypes]
        self.loop(arrays, made)
        return ColumnBlock(self.spec.structure, [Dense(array) for array in made], rows.size)

    def results(self, rows: Block, _: object = None) -> Iterator[Any]:
        """The results one by one, up to an error."""
        try:
            made = self.block(rows)
        except Exception:  # noqa: BLE001 - raised again by the row that fails
            return (self.block(rows.rows(row, row + 1)).row(0) for row in range(rows.size))
        return made.elements()

    def place(self, error: BaseException, element: Any) -> tuple[int, Any]:
        """Which function raised an error, and its argument."""
        return 0, element

    def told(self, given: Any) -> str:
        """An argument in words, for notes on errors."""
        return element_text(given)

    def __reduce__(self) -> tuple[Any, ...]:
        return Compiled, (self.functions[0], self._given)

    def stream(
        self, upstream: Stream, state: State, run: Run, note: Callable[[Exception, Any], None]
    ) -> Iterator[MadeBlock]:
        """Blocks of results, which are sent every few milliseconds, and before an error is raised."""
        most = run.at_once(_FEWEST)
        for rows, at in passing_over(upstream, state):
            if type(rows) is Failure:
                yield rows, at, rows
                continue
            first = 0
            while first < rows.size:
                part = rows.rows(first, first + most)
                begin = Run.clock()
                for made, done in sound_parts(part.size, partial(self._noted, part, note), tolerant=run.tolerant):
                    seconds = Run.clock() - begin
                    yield made, behind(at, first + done - made.size), part.rows(done - made.size, done)
                    if made.size == part.size:
                        pace = PACE_SECONDS * part.size / max(seconds, 1e-9)
                        most = run.at_once(int(max(1, min(pace, 8 * part.size, 1 << 20))))
                first += part.size

    def _noted(self, part: Block, note: Callable[[Exception, Any], None], first: int, end: int) -> Block:
        try:
            return self.block(part.rows(first, end))
        except Exception as error:
            if end - first == 1:
                note(error, part.shown(first))
            raise


def compiled(function: Any, spec: Spec) -> Compiled | None:
    """A function compiled by numba, for elements of this spec; None if it has to be called from Python.

    Elements and results must be numbers or tuples of numbers.
    """
    numbers = all(
        isinstance(leaf, TensorSpec) and leaf.shape == () and leaf.dtype.kind in "biufc" for leaf in spec.leaves
    )
    if not numbers or not (spec.structure.is_leaf or spec.structure.is_flat_tuple):
        return None
    made = Compiled(function, spec)
    return None if made.loop is None else made
