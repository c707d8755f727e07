# SPDX-License-Identifier: Apache-2.0
"""Blocks: many consecutive elements, one column for each leaf; failures in the place of elements; and sizes of blocks."""

import errno
import os
import re
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import suppress
from functools import lru_cache
from gc import get_referents
from inspect import CO_GENERATOR
from itertools import chain, compress, repeat
from operator import attrgetter
from types import TracebackType
from typing import TYPE_CHECKING, Any, Never, Protocol, TypeVar, final

from distinput.columns.column import Column, Dense, Ints, LazyColumn, StackError
from distinput.columns.ragged import Objects
from distinput.columns.regroup import column_of, column_of_values, joined_columns, leaves_for, split, stack, whole_of
from distinput.columns.state import Mark, State
from distinput.names.lazy import dataclass, later, library
from distinput.values.buffers import copy_of
from distinput.values.leaves import STRING
from distinput.values.nest import LEAF, Structure, component
from distinput.values.spec import LeafSpec, Spec

if TYPE_CHECKING:
    from distinput.columns import python_values, sparse_rows
else:
    python_values = later("distinput.columns.python_values")  # and of few something else is made
    sparse_rows = later("distinput.columns.sparse_rows")  # few elements are sparse

traceback = library("traceback")  # for errors of other processes

T = TypeVar("T")

# ----------------------------------------------------------------------------
# Blocks: many consecutive elements, one column for each leaf.
#
# `Block` is abstract, and every class that can be instantiated is final. A `ColumnBlock` has its columns; others make them
# when they are asked for: `ChunkedBlock` joins the rows of several blocks, `CopyingBlock` copies. So columns are reached in
# two ways, and the code that needs them says which: `columnar()` may join or copy rows and leaves lazy columns lazy,
# `materialize()` brings all rows into memory.
# ----------------------------------------------------------------------------


