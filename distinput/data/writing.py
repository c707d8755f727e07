# SPDX-License-Identifier: Apache-2.0
"""What `Dataset.write`, `save` and `load` do: a pass is written to a hidden stage, and published as a whole."""

import errno
import re
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import field, replace
from inspect import signature
from typing import Any

from distinput.columns.block import Block, rows_within
from distinput.columns.state import State
from distinput.data.iterator import DatasetLike, Iteration, resumed, run_of
from distinput.data.seal import Seal, place_in
from distinput.errors import (
    DataLossError,
    DistinputError,
    FailedPreconditionError,
    InvalidArgumentError,
    NotFoundError,
    StateError,
)
from distinput.files.folder import join_path, names_in, plain_name, remove_file
from distinput.files.paths import as_path, local_path
from distinput.formats.elements import Elements
from distinput.names.lazy import dataclass
from distinput.ops.snapshot import saved_elements
from distinput.plan.check import callable_argument
from distinput.plan.code import function_word
from distinput.plan.families import drawn_seeds, stores
from distinput.plan.fingerprint import difference, fingerprint
from distinput.plan.node import INFINITE, Node, caller
from distinput.plan.reach import ReachedCode
from distinput.run.run import Run
from distinput.values.spec import Spec
from distinput.values.spec_json import MalformedJson, spec_json
from distinput.writers import WRITERS
from distinput.writers.elements import ElementsWriter, codec_of
from distinput.writers.manifest import MANIFEST, Journal, WrittenFile, WrittenFiles, read_written, with_beside
from distinput.writers.open_file import Cut, KeptFiles, OpenFile, Pieces
from distinput.writers.stage import Stage, WriteJob, merging, parts_of, publish, remove_data, tidy
from distinput.writers.writer import Writer

# ----------------------------------------------------------------------------
# A pass over a dataset in blocks, with states from which another process goes on: what writing reads.
# ----------------------------------------------------------------------------


class BlockPass:
    """One pass in blocks.

    Args:
      dataset: what is read.
      state: of `state`, from which the pass goes on; None: a new pass.

    Raises:
      StateError: the state is of another pipeline.
    """

    def __init__(self, dataset: DatasetLike, state: State | None = None) -> None:
        plan, running = dataset.node, dataset._runs()
        if state is None:
            epoch = dataset._passes.begin(plan)
            place: State = {"at": running.node.start(epoch), "epoch": epoch, "skip": 0}
        else:
            place, running = place_in(plan, running, state)
            plan, running = resumed(plan, running, place)
            dataset._passes.goes_on(place["epoch"])
        self._seal, self._epoch = Seal(plan, running), place["epoch"]
        self._at, self._over = place["at"], place["skip"]
        self._before, self._skipped = self._at, 0
        self._seeds, self._stores = drawn_seeds(plan), stores(plan)
        self._iteration = Iteration(running.node, self._at, run_of(running.node))

    def blocks(self) -> Iterator[Block]:
        """The elements that are left, in blocks of a few MiB."""
        for found, after in iter(self._iteration.next, None):
            over, self._over = self._over, max(0, self._over - found.size)
            block = found.materialize()
            step = rows_within(block.size, block.nbytes)
            for self._skipped in range(over, block.size, step):
                yield block.rows(self._skipped, self._skipped + step)
            self._before, self._skipped = after, 0

    def state(self, rows: int) -> State:
        """The state after so many rows of the block that came last."""
        place: State = {"epoch": self._epoch, "at": self._before, "skip": self._skipped + rows}
        if self._seeds:
            place["seeds"] = self._seeds
        if self._stores:
            place["kept"] = [store.epoch for store in self._stores]
        return self._seal(place)

    def close(self) -> None:
        """End the pass and its threads."""
        self._iteration.close()


# ----------------------------------------------------------------------------
# The elements of a pass, in order, beside files of which none is complete before the end: a writer goes on from them.
# ----------------------------------------------------------------------------


