# SPDX-License-Identifier: Apache-2.0
"""Elements that are kept in files: `cache` with a file name, `snapshot`, and what `save` has written."""

import warnings
from abc import abstractmethod
from collections.abc import Callable, Generator, Hashable, Iterator
from contextlib import closing, contextmanager
from dataclasses import field, replace
from functools import cached_property
from typing import Any, ClassVar, TypeGuard

import numpy as np

from distinput.arrow.adopt import frozen
from distinput.columns.block import Block, ColumnBlock, Failure, concat_blocks
from distinput.columns.column import Ints
from distinput.columns.rows import Stream
from distinput.columns.state import VERSION, Digest, State
from distinput.errors import DataLossError, FailedPreconditionError, InputWarning, StateError
from distinput.files.folder import join_path, names_in, remove_file
from distinput.files.manifest import FileTable
from distinput.files.paths import as_path, ask_each
from distinput.files.source import size_of
from distinput.formats.elements import Elements, spec_of_layout
from distinput.names.lazy import dataclass
from distinput.ops.reader import FileNames, Reader
from distinput.ops.slices import from_tensor_slices
from distinput.plan.binding import take_functions
from distinput.plan.check import normalized
from distinput.plan.code import function_word
from distinput.plan.families import PassStore, SameElements, drawn_seeds, stores
from distinput.plan.fingerprint import Fingerprint, difference, fingerprint, layout, misfit
from distinput.plan.node import INFINITE, Held, Node
from distinput.plan.reach import ReachedCode
from distinput.run.run import Run, called_once
from distinput.values.nest import LEAF
from distinput.values.spec import Spec
from distinput.values.spec_json import spec_json
from distinput.writers.elements import ElementsWriter, codec_of
from distinput.writers.manifest import MANIFEST, Journal, WrittenFile, WrittenFiles, read_written
from distinput.writers.open_file import KEPT, KeptFiles
from distinput.writers.stage import Stage, publish

# ----------------------------------------------------------------------------
# The tree that reads elements that were saved: their files one after the other, or as a function of the user's says.
# ----------------------------------------------------------------------------


def saved_elements(
    found: WrittenFiles, given: Spec | None = None, reader_func: Callable[[Any], Any] | None = None
) -> Node:
    """A reader of saved elements.

    Args:
      found: what was saved.
      given: the spec that they are read as, if it is another one that they fit.
      reader_func: a dataset of a dataset for each file -> the dataset; None: one file after the other, in order.

    Raises:
      NotFoundError: a file is gone.
      DataLossError: a file has another size than when it was written.
      InvalidArgumentError: the elements are not as `given` says.
      TypeError: `reader_func` returns no dataset.
    """
    layout = str(found.options.get("layout"))
    spec = spec_of_layout(layout, given)
    file_format = Elements(layout, None if given is None else spec)
    table = found.table()
    sizes = np.fromiter(ask_each(size_of, found.paths), np.int64, len(table))
    for index in np.flatnonzero(sizes != table.sizes)[:1].tolist():
        raise DataLossError(
            f"{table.path(index)}: has {sizes[index]} bytes, and {MANIFEST} says {table.sizes[index]}; it was changed after it "
            "was written"
        )

    def reader(files: FileTable) -> Node:
        return Reader(FileNames.of(files), file_format, files)

    if reader_func is None:
        return reader(table)
    ends = np.cumsum(found.pieces or [1] * len(table))
    parts = [reader(table.take(rows)) for rows in np.split(np.arange(len(table)), ends[:-1])]
    made = called_once(reader_func, Node.handle(from_tensor_slices(parts)))
    node = getattr(made, "node", None)
    if not isinstance(node, Node):
        raise TypeError(f"reader_func must return a Dataset, got {type(made).__name__}")
    return node


# ----------------------------------------------------------------------------
# Steps that keep the elements of the first complete pass in a folder that processes share: caches on disk and snapshots.
# ----------------------------------------------------------------------------


_Passed = Generator[tuple[Block, State | None], None, None]