class Block(ABC):
    """n elements of one structure.

    Attributes:
      structure: the nest of an element.
      size: the number of elements.
    """

    __slots__ = ("size", "structure")
    structure: Structure
    size: int

    @staticmethod
    def of(structure: Structure, elements: Sequence[Sequence[Any]]) -> "ColumnBlock":
        """From the flattened leaves of each element."""
        columns = [column_of(list(leaves)) for leaves in zip(*elements, strict=True)] if elements else []
        return ColumnBlock(structure, columns, len(elements))

    @staticmethod
    def of_elements(
        structure: Structure,
        elements: Sequence[Any],
        said: Spec | None = None,
        column: Callable[[Sequence[Any], LeafSpec | None], Column] = column_of_values,
    ) -> "ColumnBlock":
        """From elements as users write them.

        Args:
          structure: that of all elements.
          elements: at least one.
          said: what somebody has stated of them; numbers and lists of Python become that.
          column: makes a column of its values, and of what is stated of them.

        Raises:
          TypeError: an element has another structure, or a leaf cannot be an array.
        """
        stated = leaves_for(structure, said) or (None,) * structure.num_leaves
        if structure.is_leaf:
            return ColumnBlock(structure, [column(elements, stated[0])], len(elements))
        if structure.is_flat_dict and {*map(type, elements)} == {dict} and {*map(len, elements)} == {len(stated)}:
            with suppress(KeyError):
                parts = [[element[key] for element in elements] for key in structure.keys]
                return ColumnBlock(structure, list(map(column, parts, stated)), len(elements))
        rows: Sequence[Any] = elements
        if not structure.is_flat_tuple or not all(type(e) is tuple and len(e) == len(stated) for e in elements):
            rows = [structure.flatten(element) for element in elements]
        columns = [column(*each) for each in zip(zip(*rows, strict=True), stated, strict=True)]
        return ColumnBlock(structure, columns, len(elements))

    def __len__(self) -> int:
        return self.size

    @abstractmethod
    def columnar(self) -> "ColumnBlock":
        """The same elements with a column for each leaf, which may be lazy; the block itself if it has columns."""

    def materialize(self) -> "ColumnBlock":
        """The same elements with all rows in memory: no column is a `LazyColumn`."""
        return self.columnar().materialize()

    def built_as(self, structure: Structure) -> "Block":
        """The same elements with the keys of dicts in the order that they have in an equal structure."""
        if self.structure is structure or self.structure.form == structure.form or self.structure != structure:
            return self
        return ColumnBlock(structure, self.columnar().columns, self.size)

    @abstractmethod
    def rows(self, start: int, stop: int, step: int = 1) -> "Block":
        """Elements start, start + step, ... before stop; views."""

    def take(self, indices: Ints) -> "Block":
        """The elements at `indices`, in that order."""
        return self.columnar().take(indices)

    @abstractmethod
    def row(self, index: int) -> Any:
        """Element `index` as users see it."""

    def shown(self, index: int) -> Any:
        """Element `index` for messages; one that cannot be made, such as `str` of what is no UTF-8, as it is kept."""
        try:
            return self.row(index)
        except Exception:  # noqa: BLE001 - the message is about this error
            return self.kept.row(index)

    @property
    def kept(self) -> "Block":
        """The same elements as columns have them: bytes where `as_text` makes `str`, lists in a dict where `as_rows` does."""
        if not self.structure.makes_anew:
            return self
        return ColumnBlock(self.structure.kept, self.columnar().columns, self.size)

    @abstractmethod
    def elements(self) -> Iterator[Any]:
        """All elements as users see them."""

    @property
    def atomic(self) -> bool:
        """Whether several threads may take from `elements()` at a time; see `Column.atomic`."""
        return False

    def shared_parts(self) -> Iterator[Iterator[Any]] | None:
        """All elements in iterators, from each of which several threads may take at a time; None if they may not.

        Only one thread at a time may ask for the next of these iterators.
        """
        return iter((self.elements(),)) if self.atomic else None

    def copies(self) -> Iterator[Any]:
        """All elements as users see them, each copied when it is reached to memory that nobody else refers to."""
        if self.structure.makes_anew:
            return self.copied().elements()
        if self.structure.is_leaf:
            return map(copy_of, self.elements())
        build, flatten = self.structure.build, self.structure.flatten
        return (build([copy_of(leaf) for leaf in flatten(element)]) for element in self.elements())

    def stack(self, size: int) -> "Block":
        """Elements [n] -> n / size batches of `size` elements; n must be a multiple of size.

        Raises:
          StackError: elements of one batch differ in shape.
        """
        return self.columnar().stack(size)

    def split(self, counts: Ints) -> "Block":
        """Consecutive elements grouped by `counts`, which sum to n, into len(counts) batches."""
        return self.columnar().split(counts)

    def unstack(self) -> "Block":
        """The rows of all elements as elements; all elements must have the same number of rows."""
        return self.columnar().unstack()

    @abstractmethod
    def copied(self) -> "ColumnBlock":
        """The same elements in memory that nobody else refers to."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Memory that the elements need."""


def abreast(columns: Sequence[Iterator[Any]], *, scalars: bool) -> Iterator[tuple[Any, ...]]:
    """The rows of columns in tuples, which several threads may take at a time if they may take those of each column.

    `zip` uses its last tuple again where nobody has it, and lets go of one value after the other in it while it takes the next
    ones. Where such a value is an array that has a finalizer, another thread comes in between, and both get parts of different
    rows. A tuple that is held here is not used again.

    Args:
      columns: the rows of each.
      scalars: whether all rows are scalars.
    """
    rows = zip(*columns, strict=True)
    return rows if scalars else compress(rows, repeat(get_referents(rows)))


_ATOMIC = attrgetter("atomic")

_PART_GROWTH, _MOST_IN_PART = 16, 1024
"""Elements of which something else is made: how many more are made at once each time, and at most."""