class Spool(KeptFiles):
    """Files of elements in a stage.

    Nothing is spooled to stores of objects, nor what the format of saved elements does not hold: there a writer begins again.

    Args:
      stage: where the files are.
      spec: of the elements.
      files: that a writer before this one has completed.
    """

    def __init__(self, stage: Stage, spec: Spec, files: tuple[WrittenFile, ...]) -> None:
        super().__init__(stage, ElementsWriter(), spec, done=files, word="spool")
        self._found, self._keeps = files, stage.local and _holds(spec)

    def elements(self) -> Iterator[Block]:
        """What a writer before this one has spooled."""
        if self._found:
            options = ElementsWriter().reading(self._spec)
            found = saved_elements(WrittenFiles(self._stage.folder, "elements", options, self._found), self._spec)
            with Run() as run:
                for block, _ in found.open(found.start(0), run):
                    yield block.materialize()

    def add(self, block: Block) -> tuple[WrittenFile, ...] | None:
        """Spool more elements; all files, where another one is complete now."""
        if not self._keeps:
            return None
        self.write(block)
        return self.cut()


def _holds(spec: Spec) -> bool:
    try:
        ElementsWriter().check(spec)
    except DistinputError:
        return False
    return True


# ----------------------------------------------------------------------------
# A request to write, and the writing: into a stage, which is published when all is there.
# ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Request:
    """What is to be written, and where.

    Args:
      who: the method, for error messages.
      directory: the folder.
      writer: of the format.
      cut: where files end.
      prefix: of the names of files.
      overwrite: whether a dataset that is there is replaced.
      job: which of several workers this is.
      shard_func: element -> the number of its file; None: `cut` decides.
      more: what the manifest keeps beside.
      progress: is told how many elements are written, again and again.
    """

    who: str
    directory: str
    writer: Writer
    cut: Cut = field(default_factory=Cut)
    prefix: str = "part"
    overwrite: bool = False
    job: WriteJob = field(default_factory=WriteJob)
    shard_func: Callable[..., Any] | None = None
    more: Mapping[str, Any] = field(default_factory=dict)
    progress: Callable[[int], object] | None = None

    def __post_init__(self) -> None:
        try:
            plain = bool(self.prefix) and not plain_name(self.prefix).startswith(".")
        except MalformedJson:
            plain = False
        if not plain:
            raise InvalidArgumentError(
                f"{self.who}: prefix must be the start of a file name, without folders or a leading dot, got {self.prefix!r}"
            )
        if self.job.num_workers > 1 and local_path(self.directory) is None:
            raise InvalidArgumentError(
                f"{self.who}: workers write together to a local or mounted folder, got {self.directory!r}; write a folder for "
                "each worker"
            )


def request_of(
    directory: Any,
    format: str,
    cut: Mapping[str, Any],
    workers: Mapping[str, Any],
    prefix: str,
    overwrite: bool,
    options: Mapping[str, Any],
) -> Request:
    """The request of a call of `Dataset.write`.

    Raises:
      ValueError: there is no such format.
      TypeError: its writer has no such option.
    """
    if not isinstance(format, str):
        raise TypeError(f"write: format must be the name of a format, got {format!r}; known are {', '.join(WRITERS)}")
    open_writer = WRITERS.find(format)
    try:
        signature(open_writer).bind(**options)
    except TypeError as error:
        known = ", ".join(signature(open_writer).parameters)
        raise TypeError(f"write: {format}: {error}; its options are {known}") from None
    return Request(
        "write", as_path(directory), open_writer(**options), Cut(**cut), prefix, overwrite, WriteJob(**workers)
    )