class DiskStore(PassStore):
    """What this process knows of the passes: the epoch of the one that is kept, a word for it, and whether it was too large."""

    def __init__(self) -> None:
        super().__init__()
        self.made: str | None = None
        self.block: Block | None = None
        """Stands for the elements where only their number is asked for."""
        self.too_large = False
        self.told = False
        """Whether it was said that a pass did not come to its end."""


@dataclass(frozen=True, eq=False)
class KeptOnDisk(SameElements):
    """Keep the elements of the first complete pass in a folder; later passes, here and in other processes, read them there.

    Shapes and order: those of the first pass. State: the row, the pass, the epoch and the random seeds of what is kept, and the
    input's state while a pass makes it.
    """

    tolerant = same_count = True
    keeps: ClassVar[bool] = True
    described: Held | None = field(default=None, kw_only=True, repr=False)
    """The pipeline as the user described it, which says whether a folder is of this one."""
    store: DiskStore = field(default_factory=DiskStore, kw_only=True, repr=False)

    def __post_init__(self) -> None:
        if self.described is None:
            normalized(self, "described", Held(self.input))

    def kept_by(self, share: Hashable) -> dict[str, Any]:
        """What is another one over the elements of one worker: the folder is of a pipeline that reads these."""
        return {"store": self.store.of_share(share), "described": None}

    @property
    @abstractmethod
    def directory(self) -> str:
        """The folder of the files."""

    @property
    def most_bytes(self) -> int | None:
        """A pass that needs more is not kept."""
        return None

    @property
    def codec(self) -> str | None:
        """The compression of the files."""
        return None

    @property
    def shards_by(self) -> Callable[..., Any] | None:
        """Element -> the number of its file."""
        return None

    @property
    def read_by(self) -> Callable[[Any], Any] | None:
        """A dataset of a dataset for each file -> the dataset that later passes give."""
        return None

    @abstractmethod
    def reader(self, found: WrittenFiles, in_order: bool = False) -> Node:
        """What reads the files; `in_order`: one after the other, whatever the user asked for."""

    @cached_property
    def pipeline(self) -> Fingerprint:
        """The fingerprint of what is kept."""
        return fingerprint(self._described)

    @cached_property
    def reached(self) -> ReachedCode:
        """The code that functions reach and the fingerprint leaves out, and objects of packages such as tokenizers."""
        return ReachedCode.by(self._described)

    @property
    def _described(self) -> Node:
        assert self.described is not None
        node: Node = self.described.node
        return node

    def refuse(self, found: WrittenFiles) -> None:
        """Refuse a folder that holds what is not of this pipeline.

        Raises:
          FailedPreconditionError: it is of another one.
          DataLossError: its manifest is damaged.
        """
        if found.more.get("op") != self.op:
            raise FailedPreconditionError(
                f"{self.op}: {self.directory} holds a dataset that write or save made; give {self.op} a folder of its own"
            )
        epoch, made = found.more.get("epoch"), found.more.get("made")
        if type(epoch) is not int or epoch < 0 or not isinstance(made, str) or found.pipeline is None:
            raise DataLossError(
                f"{self.directory}: {MANIFEST} is damaged: it does not say which pass {self.op} has kept"
            )
        when = "when the cache was written"
        differs = difference(self._described, found.pipeline, when=when, cures=False)
        if differs is None and found.more.get("reached", self.reached.code_word) != self.reached.code_word:
            differs = f"a function calls functions, or methods, that do something else or read other values than {when}"
        if differs is not None:
            raise FailedPreconditionError(
                f"{self.op}: {self.directory} was written by another pipeline: {differs}; give this one another folder, or "
                "remove that one"
            )

    # --- states

    def start(self, epoch: int) -> State:
        return self.start_at(0, epoch)

    def start_at(self, row: int, epoch: int) -> State:
        found, store = self._found(), self.store
        if found is not None and not _lacks(found) and store.made in (None, self._served_word(found)):
            made, kept = self._served_word(found), int(found.more["epoch"])
        else:
            kept = epoch if store.epoch is None else store.epoch
            made = self._made_word(kept)
        return {"row": row, "epoch": kept, "pass": epoch, "input": None, "made": made, "read": None}

    def _made_word(self, epoch: int) -> str:
        """A word for what a pass gives: that of its seeds and its epoch, since the pipeline is known to be the same."""
        return Digest(6).add(drawn_seeds(self.input), epoch).word

    def _served_word(self, found: WrittenFiles) -> str:
        """The word for what is served from the folder."""
        word = str(found.more.get("made"))
        return word if self.read_by is None else f"read {word}"

    # --- by position

    @property
    def fetches(self) -> bool:
        return self.input.cardinality != INFINITE

    def fetch(self, rows: Ints, epoch: int) -> Block:
        """Rows of what is kept, which a pass makes first if there is nothing yet."""
        blocks: list[Block] = []
        found = self._found()
        if found is None or _lacks(found) or self.read_by is not None:
            with Run() as run:
                blocks = [block for block, _ in self.open(self.start(epoch), run)]
            found = self._found() if self.read_by is None else None
            found = None if found is not None and _lacks(found) else found
        self.store.block = ColumnBlock(LEAF, (), sum(block.size for block in blocks) if found is None else found.rows)
        if found is not None:
            return self.reader(found).fetch(rows, 0)
        return concat_blocks(blocks).take(rows) if blocks else Block.of(self.spec.structure, [])

    # --- streams

    def stream(self, state: State, run: Run) -> Stream:
        row, epoch, made = state["row"], state["epoch"], state["made"]
        if state["input"] is not None:
            self._begins(epoch)
            for block, after in self._frozen(self.input.open(state["input"], run)):
                row += block.size
                yield block, self._making(row, state, after)
            self._ended(epoch)
            return
        found = self._found()
        if self._serves(found, made, run):
            yield from self._served(found, state, run)
            return
        if made != self._made_word(epoch):
            raise StateError(
                f"{self.op}: the state is of elements that were in {self.directory} and are not there any more; they were made "
                "with other random seeds, so they cannot be made again: bring the folder back, or start again without the state"
            )
        self._begins(epoch)
        stage = self._begun() if found is None or (_lacks(found) and not run.asked.dropping) else None
        if stage is None:
            found = self._found()
            if self._serves(found, made, run):  # another process has just completed it
                yield from self._served(found, state, run)
                return
            passing = self._frozen(self.input.open(self.input.start(epoch), run))
        else:
            passing = self._kept(stage, epoch, run)
        at = 0
        with closing(passing) as passed:
            for block, after in passed:
                at += block.size
                if type(block) is Failure:
                    if at >= row:
                        yield block, self._making(at, state, after)
                elif at > row:
                    yield block.rows(max(0, row - (at - block.size)), block.size), self._making(at, state, after)
        self._ended(epoch)

    def _serves(self, found: WrittenFiles | None, made: str, run: Run) -> TypeGuard[WrittenFiles]:
        """Whether what is in the folder is what a pass gives."""
        goes_on = run.asked.dropping or self.store.met is run.cancelled  # without what failed
        return found is not None and made == self._served_word(found) and (goes_on or not _lacks(found))

    def _begins(self, epoch: int) -> None:
        """A pass begins to make elements; later ones are those of the same epoch, also where it is left before its end."""
        if self.store.epoch is None:
            self.store.epoch = epoch

    def _ended(self, epoch: int) -> None:
        """A pass came to its end; later ones are of the same seeds."""
        if self.store.made is None and self.read_by is None:
            self.store.made = self._made_word(epoch)

    def _making(self, row: int, state: State, after: State | None) -> State:
        return {**state, "row": row, "input": after, "read": None}

    @staticmethod
    def _frozen(source: Stream) -> _Passed:
        for made, after in source:
            yield made if type(made) is Failure else frozen(made), after

    def _served(self, found: WrittenFiles, state: State, run: Run) -> Stream:
        """What is in the folder, from a row on."""
        Stage(self.directory, self.op).tidy()
        reader, row = self.reader(found), state["row"]
        epoch = int(found.more["epoch"])
        # What another process has completed is of its own epoch.
        if self.store.epoch is None or self.store.made is None:
            self.store.epoch = epoch
        self.store.made = made = self._served_word(found)
        number = state["pass"]
        at = state["read"]
        over = 0
        if at is None and self.read_by is None:
            at = reader.start_at(row, number)
        elif at is None:
            at, over = reader.start(number), row
        for block, after in reader.open(at, run):
            skipped, over = over, max(0, over - block.size)
            if skipped >= block.size and type(block) is not Failure:
                continue
            part = block.rows(skipped, block.size) if skipped else block
            row += part.size
            yield part, {
                "row": row, "epoch": epoch, "pass": number, "input": None, "made": made,
                "read": None if self.read_by is None else after,
            }  # fmt: skip

    def _found(self) -> WrittenFiles | None:
        """What is in the folder, if it is complete.

        Raises:
          FailedPreconditionError: it is of another pipeline.
        """
        try:
            found = read_written(self.directory)
        except IsADirectoryError:
            found = None
        if found is not None:
            self.refuse(found)
        return found

    # --- writing

    def _begun(self) -> Stage | None:
        """The stage to write to; None if another pass writes, has just written, or would write too much."""
        if self.store.too_large:
            return None
        stage = Stage(self.directory, self.op)
        if not stage.take(self.op):
            return None
        found = read_written(self.directory)
        if found is not None and not _lacks(found):
            stage.remove()
            return None
        used = set() if found is None else {file.name for file in found.files}
        for name in names_in(self.directory) if stage.local else ():
            if KEPT.fullmatch(name) and name not in used:  # of a writer that was killed while it published
                remove_file(join_path(self.directory, name))
        return stage

    def _interrupted(self, stage: Stage, epoch: int) -> Journal | None:
        """What a pass that was killed has completed, if this one would make the same; all else that it left is removed.

        It must have had the same pipeline, seeds and steps, and no memory of elements, of which states hold none.
        """
        found = Journal.of_json(stage.journal())
        if (
            found is not None
            and found.key == self._key(epoch)
            and found.reached == self.reached.code_word
            and difference(self._described, found.pipeline) is None
            and misfit(self.input, found.state) is None
            and all(map(stage.has, found.files))
        ):
            stage.run = found.run
            return found
        stage.clear()
        return None

    def _key(self, epoch: int) -> list[Any]:
        """What a pass depends on apart from the pipeline."""
        return [self.op, self._made_word(epoch), self.codec, VERSION, layout(self.input)]

    def _kept(self, stage: Stage, epoch: int, run: Run) -> _Passed:
        """The elements, written on the way; at its end the folder is complete.

        Those that a pass that was killed has written are read again, and have no state of the input.
        """
        earlier = self._interrupted(stage, epoch)
        done = () if earlier is None else earlier.files
        at, lacks = 0, False
        writer, goes_on = ElementsWriter(self.codec), stage.local and not stores(self.input)
        if self.shards_by is None:
            files = in_order = KeptFiles(stage, writer, self.spec, done=done)
        else:
            files = KeptFiles(stage, writer, self.spec, self.shards_by)
            in_order = KeptFiles(stage, writer, self.spec, done=done, word="spool")
        try:
            if earlier is not None:
                again = self.reader(replace(self._manifest(done, stage, epoch), directory=stage.folder), in_order=True)
                for made, _ in again.open(again.start(0), run):
                    block = frozen(made.materialize())
                    if files is not in_order:
                        self._write(files, block)
                    at += block.size
                    yield block, None
            start = self.input.start(epoch) if earlier is None or earlier.state is None else earlier.state
            for made, after in self.input.open(start, run):
                if type(made) is Failure:
                    goes_on, lacks = False, True  # a pass that goes on would not meet it
                    yield made, after
                    continue
                block = frozen(made.materialize())  # users and the file look at the same arrays
                if self._writes(stage):
                    self._write(files, block)
                if files is not in_order and goes_on and stage.mine:
                    self._write(in_order, block)
                if self._writes(stage):
                    self._cut(in_order, stage, epoch, after if goes_on else None)
                at += block.size
                yield block, after
            if run.cancelled.is_set():  # steps below have ended since they were told to, perhaps
                return
            self._publish(files, stage, epoch, lacks)
            self.store.met = run.cancelled if lacks and not run.asked.dropping else None
        except GeneratorExit:
            if not run.cancelled.is_set() and not run.asked.sampling:  # a step behind this one wants no more
                if at == self.input.cardinality:  # as `take` of all of them
                    self._publish(files, stage, epoch)
                elif self._writes(stage):
                    self._tell_unfinished(at)
            raise
        finally:
            files.discard()
            in_order.discard()
            stage.discard()

    def _writes(self, stage: Stage) -> bool:
        """Whether elements are written: not too many, and not by a child that was forked meanwhile."""
        return stage.mine and not self.store.too_large

    def _publish(self, files: KeptFiles, stage: Stage, epoch: int, lacks: bool = False) -> None:
        """Complete the folder, unless the elements take too much."""
        if self._writes(stage):
            with self._told():
                done = files.end()
                old = read_written(self.directory)  # a pass that lacked elements
                publish([(stage, done)], self._manifest(done, stage, epoch, lacks), old)

    def _tell_unfinished(self, made: int) -> None:
        """Say once that passes do not come to their end, so that nothing is ever kept."""
        if self.store.told:
            return
        self.store.told = True
        warnings.warn(
            f"{self.op}: {self.directory}: a later step, such as take or zip, wants no more after {made} elements, so "
            "nothing is kept, and the next pass makes them again; put such a step before it instead: "
            f"dataset.take(n).{self.op}(...)",
            InputWarning,
            stacklevel=2,
        )

    def _cut(self, files: KeptFiles, stage: Stage, epoch: int, state: State | None) -> None:
        """End the file if it is large enough, and keep a state with it, from which another process can go on."""
        with self._told():
            done = files.cut()
            if done is not None and state is not None:
                journal = Journal(
                    self._key(epoch), stage.run, done, state, pipeline=self.pipeline, reached=self.reached.code_word
                )
                stage.record(journal.to_json())

    @contextmanager
    def _told(self) -> Iterator[None]:
        """Say with an error of the file system what was being written."""
        try:
            yield
        except OSError as error:
            error.add_note(f"while {self.op} kept elements in {self.directory}; nothing is left there")
            raise

    def _write(self, files: KeptFiles, block: Block) -> None:
        with self._told():
            files.write(block)
        if self.most_bytes is not None and files.size > self.most_bytes:
            files.discard()
            self.store.too_large = True
            warnings.warn(
                f"{self.op}: {self.directory}: the elements take more than max_bytes={self.most_bytes}, so they are not kept "
                "and every pass makes them; allow more, or leave the cache out",
                InputWarning,
                stacklevel=2,
            )

    def _manifest(self, files: tuple[WrittenFile, ...], stage: Stage, epoch: int, lacks: bool = False) -> WrittenFiles:
        return WrittenFiles(
            directory=self.directory,
            format="elements",
            options=ElementsWriter().reading(self.spec),
            files=files,
            spec=spec_json(self.spec, self.op),
            pipeline=self.pipeline,
            run=stage.run,
            more={
                "op": self.op,
                "epoch": epoch,
                "made": self._made_word(epoch),
                "reached": self.reached.code_word,
                **({"lacks": True} if lacks else {}),
            },
        )