@final
class ColumnBlock(Block):
    """n elements of one structure as columns.

    Args:
      structure: the nest of an element.
      columns: one for each leaf, all with `size` rows.
      size: the number of elements.

    >>> from distinput.values.nest import LEAF
    >>> Block.of_elements(LEAF, [[1, 2], [3, 4]]).unstack().columns[0].array.tolist()
    [1, 2, 3, 4]
    """

    __slots__ = ("columns",)

    def __init__(self, structure: Structure, columns: Sequence[Column], size: int) -> None:
        self.structure, self.columns, self.size = structure, columns, size

    def columnar(self) -> "ColumnBlock":
        return self

    def materialize(self) -> "ColumnBlock":
        for column in self.columns:
            if isinstance(column, LazyColumn):
                return ColumnBlock(self.structure, [c.materialize() for c in self.columns], self.size)
        return self

    def rows(self, start: int, stop: int, step: int = 1) -> "ColumnBlock":
        if not start and step == 1 and stop >= self.size:  # mostly
            return self
        stop = min(stop, self.size)
        size = max(0, -(-(stop - start) // step))
        return ColumnBlock(self.structure, [c.rows(start, stop, step) for c in self.columns], size)

    def take(self, indices: Ints) -> "ColumnBlock":
        return ColumnBlock(self.structure, [c.take(indices) for c in self.columns], len(indices))

    def row(self, index: int) -> Any:
        if self.structure.is_plain_leaf:
            return self.columns[0].row(index)
        return self.structure.build([c.row(index) for c in self.columns])

    def elements(self) -> Iterator[Any]:
        if self.structure.makes_anew:
            return chain.from_iterable(self._parts())
        return self._each()

    def shared_parts(self) -> Iterator[Iterator[Any]] | None:
        if not self.atomic:
            return None
        return self._parts() if self.structure.makes_anew else iter((self._each(),))

    def _parts(self) -> Iterator[Iterator[Any]]:
        """All elements, where something else is made of leaves: one at first, and then many at once."""
        first, count = 0, 1
        while first < self.size:
            rows = self.rows(first, first + count)
            yield (rows._at_once() if count > 1 else rows)._each()
            first, count = first + count, min(_PART_GROWTH * count, _MOST_IN_PART)

    def _at_once(self) -> "ColumnBlock":
        """The same elements with what is made of leaves; what each element must make alone, which tells errors, is left."""
        structure, parts = self.structure.parted
        columns: list[Column] = []
        left: list[Structure] = []
        for part, first, end in parts:
            made = None if part.is_plain_leaf else python_values.made_at_once(part, self.columns[first:end])
            columns += self.columns[first:end] if made is None else [Objects(made, STRING)]
            left.append(part if made is None else LEAF)
        if not all(part.is_plain_leaf for part in left):
            structure = structure.graft(left)
        return ColumnBlock(structure, columns, self.size)

    def _each(self) -> Iterator[Any]:
        if self.structure.is_plain_leaf:
            return self.columns[0].values()
        if not self.columns:
            return iter([self.structure.build([])] * self.size)
        *before, last = self.columns
        # Of the last one the row is chosen when those of the others are taken.
        each = [*[column.beside() for column in before], last.values()]
        if self.structure.is_flat_tuple:
            return abreast(each, scalars=all(column.inner == () for column in self.columns))
        lengths = list(map(len, self.columns))
        if len(set(lengths)) > 1:  # `map` would end with the shortest one in silence
            raise ValueError(f"the columns of a block differ in length: {lengths}")
        return map(self.structure.build_of, *each)

    @property
    def atomic(self) -> bool:
        return all(map(_ATOMIC, self.columns))

    def stack(self, size: int) -> "ColumnBlock":
        return ColumnBlock(self.structure, self._of_each(stack, size), self.size // size)

    def split(self, counts: Ints) -> "ColumnBlock":
        return ColumnBlock(self.structure, self._of_each(split, counts), len(counts))

    def _of_each(self, grouped: Callable[[Column, T], Column], how: T) -> list[Column]:
        """Each column with its rows put into groups; an error says which column it is."""
        made: list[Column] = []
        block = self.folded()
        try:
            made.extend(map(grouped, block.columns, repeat(how)))  # keeps what was made before an error
        except StackError as error:
            path = block.structure.paths[len(made)]
            error.where = f" in {component(path)}" if path else ""
            raise
        return made if block is self else sparse_rows.unfolded(made)

    def unstack(self) -> "ColumnBlock":
        block = self.folded()
        columns = [column.unstack() for column in block.columns]
        made = columns if block is self else sparse_rows.unfolded(columns)
        return ColumnBlock(self.structure, made, len(columns[0]))

    def folded(self) -> "ColumnBlock":
        """The same elements with one column for each sparse tensor, instead of three."""
        structure = self.structure
        if not structure.sparse or not self.size:
            return self
        return ColumnBlock(structure.folded, sparse_rows.folded(structure, self.columns), self.size)

    def copied(self) -> "ColumnBlock":
        return ColumnBlock(self.structure, [column.copied() for column in self.columns], self.size)

    @property
    def nbytes(self) -> int:
        return sum(c.nbytes for c in self.columns)


def concat_blocks(blocks: Sequence[Block]) -> Block:
    """The elements of all blocks, one after the other; copies unless there is only one."""
    blocks = [b for b in blocks if b.size] or list(blocks[:1])
    first = blocks[0]
    if len(blocks) == 1:
        return first
    columns = [joined_columns(parts) for parts in zip(*[b.columnar().columns for b in blocks], strict=True)]
    return ColumnBlock(first.structure, columns, sum(b.size for b in blocks))


_FEW_BYTES = 1 << 16


def side_by_side(first: Block, second: Block) -> ColumnBlock | None:
    """The elements of both as views, where their arrays lie one after the other in memory; what is small beside them is copied.

    Returns:
      None where that is not so.
    """
    if type(first) is not ColumnBlock or type(second) is not ColumnBlock:
        return None
    pairs = list(zip(first.columns, second.columns, strict=True))
    views = [whole_of(a.array, b.array) if type(a) is Dense and type(b) is Dense else None for a, b in pairs]
    small = [a.nbytes + b.nbytes < _FEW_BYTES for view, (a, b) in zip(views, pairs, strict=True) if view is None]
    if len(small) == len(views) or not all(small):
        return None
    columns = [joined_columns(pair) if view is None else Dense(view) for view, pair in zip(views, pairs, strict=True)]
    return ColumnBlock(first.structure, columns, first.size + second.size)


def numbers_of(block: Block) -> Ints:
    """The elements of a block, each of which is one number, [n]."""
    (column,) = block.materialize().columns
    assert isinstance(column, Dense)
    return column.array


def stack_prefix(block: Block, size: int) -> tuple[Block, StackError | None]:
    """As many batches as can be stacked, and the error of the first one that cannot."""
    try:
        return block.stack(size), None
    except StackError as error:
        if error.group == 0:
            return block.rows(0, 0), error
        first = error
    # Each column may fail at another batch, so the earliest one is looked for by cutting down to the group before.
    made, earlier = stack_prefix(block.rows(0, first.group * size), size)
    return made, earlier or first


# ----------------------------------------------------------------------------
# What is known of an error on its way from where it was raised to the user: which step, which record, and what is lost.
# ----------------------------------------------------------------------------


class Step(Protocol):
    """What a run needs to know about a node."""

    @property
    def op(self) -> str:
        """Its name."""

    @property
    def origin(self) -> Hashable:
        """The line that made it."""

    def where(self) -> str:
        """Both, for a note on an error."""

    def told_record(self, error: Exception, state: State, ahead: int) -> str | None:
        """Which record an error is about, for a note; None if it is not known, "" if it is the next one to be read."""


@dataclass
class Trouble:
    """What the steps that an error passes know of it; each fills in what it knows, and the innermost knows best.

    Args:
      step: the step that handed the error on as a failure; None: it was raised.
      mark: where the element stands that a function failed on; None: no function failed.
      row: the row at fault in a group of elements; None: not known.
      place: the file that was read, and the position in it; None: it was not raised by reading.
      lost: how many records are lost with it, None if nobody knows; and whether these are all up to the end of the file.
      last: whether nobody continues after it.
      of_all: whether all rows are at fault together, so that nobody has to look for one.
      keys: of the sample of an archive at fault, or nothing where it is not known which; None: it is about no sample.
      located: whether a note says where it happened.
      told: whether a note says which record it is about.
      met: in a piece of work, the step that met it first, a state of it, and how many elements further; None: nobody asks.
    """

    step: Step | None = None
    mark: Mark | None = None
    row: int | None = None
    place: tuple[str, Any] | None = None
    lost: tuple[int | None, bool] = (1, False)
    last: bool = False
    of_all: bool = False
    keys: tuple[bytes, ...] | None = None
    located: bool = False
    told: bool = False
    met: tuple[Step, State, int] | None = None


def trouble_of(error: BaseException) -> Trouble:
    """What is known of an error, to be read and filled in.

    >>> error = ValueError()
    >>> trouble_of(error).row = 3
    >>> trouble_of(error).row
    3
    """
    known: Trouble | None = getattr(error, "_distinput_trouble", None)
    if known is None:
        known = Trouble()
        error._distinput_trouble = known  # type: ignore[attr-defined]
    return known


# ----------------------------------------------------------------------------
# Failures: errors that travel in place of the elements that could not be made.
# ----------------------------------------------------------------------------


@final
class Failure(Block):
    """A block without rows that stands where an element would be, had there not been an error.

    Only streams of a tolerant run (`Run.tolerant`) hold failures; an op passes them on, each with the state after it.

    Args:
      error: what was raised.
    """

    __slots__ = ("error",)

    def __init__(self, error: Exception) -> None:
        self.structure, self.size, self.error = LEAF, 0, error
        trace = error.__traceback__
        if trace is not None and trace.tb_frame.f_code.co_flags & CO_GENERATOR:
            # A stream that goes on. `traceback.clear_frames`, which unittest calls, would end it.
            fault_of(error)  # which the whole traceback tells
            error.__traceback__ = trace.tb_next

    def columnar(self) -> Never:
        raise TypeError("a failure has no columns, and would be lost with them; pass it on as it is")

    def rows(self, start: int, stop: int, step: int = 1) -> "Failure":
        return self

    def row(self, index: int) -> Never:
        raise IndexError("a failure has no rows")

    def elements(self) -> Iterator[Any]:
        return iter(())

    def copied(self) -> Never:
        raise TypeError("a failure has no rows to copy, and would be lost with them; pass it on as it is")

    @property
    def nbytes(self) -> int:
        return 0


def is_defect(error: BaseException) -> bool:
    """Whether an error is one of Python itself, such as an IndexError: a defect of a reader, which says nothing of the data.

    >>> is_defect(IndexError()), is_defect(ValueError())
    (True, True)
    >>> from distinput.errors import DataLossError
    >>> is_defect(DataLossError("a.txt")), is_defect(PermissionError())
    (False, False)
    """
    return type(error).__module__ == "builtins" and not isinstance(error, OSError)


DEFECTS = (AttributeError, IndexError, KeyError, NameError, TypeError)
"""Libraries do not raise these for damaged data: where one comes, code of ours or of the user's is wrong."""

_READERS = ("distinput.decoders.", "distinput.formats.", "distinput.kernels.")
_BENEATH = frozenset(sys.stdlib_module_names) | {"PIL", "numba", "numpy", "pyarrow", "simplejpeg"} - {"__main__"}
"""Modules that readers call."""


_ARITY = (
    r"\b(takes|missing|expected)\b.{0,40}\b(\d+|no|one)\b.{0,40}\barguments?\b|\bgot an unexpected keyword argument\b"
)
"""What Python and NumPy say of a call with another number of arguments."""


def fault_of(error: BaseException) -> str:
    """What is wrong instead of an element: "reader" of ours, which has a defect; "call" with other arguments; or nothing.

    Told by the last function of Python that was called, apart from those of packages that readers are made of. Where an error
    is about to lose its traceback, on the way from another process, this is asked before and kept with it.
    """
    if hasattr(error, "_distinput_fault"):
        return str(error._distinput_fault)
    module = last = ""
    trace = error.__traceback__
    while trace is not None and is_defect(error):
        module = str(trace.tb_frame.f_globals.get("__name__"))
        if module.partition(".")[0] not in _BENEATH:
            last = module
        trace = trace.tb_next
    called = isinstance(error, TypeError) and module.startswith("distinput.") and re.search(_ARITY, str(error))
    fault = "reader" if last.startswith(_READERS) else "call" if called else ""
    error._distinput_fault = fault  # type: ignore[attr-defined]
    return fault


_OURS = (os.path.dirname(os.path.dirname(__file__)) + os.sep, os.path.dirname(os.__file__) + os.sep)
"""Where the code of this library is, and that of Python."""


def users_frames(error: BaseException) -> TracebackType | None:
    """The traceback of an error from the first function of the user on; None if the library itself raised it."""
    trace = error.__traceback__
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith((*_OURS, "<frozen", "<distinput")) and "site-packages" not in path:
            return trace
        trace = trace.tb_next
    return None


def trace_text(error: BaseException) -> str:
    """The traceback of an error as text, for another process; without the frames of the library above the user's function.

    An error that the library itself raised keeps all of its frames.
    """
    shown = traceback.TracebackException(type(error), error, users_frames(error) or error.__traceback__)
    return "".join(shown.format()).rstrip()


def note_open_files(error: BaseException) -> None:
    """Say with an error that no more files can be opened what the limit is, and how to stay below it."""
    if not isinstance(error, OSError) or error.errno not in (errno.EMFILE, errno.ENFILE):
        return
    if not any(note.startswith(_OPEN_FILES) for note in getattr(error, "__notes__", [])):
        error.add_note(
            f"{_OPEN_FILES}{_limit()}: raise the limit (`ulimit -n 65536` in the shell that starts it, or resource.setrlimit), "
            "or have fewer files open: a smaller cycle_length, fewer num_parallel_reads, shards, or iterators side "
            "by side"
        )


_OPEN_FILES = "this process, or the machine, has as many files and connections open as it may"


def _limit() -> str:
    try:
        import resource

        return f" (the process {resource.getrlimit(resource.RLIMIT_NOFILE)[0]})"
    except (ImportError, OSError):  # no POSIX, or no file for the module can be opened
        return ""


def of_all(error: Exception) -> Exception:
    """Mark an error as one of all rows made together, so that `sound_parts` does not search for the row at fault."""
    trouble_of(error).of_all = True
    return error


def failed(error: Exception, *, tolerant: bool) -> Failure:
    """The failure in the place of an element; unless `tolerant`, its error is raised.

    >>> failed(ValueError("bad"), tolerant=True).error
    ValueError('bad')
    """
    if tolerant:
        return Failure(error)
    try:
        raise error
    finally:
        del error  # a traceback that refers to itself would keep what it has seen


def sound_parts(size: int, make: Callable[[int, int], Block], *, tolerant: bool) -> Iterator[tuple[Block, int]]:
    """What `make(first, end)` gives for `size` rows, in as few parts as its errors allow; and the row after each part.

    A part for which it raises is cut in two, until single rows are left: these become failures, or, unless `tolerant`, the
    first of them is raised. So everything before an error is delivered, however many rows are made together.

    >>> from distinput.columns.block import ColumnBlock
    >>> def make(first: int, end: int) -> Block:
    ...     if first <= 2 < end:
    ...         raise ValueError("row 2")
    ...     return ColumnBlock(LEAF, (), end - first)
    >>> [(type(part).__name__, part.size, end) for part, end in sound_parts(5, make, tolerant=True)]
    [('ColumnBlock', 2, 2), ('Failure', 0, 3), ('ColumnBlock', 2, 5)]
    """
    waiting = [(0, size)]
    whole: Exception | None = None
    while waiting:
        first, end = waiting.pop()
        try:
            part = make(first, end)
        except Exception as error:  # noqa: BLE001 - becomes a failure in its place, or is raised there
            whole = whole or error
            if end - first > 1 and not trouble_of(error).of_all:
                middle = (first + end) // 2
                waiting += [(middle, end), (first, middle)]
                continue
            if not tolerant:
                if whole is not error:  # the error of all rows names them, that of the single row says which one it is
                    _take_notes(whole, error)
                raise whole from None
            part = Failure(error)
        yield part, end
    if whole is not None and not tolerant:
        raise whole  # an error of the rows together, though each alone is sound


def _take_notes(error: Exception, other: Exception) -> None:
    notes = getattr(error, "__notes__", [])
    error.__notes__ = [note for note in getattr(other, "__notes__", []) if note not in notes] + notes


def stacked_parts(
    block: Block, size: int, told: Callable[[StackError], Exception], *, tolerant: bool
) -> Iterator[tuple[Block, int]]:
    """`block.stack(size)`, with a failure for each batch whose elements differ in shape; and the row behind each part.

    Args:
      block: whole batches.
      size: elements in a batch.
      told: what to raise for a batch that cannot be stacked.
      tolerant: whether it is a failure, or raised.
    """
    done = 0
    while done < block.size:
        made, error = stack_prefix(block.rows(done, block.size) if done else block, size)
        done += made.size * size
        if made.size:
            yield made, done
        if error is not None:
            if not tolerant:
                raise told(error)
            done += size
            yield Failure(told(error)), done


# ----------------------------------------------------------------------------
# Sizes: how many rows a source puts into one block, and how rows are shared out evenly.
# ----------------------------------------------------------------------------


MOST_ROWS = 32_768
"""Rows of 8 bytes: they fit into a core's L2 cache, and malloc reuses the memory, whereas larger blocks are fresh pages."""
MOST_BYTES = 4 << 20
"""Bytes of rows that are made, moved or sent together; a single row may have more."""
_FEW_ROWS = 16
"""The fewest rows of a block, as long as they are small, so that Python's cost per block is negligible."""
_BLOCK_BYTES = 1 << 20
_GATHERED_BYTES = 1 << 19
_PICKED_BYTES = 1 << 24


def block_rows(row_bytes: float) -> int:
    """Rows of this many bytes in one block: few enough for a core's cache, enough to make Python's cost vanish.

    >>> block_rows(8), block_rows(100_000), block_rows(1_000_000), block_rows(1_000_000_000)
    (32768, 16, 4, 1)
    """
    return _rows(_BLOCK_BYTES, row_bytes)


def rows_within(rows: int, nbytes: int, most: int = MOST_ROWS) -> int:
    """How many rows may be made, moved or sent together, given the bytes of some that are like them.

    Args:
      rows: how many those are.
      nbytes: what they take together.
      most: never more than so many.

    >>> rows_within(10, 80), rows_within(10, 80, 4096), rows_within(1, 500_000_000)
    (32768, 4096, 1)
    """
    return max(1, min(most, MOST_BYTES * rows // max(1, nbytes)))


def gathered_rows(row_bytes: float, batch: int = 1) -> int:
    """Rows of this many bytes to gather at once: whole batches, in memory that stays in a core's cache from use to use.

    >>> gathered_rows(784), gathered_rows(784, 256), gathered_rows(784, 1000)
    (668, 512, 1000)
    """
    return _whole_batches(_GATHERED_BYTES, row_bytes, batch)


def picked_rows(row_bytes: float, batch: int = 1) -> int:
    """Rows of this many bytes to choose at once, where each batch is only gathered when it is handed out.

    >>> picked_rows(784, 256)
    21248
    """
    return _whole_batches(_PICKED_BYTES, row_bytes, batch)


def _whole_batches(most: int, row_bytes: float, batch: int) -> int:
    rows = _rows(most, row_bytes)
    return max(1, rows // batch) * batch if batch <= MOST_ROWS else rows


def _rows(most: int, row_bytes: float) -> int:
    few = min(_FEW_ROWS, max(1, MOST_BYTES // max(1, row_bytes)))
    return int(max(few, min(MOST_ROWS, most // max(1, row_bytes))))


@lru_cache(maxsize=4096)
def balanced_slices(rows: int, parts: int) -> tuple[slice, ...]:
    """Consecutive slices of `rows` rows whose sizes differ by at most one, the larger ones first.

    >>> [s.stop - s.start for s in balanced_slices(6, 4)]
    [2, 2, 1, 1]
    """
    return tuple([balanced_slice(rows, parts, index) for index in range(parts)])


def balanced_slice(rows: int, parts: int, index: int) -> slice:
    """One of `balanced_slices`, of however many."""
    size, more = divmod(rows, parts)
    return slice(index * size + min(index, more), (index + 1) * size + min(index + 1, more))