def write(dataset: DatasetLike, request: Request) -> WrittenFiles:
    """Write a pass, or go on where one that was interrupted stood."""
    if dataset.cardinality() == INFINITE:
        raise InvalidArgumentError(f"{request.who}: the dataset is infinite; take(n) elements of it")
    try:
        request.writer.check(dataset.node.spec)
    except InvalidArgumentError as error:
        raise type(error)(str(error).replace("write:", f"{request.who}:", 1)) from None
    with ExitStack() as stack:
        stage = Stage(request.directory, request.job.word())
        if not stage.take(request.who):
            raise FailedPreconditionError(
                f"{request.who}: {request.directory} is being written by {stage.taken_by()}; wait until that has ended"
            )
        stack.callback(stage.release)
        _tell_folder(request)
        writing = Writing(dataset, request, stage)
        try:
            return writing.run()
        except BaseException:
            if stage.journal() is None:  # there is nothing to go on from
                stage.discard()
            raise


def _tell_folder(request: Request) -> None:
    """Warn of a new folder that is called as a file is: who calls `write("a.csv", ...)` expects a file, as pandas makes one."""
    path, ending = request.directory, request.writer.ending
    # `save` and `convert --output` say that it is a folder.
    if request.who == "write" and path.endswith((request.writer.suffix, ending)) and not names_in(path):
        name = f"{request.prefix}-00000-of-00001{ending}"
        caller().warn(
            f"write: {path} is a folder, which will hold the files and a manifest; name it without the ending of a file. "
            f"One file is write(..., shards=1), as {name} in the folder"
        )