def _lacks(found: WrittenFiles) -> bool:
    """Whether elements failed when the folder was written; a pass that does not leave them out makes them itself."""
    return found.more.get("lacks") is True


# ----------------------------------------------------------------------------
# `cache(filename)`: the elements of the first complete pass, kept in a folder that processes share.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class DiskCache(KeptOnDisk):
    """Keep the elements of the first complete pass in a folder; later passes, here and in other processes, read them there.

    Shapes and order: those of the first pass. State: that of `KeptOnDisk`.

    Args:
      filename: the folder.
      max_bytes: a pass that needs more is not kept; None: no limit.
      shared: whether the folder has a folder for each pipeline.

    Source: `tf.data.Dataset.cache`.
    """

    indifferent: ClassVar[frozenset[str]] = frozenset({"filename", "max_bytes", "shared"})
    op: ClassVar[str] = "cache"
    filename: str
    max_bytes: int | None = None
    shared: bool = field(default=False, kw_only=True)

    @cached_property
    def directory(self) -> str:
        if not self.shared:
            return self.filename
        return join_path(self.filename, Digest(8).add(self.pipeline, self.reached.word).word)

    @property
    def most_bytes(self) -> int | None:
        return self.max_bytes

    def reader(self, found: WrittenFiles, in_order: bool = False) -> Node:
        return saved_elements(found, self.spec)