class Writing:
    """One call of `write`, which holds the stage.

    Args:
      dataset: what is written.
      request: how.
      stage: where.
    """

    def __init__(self, dataset: DatasetLike, request: Request, stage: Stage) -> None:
        self.dataset, self.request, self.stage = dataset, request, stage
        self.spec = dataset.node.spec
        self.pipeline, self.reached = fingerprint(dataset.node), ReachedCode.by(dataset.node).code_word
        cut, job = request.cut, request.job
        self.key: list[Any] = [
            [request.writer.name, repr(request.writer)],
            [cut.shards, cut.shard_bytes, cut.shard_rows],
            [request.prefix, job.num_workers, job.name],
            "" if request.shard_func is None else function_word(request.shard_func),
        ]

    def run(self) -> WrittenFiles:
        """Write, and publish."""
        request, stage = self.request, self.stage
        self.old = read_written(request.directory)
        journal = self._recovered()
        if request.job.name is not None and self.old is not None and self.old.job == request.job.name:
            stage.remove()
            tidy(request.job, request.directory)
            return self.old  # all workers have written, and one of them has published it
        self._check_old()
        if journal is None or not journal.done:
            journal = self._written(journal)
        return self._published(journal)

    def _check_old(self) -> None:
        """Refuse to replace a dataset that such a call did not write, or that is not to be replaced."""
        old, request = self.old, self.request
        if old is None:
            return
        known = re.compile(
            rf"{re.escape(request.prefix)}(-[0-9a-f]{{8}})?(-\d{{5}}-of-\d{{5}})?-\d{{5}}(-of-\d{{5}})?(-\d{{5}})?\."
        )
        other = next((file.name for file in old.files if not known.match(file.name)), None)
        theirs = other is not None or "op" in old.more  # a cache, whose files have the names of what is saved
        if not theirs and request.overwrite:
            return
        self.stage.remove()
        holds = f"{request.who}: {request.directory} holds a complete dataset of {old.rows} elements ({MANIFEST})"
        if not theirs:
            cure = "overwrite=True" + " (--overwrite in the command line)" * (request.who == "convert")
            raise FailedPreconditionError(f"{holds}; {cure} replaces it once the new one is complete")
        named = f"a {old.more['op']}" if other is None else f"{other} is not named {request.prefix}-..."
        raise FailedPreconditionError(
            f"{holds} that is another one ({named}), and is not replaced; a folder holds one dataset: write to another folder, "
            f"such as {join_path(request.directory, request.prefix)}"
        )

    def _recovered(self) -> Journal | None:
        """The journal to continue from; what else a writer that was killed has left is removed."""
        stage, old = self.stage, self.old
        journal = Journal.of_json(stage.journal())
        if journal is None:
            stage.clear()
            return None
        if old is not None and old.run == journal.run:  # it was published, but the writer did not come to tidy up
            remove_data(stage.directory, set(journal.replaces) - {file.name for file in with_beside(old.files)})
            stage.clear()
            return None
        same = (journal.key, journal.reached) == (self.key, self.reached)
        same = same and difference(self.dataset.node, journal.pipeline) is None
        if same and all(map(stage.has, journal.files)):
            return journal
        kept = {file.name for file in with_beside(old.files)} if old is not None else set()
        for file in with_beside(journal.files) if journal.done else ():
            if file.name not in kept:
                remove_file(join_path(stage.directory, file.name))
        stage.clear()
        return None

    def _written(self, journal: Journal | None) -> Journal:
        """Write what is missing."""
        stage, request, order = self.stage, self.request, self._order
        block_pass = None
        if journal is not None and journal.order != order:
            stage.clear()  # the number of elements was not known then, or is not known now
        elif journal is not None:
            try:
                block_pass = BlockPass(self.dataset, journal.state)
            except StateError:  # other rules, another release: begin again
                stage.clear()
        if block_pass is None or journal is None:
            self._check_names()
            stage.run = request.job.run or stage.run
            journal = Journal(self.key, stage.run, pipeline=self.pipeline, reached=self.reached, order=order)
            journal = replace(
                journal, replaces=tuple([file.name for file in with_beside(self.old.files if self.old else ())])
            )
            block_pass = BlockPass(self.dataset)
        stage.run = journal.run
        per_file: list[int] = []
        try:
            if request.shard_func is not None:
                pieces = self._by_function(block_pass, journal, request.shard_func)
                files, per_file = pieces.in_order()
            elif order == "turns":
                files = self._in_turns(block_pass, journal, request.cut.shards or 1)
            else:
                files = self._in_order(block_pass, journal)
        finally:
            block_pass.close()
        done = replace(journal, files=tuple(files), state=None, done=True, pieces=tuple(per_file))
        stage.record(done.to_json())
        stage.clear(all_but=done.files)
        return done

    @property
    def _order(self) -> str:
        """How elements go to files, as `WrittenFiles` has it."""
        if self.request.shard_func is not None:
            return "shard_func"
        return "turns" if (self.request.cut.shards or 1) > 1 and self._total < 0 else "files"

    def _published(self, journal: Journal) -> WrittenFiles:
        """Give the files their names; of several workers the last one does it, for all."""
        stage, job = self.stage, self.request.job
        if job.num_workers == 1:
            return publish([(stage, journal.files)], self._made(journal.files, journal), self.old)
        with merging(self.request.directory):
            old = read_written(self.request.directory)
            if old is not None and old.job == job.name:
                return old
            parts = parts_of(job, self.request.directory, self.key)
            if parts is None:
                return replace(self._made(journal.files, journal), complete=False)
            files = tuple([file for _, part in parts for file in part.files])
            return publish([(each, part.files) for each, part in parts], self._made(files, journal), old)

    def _made(self, files: tuple[WrittenFile, ...], journal: Journal) -> WrittenFiles:
        request = self.request
        try:
            spec = spec_json(self.spec, request.who)
        except DistinputError:  # keys of dicts that JSON cannot hold; the files say what they need themselves
            spec = None
        return WrittenFiles(
            directory=request.directory,
            format=request.writer.name,
            options=request.writer.reading(self.spec),
            files=files,
            spec=spec,
            pipeline=self.pipeline,
            run=journal.run,
            job=request.job.name,
            order=journal.order,
            pieces=() if max(journal.pieces, default=1) == 1 else journal.pieces,
            more=dict(request.more),
        )

    @property
    def _total(self) -> int:
        return self.dataset.node.count_elements()

    # --- names

    def _name(self, index: int, piece: int = 0) -> str:
        request = self.request
        prefix = request.prefix if self.old is None and self.stage.local else f"{request.prefix}-{self.stage.run}"
        count = "" if request.cut.shards is None else f"-of-{request.cut.shards:05d}"
        part = f"-{piece:05d}" if piece else ""
        return f"{request.job.prefix(prefix)}-{index:05d}{count}{part}{request.writer.ending}"

    def _check_names(self) -> None:
        """Refuse a folder with files that would be overwritten, or taken for files of the dataset."""
        request = self.request
        known = {file.name for file in with_beside(self.old.files)} if self.old is not None else set()
        start = request.job.prefix(request.prefix) + "-"
        endings = (request.writer.ending, request.writer.beside or request.writer.ending)
        for name in names_in(request.directory):
            if name.startswith(start) and name.endswith(endings) and name not in known:
                raise FailedPreconditionError(
                    f"{request.who}: {join_path(request.directory, name)} is there already, and no {MANIFEST} names it; remove "
                    "it, or give another prefix= or an empty folder"
                )

    # --- the files

    def _blocks(self, passed: BlockPass, done: int) -> Iterator[Block]:
        """The elements that are left; whoever wants to know hears how many are done."""
        tell = self.request.progress
        for block in passed.blocks():
            yield block
            done += block.size
            if tell is not None:
                tell(done)

    def _open(self, index: int, first: int) -> OpenFile:
        return OpenFile(self.stage, self.request.writer, self.spec, self._name(index), first)

    def _in_order(self, passed: BlockPass, journal: Journal) -> list[WrittenFile]:
        """One file after the other; each is recorded when it is complete."""
        cut, total = self.request.cut, self._total if (self.request.cut.shards or 1) > 1 else -1
        files, first = list(journal.files), journal.rows
        current: OpenFile | None = None
        try:
            for block in self._blocks(passed, first):
                offset = 0
                while offset < block.size:
                    current = current or self._open(len(files), first)
                    wanted = self._rows(len(files), total)
                    part = block if wanted is None and not offset else block.rows(offset, block.size)
                    if wanted is not None and current.rows + part.size > wanted:
                        part = part.rows(0, wanted - current.rows)
                    current.write(part)
                    offset += part.size
                    if current.size >= cut.bytes if wanted is None else current.rows >= wanted:
                        files.append(current.end())
                        first, current = first + files[-1].rows, None
                        state = passed.state(offset)
                        self.stage.record(replace(journal, files=tuple(files), state=state).to_json())
            while current is not None or len(files) < (cut.shards or 1):
                current = current or self._open(len(files), first)
                files.append(current.end())
                first, current = first + files[-1].rows, None
        finally:
            if current is not None:
                current.discard()
        return files

    def _rows(self, index: int, total: int) -> int | None:
        shards = self.request.cut.shards
        if shards is not None and index >= shards:
            raise FailedPreconditionError(
                f"{self.request.who}: the dataset said that it has {total} elements, and has more; leave shards= out"
            )
        return self.request.cut.rows(index, total)

    def _in_turns(self, passed: BlockPass, journal: Journal, shards: int) -> list[WrittenFile]:
        """Element i to file i modulo `shards`, since nobody knows how many there are.

        No file is complete before the end. So the elements are spooled too, in order, and the spool is what is recorded: a
        writer that goes on deals what is in it anew, and then what the pass still has.
        """
        open_files: list[OpenFile] = []
        done = 0

        def deal(block: Block) -> None:
            nonlocal done
            for shard in range(shards):
                open_files[shard].write(block.rows((shard - done) % shards, block.size, shards))
            done += block.size

        spool = Spool(self.stage, self.spec, journal.files)
        try:
            open_files += [self._open(number, 0) for number in range(shards)]
            for block in spool.elements():
                deal(block)
            for block in self._blocks(passed, done):
                deal(block)
                ended = spool.add(block)
                if ended is not None:
                    self.stage.record(replace(journal, files=ended, state=passed.state(block.size)).to_json())
            return [file.end() for file in open_files]
        except OSError as error:
            if error.errno == errno.ENOSPC:
                error.add_note(
                    f"while {self.request.who} kept {spool.size} bytes of elements in {self.stage.folder}, to go on from: "
                    "nobody has counted them; with experimental.assert_cardinality(n), shard_rows= or shard_bytes= they are "
                    "written once"
                )
            raise
        finally:
            spool.discard()
            for file in open_files:
                file.discard()

    def _by_function(self, passed: BlockPass, journal: Journal, shard_func: Callable[..., Any]) -> Pieces:
        """Each element to the file that a function names; now and then all files end, and are recorded."""

        def begin(number: int, piece: int) -> OpenFile:
            return OpenFile(self.stage, self.request.writer, self.spec, self._name(number, piece), 0)

        pieces = Pieces(self.request.who, begin, self.request.cut.bytes, journal.files, journal.numbers)
        try:
            for block in self._blocks(passed, journal.rows):
                pieces.deal(shard_func, block)
                if pieces.full:
                    pieces.end()
                    files, state = tuple(pieces.ended), passed.state(block.size)
                    record = replace(journal, files=files, numbers=tuple(pieces.numbers), state=state)
                    self.stage.record(record.to_json())
            pieces.end()
        finally:
            pieces.discard()
        return pieces


# ----------------------------------------------------------------------------
# What `Dataset.save` and `Dataset.load` do: elements of any spec in a folder, exactly as they are.
# ----------------------------------------------------------------------------


_PAUSE = 0.05
"""Seconds from one look for a dataset that another process saves to the next."""


def save(
    dataset: DatasetLike,
    path: Any,
    compression: str | None,
    shard_func: Callable[..., Any] | None,
    checkpoint_args: Mapping[str, Any] | None,
) -> WrittenFiles:
    """Save a pass, in the place of what was saved there before."""
    if checkpoint_args is not None and not isinstance(checkpoint_args, Mapping):
        raise TypeError(f"save: checkpoint_args must be a dict of arguments, got {checkpoint_args!r}")
    if shard_func is not None:
        callable_argument("save", "shard_func", shard_func)
    codec = codec_of("save", compression)
    request = Request(
        "save",
        as_path(path),
        ElementsWriter(codec),
        prefix="elements",
        overwrite=True,
        shard_func=shard_func,
        more={"compression": codec},
    )
    return write(dataset, request)


def load(
    path: Any, element_spec: Any, compression: str | None, reader_func: Callable[[Any], Any] | None, wait: bool
) -> Node:
    """The step that reads the saved elements."""
    directory = as_path(path)
    if reader_func is not None:
        callable_argument("load", "reader_func", reader_func)
    manifest = read_written(directory)
    while manifest is None and wait:
        time.sleep(_PAUSE)
        manifest = read_written(directory)
    if manifest is None:
        raise NotFoundError(
            f"load: {directory} holds no complete dataset ({MANIFEST} is missing); save one there, or give wait=True if another"
            " process saves it"
        )
    if manifest.format != Elements.name:
        raise InvalidArgumentError(
            f"load: {directory} holds files of format {manifest.format!r}, which save did not write; read them with "
            "FileDataset(directory)"
        )
    kept = manifest.more.get("compression")
    if compression is not None and codec_of("load", compression) != kept:
        raise InvalidArgumentError(
            f"load: {directory} was saved with compression {kept!r}, got {compression!r}; leave compression out"
        )
    given = None if element_spec is None else Spec.of(element_spec)
    try:
        return saved_elements(manifest, given, reader_func)
    except (DataLossError, InvalidArgumentError, TypeError) as error:
        raise type(error)(f"load: {directory}: {error}") from error