# ----------------------------------------------------------------------------
# `snapshot`: the elements of the first complete pass, kept in a folder for each pipeline.
# ----------------------------------------------------------------------------


@dataclass(frozen=True, eq=False)
class Snapshot(KeptOnDisk):
    """Keep the elements of the first complete pass in a folder; later passes, here and in other processes, read them there.

    As `cache(filename)` does, but below `path` each pipeline has a folder of its own, named by its fingerprint: a pipeline that
    changed is written anew beside the old one, which stays until you remove it.

    Shapes: unchanged. Order: that of the first pass, or that of `reader_func`. State: as for a cache on disk.

    Args:
      path: the folder of the snapshots, local or a URL.
      compression: None, "LZ4" or "ZSTD"; "SNAPPY" and "GZIP" stand for these two, and "AUTO" for None.
      reader_func: a dataset with a dataset for each file -> the dataset that later passes give; None: one file after the other.
      shard_func: element -> the number of its file, an integer from 0 on; None: files of 256 MiB, in order.
        Where a function deals, the elements are also kept in order until the pass ends, which takes the space twice: from there
        the pass after one that was killed goes on.

    Raises:
      InvalidArgumentError: the compression is unknown; at iteration, `path` is a file, or `shard_func` returns no number.
      OSError: at iteration, the files could not be written; nothing is left of them.

    >>> import distinput as di
    >>> shuffled = di.data.Dataset.range(100).shuffle(100).snapshot("shuffled")
    >>> shuffled.to_list() == shuffled.to_list()
    True

    Source: `tf.data.Dataset.snapshot`.
    """

    indifferent: ClassVar[frozenset[str]] = frozenset({"path", "compression"})
    path: str
    compression: str | None = "AUTO"
    reader_func: Callable[[Any], Any] | None = None
    shard_func: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        normalized(self, "path", as_path(self.path))
        codec_of("snapshot", self.compression)
        given = [name for name in ("reader_func", "shard_func") if getattr(self, name) is not None]
        take_functions(self, "snapshot", *given)

    @property
    def directory(self) -> str:
        return join_path(self.path, self._word)

    @cached_property
    def _word(self) -> str:
        """The name of the folder: that of the pipeline, of `shard_func` and of the format of the files."""
        held = (self.reached.word,) if self.reached.word else ()
        sharding = "" if self.shard_func is None else function_word(self.shard_func)
        return Digest(8).add(self.pipeline, sharding, *held).word

    @property
    def codec(self) -> str | None:
        return codec_of("snapshot", self.compression)

    @property
    def shards_by(self) -> Callable[..., Any] | None:
        return self.shard_func

    @property
    def read_by(self) -> Callable[[Any], Any] | None:
        return self.reader_func

    def reader(self, found: WrittenFiles, in_order: bool = False) -> Node:
        return saved_elements(found, self.spec, None if in_order else self.reader_func)
