# SPDX-License-Identifier: Apache-2.0
"""What a model has seen: the entries of a ledger, read into a history, and held beside a dataset that was built again."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from distinput.columns.column import Ints
from distinput.columns.state import State, is_count
from distinput.data.iterator import resumed
from distinput.data.seal import place_in
from distinput.distribute.input.distributed_dataset import DistributedDataset, DistributedIterator, opened_state
from distinput.distribute.input.located import Located
from distinput.distribute.input.sources import WHOLE, CutBatches, DealtElements, StepSource
from distinput.errors import DataLossError, OutOfRangeError, StateError, UnimplementedError
from distinput.kernels.protobuf import varint_bytes
from distinput.lineage.followed import Followed, followed
from distinput.lineage.step_records import (
    StepRecords,
    check_no_steps_left_out,
    check_replica,
    described,
    located_part,
    located_rows,
    looks_back,
    replayed,
    replica_rows,
    resealed,
    step_from,
)
from distinput.names.lazy import dataclass
from distinput.names.words import shown
from distinput.ops.balance_rows import BalanceRows
from distinput.plan.families import decided
from distinput.plan.node import walk
from distinput.values.spec_json import MalformedJson, items_of, json_value, member, of_kind

Losses: TypeAlias = NDArray[np.float32]


# ----------------------------------------------------------------------------
# What a model has seen: the entries of a ledger, read into a history; how little a state changes from step to step.
# ----------------------------------------------------------------------------


# ---- How a state differs from the one before, in a few bytes: positions are small numbers that grow a little

_HOLE = {"#": 0}


def taken_apart(value: Any) -> tuple[str, list[int]]:
    """A JSON value without its integers, as text, and the integers in their order.

    >>> taken_apart({"row": 7, "input": {"row": 3, "any": True}})
    ('{"input":{"any":true,"row":{"#":0}},"row":{"#":0}}', [3, 7])
    """
    found: list[int] = []
    return json.dumps(_without(value, found), separators=(",", ":")), found


def _without(value: Any, found: list[int]) -> Any:
    if isinstance(value, dict):
        return {name: _without(value[name], found) for name in sorted(value)}
    if isinstance(value, list | tuple):
        return [_without(item, found) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        found.append(value)
        return _HOLE
    return value


def joined(form: str, numbers: Sequence[int]) -> Any:
    """The JSON value that `taken_apart` took apart.

    >>> joined(*taken_apart([1, {"a": 2}, None, "x"]))
    [1, {'a': 2}, None, 'x']
    """
    left = iter(numbers)

    def filled(value: Any) -> Any:
        if value == _HOLE:
            return next(left)
        if isinstance(value, dict):
            return {name: filled(item) for name, item in value.items()}
        return [filled(item) for item in value] if isinstance(value, list) else value

    return filled(json.loads(form))


def changed(before: Sequence[int], after: Sequence[int]) -> bytes:
    """What makes `after` of `before`, which has as many numbers.

    >>> len(changed([5, 100, 7], [5, 196, 7]))
    3
    """
    made = bytearray()
    last = -1
    for place, (old, new) in enumerate(zip(before, after, strict=True)):
        if old != new:
            made += varint_bytes(place - last - 1)
            change = new - old
            made += varint_bytes(2 * change if change >= 0 else -2 * change - 1)
            last = place
    return bytes(made)


def numbers_of(before: Sequence[int], change: bytes) -> list[int]:
    """The numbers that `changed` was given.

    Raises:
      MalformedJson: it did not give such a change.

    >>> numbers_of([5, 100, 7], changed([5, 100, 7], [5, 4, 8]))
    [5, 4, 8]
    """
    found = list(before)
    place = -1
    given = _varints(change)
    for gap in given:
        place += gap + 1
        if (coded := next(given, None)) is None or place >= len(found):
            raise MalformedJson("a step has changed a number that is not there")
        found[place] += coded >> 1 if coded % 2 == 0 else -(coded + 1 >> 1)
    return found


def read_varint(data: bytes, at: int) -> tuple[int, int] | None:
    """The number at a place, and the place behind it; None if the bytes end before it does."""
    value = shift = 0
    while at < len(data):
        byte = data[at]
        value |= (byte & 127) << shift
        at, shift = at + 1, shift + 7
        if byte < 128:
            return value, at
    return None


def _varints(data: bytes) -> Iterator[int]:
    at = 0
    while (found := read_varint(data, at)) is not None:
        value, at = found
        yield value


# ---- The entries of a ledger file: appended one at a time, each with its length and a check, so that a torn end is found

MAGIC = b"distinput.ledger 1\n"
LOSSES = ".losses"
"""How the names of files of losses end."""

_BEGIN, _STEP, _CHANGE, _FORM, _NOTE = b"B", b"S", b"C", b"F", b"N"
_CHECK = 2
"""Bytes of the check of an entry: a torn end is mostly known by its length."""


@dataclass(frozen=True)
class Entry:
    """An entry.

    Args:
      begin: of a part that begins here: where it does, and what runs; None for a step.
      inputs: the states of the input pipelines after a step, if the ledger keeps them.
      note: of a file of losses: a step of the pass, a replica, and what was noted of each of its rows.
    """

    begin: Mapping[str, Any] | None = None
    inputs: list[State] | None = field(default=None, repr=False)
    note: tuple[int, int, Losses] | None = field(default=None, repr=False)


def entries_of(data: bytes, path: str) -> Iterator[tuple[Entry, int]]:
    """The entries of a file, each with the place behind it; a torn end is left out.

    Raises:
      DataLossError: it is not a ledger, or is damaged before its end.
    """
    if not data:
        return
    solid = len(data.rstrip(b"\0"))  # a machine that loses power may leave zeros
    if not data.startswith(MAGIC):
        if MAGIC.startswith(data[:solid]):
            return  # torn while it was made
        raise DataLossError(
            f"{path}: this is not a ledger of distinput; it must begin with {MAGIC!r}, not {data[:20]!r}"
        )
    position = len(MAGIC)
    form, numbers = "", [0]
    while position < len(data):
        found = read_varint(data, position)
        if found is None or found[1] + found[0] + _CHECK > len(data):
            return
        size, begin = found
        body = data[begin : begin + size]
        end = begin + size + _CHECK
        if not size or data[end - _CHECK : end] != _check(body):
            if end >= solid:
                return
            raise _damaged(path, position)
        kind, rest = body[:1], body[1:]
        try:
            if kind == _BEGIN:
                told = _beginning_of(json_value(rest), path.endswith(LOSSES))
                form, numbers = taken_apart(told["inputs"])
                entry = Entry(begin=told)
            elif kind == _STEP:
                entry = Entry()
            elif kind == _NOTE and form and len(rest) >= 16 and len(rest) % 4 == 0:
                step, replica = np.frombuffer(rest, "<i8", 2).tolist()
                entry = Entry(note=(step, replica, np.frombuffer(rest, "<f4", -1, 16)))
            elif kind == _FORM:
                form, numbers = taken_apart(_places_of(json_value(rest)))
                entry = Entry(inputs=joined(form, numbers))
            elif kind == _CHANGE and form:
                numbers = numbers_of(numbers, rest)
                entry = Entry(inputs=joined(form, numbers))
            else:
                raise MalformedJson("there is no such entry")
        except (MalformedJson, RecursionError) as error:
            raise _damaged(path, position, f": {error}") from error
        yield entry, end
        position = end


_COUNTS = {"epoch": 0, "step": 0, "replicas": 1, "workers": 1, "at": 0}
"""Members of what is told of a part, with the least that they can be."""
_KINDS = {"keeps": bool, "balanced": bool, "state": dict}
_UNTOLD = {"at": 0, "balanced": True}
"""What earlier versions did not tell."""


def _beginning_of(told: Any, losses: bool) -> dict[str, Any]:
    """What is told of a part, if it is what `beginning` gives; a file of losses tells less.

    Raises:
      MalformedJson: it is not.
    """
    less = {**_UNTOLD, "workers": 1, "keeps": False, "state": {}} if losses else _UNTOLD
    whole = {**less, **of_kind(told, "a part", dict)}
    for name, least in _COUNTS.items():
        if not is_count(number := member(whole, name), least):
            raise MalformedJson(f"{name!r} cannot be {shown(number)}")
    for name, kind in _KINDS.items():
        member(whole, name, kind)
    _places_of(member(whole, "inputs"))
    return dict(told)


def _places_of(inputs: Any) -> list[State]:
    """The states of the input pipelines, if they can be some.

    Raises:
      MalformedJson: they cannot.
    """
    return [of_kind(each, "a state", dict) for each in items_of(inputs, "'inputs'")]


def _damaged(path: str, at: int, why: str = "") -> DataLossError:
    return DataLossError(f"{path}: the ledger is damaged at byte {at}{why}; what comes before is whole")


def _check(body: bytes) -> bytes:
    return crc32(body).to_bytes(4, "little")[:_CHECK]


class LedgerFile:
    """Appends entries to a file; each is in the hands of the operating system before the call returns.

    Args:
      path: a local file; a torn end, which a killed process left, is cut off.

    Raises:
      DataLossError: it is not a ledger, or is damaged.
    """

    def __init__(self, path: str) -> None:
        self._file = os.open(path, os.O_RDWR | os.O_CREAT | getattr(os, "O_NOFOLLOW", 0), 0o666)
        with open(self._file, "rb", closefd=False) as file:
            data = file.read()
        end = 0
        for _, end in entries_of(data, path):  # noqa: B007 - the last one counts
            pass
        if not end:
            os.ftruncate(self._file, 0)
            os.lseek(self._file, 0, os.SEEK_SET)
            os.write(self._file, MAGIC)
            end = len(MAGIC)
        os.ftruncate(self._file, end)
        os.lseek(self._file, end, os.SEEK_SET)
        self._form, self._numbers = "", [0]

    def begin(self, told: Mapping[str, Any]) -> None:
        """A part begins; `told["inputs"]` are the states of the input pipelines there."""
        self._form, self._numbers = taken_apart(told["inputs"])
        self._put(_BEGIN + json.dumps(told, separators=(",", ":")).encode())
        os.fsync(self._file)

    def step(self, inputs: list[State] | None) -> None:
        """A step was delivered; `inputs` are the states after it, if they are to be kept."""
        if inputs is None:
            self._put(_STEP)
            return
        form, numbers = taken_apart(inputs)
        if form == self._form:
            self._put(_CHANGE + changed(self._numbers, numbers))
        else:
            self._put(_FORM + json.dumps(inputs, separators=(",", ":")).encode())
        self._form, self._numbers = form, numbers

    def note(self, step: int, replica: int, losses: Losses) -> None:
        """What was noted of the rows of a replica in a step of the pass that has begun."""
        self._put(_NOTE + np.array([step, replica], "<i8").tobytes() + losses.astype("<f4").tobytes())

    def _put(self, body: bytes) -> None:
        data = varint_bytes(len(body)) + body + _check(body)
        while data:
            data = data[os.write(self._file, data) :]

    def close(self) -> None:
        """Close the file; may be called again."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1


# ---- The steps that a model has seen, from the entries of a ledger: what was made in vain before a restart is left out


@dataclass(frozen=True)
class PassSegment:
    """Consecutive steps of one pass, taken by one job.

    Args:
      epoch: of which pass.
      first: the number of the first step in that pass.
      steps: how many there are.
      told: what the ledger holds about the job: "workers", "replicas", its "state", and the "inputs" before step "at", which is
        an earlier one than its first if steps in between were left out.
      began: at which step of the pass the job began or went on.
      inputs: the states after each step since then, if the ledger keeps them.
    """

    epoch: int
    first: int
    steps: int
    told: Mapping[str, Any]
    began: int
    inputs: Sequence[list[State]] = ()

    @property
    def stop(self) -> int:
        """The number of the step behind the last one."""
        return self.first + self.steps

    def inputs_before(self, step: int) -> tuple[int, list[State]]:
        """The states that the ledger keeps of the last place before a step of the pass, and before which step that is."""
        if step == self.began or not self.inputs:
            return self.told.get("at", self.began), list(self.told["inputs"])
        return step, self.inputs[step - self.began - 1]


@dataclass(frozen=True)
class History:
    """The parts that make up what a model has seen, in order.

    Args:
      parts: none of them empty.
    """

    parts: tuple[PassSegment, ...]

    @staticmethod
    def of(entries: Iterable[Entry]) -> "History":
        """What counts of these entries: a part takes the place of what was written from its beginning on."""
        parts: list[PassSegment] = []
        kept: list[list[State]] = []
        for entry in entries:
            if entry.begin is not None:
                epoch, step = entry.begin["epoch"], entry.begin["step"]
                parts = [short for part in parts if (short := _before(part, epoch, step)) is not None]
                kept = []
                parts.append(PassSegment(epoch, step, 0, entry.begin, step, kept))
            elif parts:
                parts[-1] = replace(parts[-1], steps=parts[-1].steps + 1)
                if entry.inputs is not None:
                    kept.append(entry.inputs)
        return History(tuple([part for part in parts if part.steps]))

    def __len__(self) -> int:
        return sum(part.steps for part in self.parts)

    def numbers(self) -> dict[tuple[int, int, int, int, int | None], int]:
        """The number of each step among all, by pass, number there, where the job began, and its replicas and workers.

        Each is there a second time without the workers (None), which files of earlier versions do not tell.
        """
        keys = [
            (part.epoch, step, part.began, part.told["replicas"], part.told["workers"])
            for part in self.parts
            for step in range(part.first, part.stop)
        ]
        return {(*key[:4], workers): number for number, key in enumerate(keys) for workers in (key[4], None)}

    def part_of(self, number: int) -> tuple[PassSegment, int]:
        """The part that holds a step, and the number of the step in its pass.

        Args:
          number: of the step among all, from 0 on; negative: from the end.

        Raises:
          IndexError: there is no such step.
        """
        left = number + len(self) if number < 0 else number
        if left >= 0:
            for part in self.parts:
                if left < part.steps:
                    return part, part.first + left
                left -= part.steps
        raise OutOfRangeError(f"ledger: there is no step {number} among the {len(self)} that it holds")


def _before(part: PassSegment, epoch: int, step: int) -> PassSegment | None:
    """What is left of a part in front of a place."""
    if (part.epoch, part.stop) <= (epoch, step) or part.epoch < epoch:
        return part
    if (part.epoch, part.first) >= (epoch, step):
        return None
    return replace(part, steps=step - part.first)


# ----------------------------------------------------------------------------
# What a ledger holds of an iteration, and what it says about a dataset that was built anew.
# ----------------------------------------------------------------------------


# ---- Which records a step is made of, from the states of the input pipelines that a ledger keeps


class KeptRecords:
    """The records of the steps of one pass: what steps of the pipeline look at is read again, from the state before a step on.

    Args:
      source: where the steps come from.
      epoch: the pass.
    """

    def __init__(self, source: StepSource, epoch: int) -> None:
        self._source, self._epoch = source, epoch
        self._made: dict[int, Followed] = {}

    def locate(self, step: int, replica: int | None, first: int, states: Sequence[State]) -> Located:
        """The records of a step that was delivered.

        Args:
          step: of the pass.
          replica: as for `DistributedDataset.locate`.
          first: an earlier step, or this one.
          states: of the input pipelines before the step `first`.

        Raises:
          IndexError: there is no such replica.
          UnimplementedError: the records cannot be followed; or they are those of another worker.
        """
        source: Any = self._source
        replicas = source.terms.replicas
        check_replica(replica, replicas.total)
        if not isinstance(source, DealtElements) or source.whole:
            tree, found = self._elements(0, states[0], step - first, 1)
            if not found:
                return Located.empty(step, self._epoch)
            (numbers,) = found
            balanced = isinstance(source, CutBatches) and source.balanced
            at, who, row = replica_rows(len(numbers), replica, replicas.total, replicas.workers, balanced)
            return located_rows(step, self._epoch, who, row, numbers[at], tree, tree.assumes)
        mine = range(replicas.first, replicas.first + replicas.count)
        if replicas.workers > 1 and replica not in mine:
            raise UnimplementedError(
                f"locate: each worker reads elements of its own, and its ledger knows only the records of its own replicas, "
                f"{mine.start} to {mine.stop - 1}; pass replica=, one of them, and ask the other workers for theirs"
            )
        parts = []
        for number, tree, numbers in self._dealt(source, states, step - first):
            if replica in (None, number):
                parts.append(located_part(step, self._epoch, number, numbers, tree, tree.assumes))
        return Located.joined(parts) if parts else Located.empty(step, self._epoch)

    def _dealt(self, source: DealtElements, states: Sequence[State], ahead: int) -> list[tuple[int, Followed, Ints]]:
        """The replicas of this worker that have an element."""
        first, count = source.terms.replicas.first, source.terms.replicas.count
        if len(states) == 1:
            tree, found = self._elements(0, states[0], ahead * count, count)
            return [(first + local, tree, numbers) for local, numbers in enumerate(found)]
        own = [self._elements(local, state, ahead, 1) for local, state in enumerate(states)]
        return [(first + local, tree, found[0]) for local, (tree, found) in enumerate(own) if found]

    def _elements(self, number: int, state: State, skip: int, count: int) -> tuple[Followed, list[Ints]]:
        """The numbers of the records of elements of a pipeline."""
        dataset = described(self._source)[number]
        place, running = place_in(dataset.node, dataset._runs(), state)
        if number not in self._made:
            _, running = resumed(dataset.node, running, place)
            check_no_steps_left_out(self._source, dataset.node, "Ledger.replay gives the step itself")
            self._made[number] = followed(running.node, self._epoch)
        tree = self._made[number]
        return tree, tree.elements(place["at"], place["skip"] + skip, count)


# ---- What a ledger holds and says


def beginning(iterator: DistributedIterator) -> dict[str, Any]:
    """What a ledger holds about an iteration where it begins or goes on."""
    source, step, epoch = iterator._source, iterator.step, iterator.epoch
    replicas, state = source.terms.replicas, iterator.state()
    datasets = described(source)
    keeps = any(decided(each.node) or each._runs().node.start_at(0, epoch) is None for each in datasets)
    return {
        "epoch": epoch,
        "step": step,
        "at": step,
        "workers": replicas.workers,
        "replicas": replicas.total,
        "rank": replicas.rank,
        "keeps": keeps,
        "balanced": getattr(source, "balanced", True),
        "writes": replicas.rank == 0 or source.layout != WHOLE,
        "state": state,
        "inputs": places(iterator),
    }


def places(iterator: DistributedIterator) -> list[State]:
    """Where the input pipelines stand, without the identity of the pipelines."""
    return iterator._steps.places()


def _seeds(state: State) -> list[list[int]]:
    return [given.get("seeds", []) for given in state["inputs"]]


class LedgerView:
    """A history, asked about with the dataset that it is of.

    Args:
      dataset: the distributed dataset.
      history: what a model has seen of it.
    """

    def __init__(self, dataset: DistributedDataset, history: History) -> None:
        self._source, self._delivery, self.history = dataset._source, dataset._delivery, history
        self._checked: dict[int, State] = {}
        self._records: dict[tuple[int, bool], StepRecords] = {}
        self._followed: dict[tuple[int, bool], KeptRecords] = {}

    def __len__(self) -> int:
        return len(self.history)

    def locate(self, number: int, replica: int | None, *, read: bool) -> Located:
        """See `Ledger.locate`."""
        part, step = self.history.part_of(number)
        state = self._state_of(part)
        key = id(part.told), read
        if key not in self._records:
            self._records[key] = StepRecords.with_seeds(self._source, _seeds(state), read=read)
        if key not in self._followed:
            try:
                return self._records[key].locate(step, replica, part.epoch)
            except UnimplementedError:
                if not part.told["keeps"]:
                    raise
        kept = self._followed.setdefault(key, KeptRecords(self._source, part.epoch))
        first, states = self._before(part, step)
        return kept.locate(step, replica, first, states)

    def rows_of(self, number: int, replica: int, *, read: bool) -> Located:
        """The records of the rows that a replica of the job got in a step, whatever replicas this dataset is for.

        Raises:
          UnimplementedError: as for `locate`; or rows of the job's replicas are not known on other replicas.
        """
        job, replicas, source = self.history.part_of(number)[0].told, self._source.terms.replicas, self._source
        if (job["replicas"], job["workers"]) == (replicas.total, replicas.workers):
            return self.locate(number, replica, read=read)
        dealt = isinstance(source, DealtElements) and not source.whole
        if dealt or any(isinstance(step, BalanceRows) for each in described(source) for step in walk(each.node)):
            raise UnimplementedError(
                f"ledger: elements were dealt to {job['replicas']} replicas on {job['workers']} workers; ask with a strategy "
                f"that has as many, this one has {replicas.total} on {replicas.workers}"
            )
        step = self.locate(number, None, read=read)
        width = 1 + int(step.row.max(initial=0))
        keys = step.replica * width + step.row
        rows = len(np.unique(keys))
        balanced = getattr(source, "balanced", True)  # of a batch that is whole, nothing is cut
        at, who, row = replica_rows(rows, None, replicas.total, replicas.workers, balanced)
        order = np.argsort(who * width + row)
        whole = at[order[np.searchsorted(who * width + row, keys, sorter=order)]]  # [rows] in the global batch
        at, who, row = replica_rows(rows, None, job["replicas"], job["workers"], job.get("balanced", balanced))
        there = np.argsort(at)[whole]
        mine = np.flatnonzero(who[there] == replica)
        return replace(
            step,
            file=step.file[mine],
            record=step.record[mine],
            replica=np.full(len(mine), replica),
            row=row[there[mine]],
        )

    def replay(self, number: int) -> Any:
        """See `Ledger.replay`."""
        part, step = self.history.part_of(number)
        state = self._state_of(part)
        if not part.told["keeps"]:
            if any(decided(dataset.node) for dataset in described(self._source)):
                raise UnimplementedError(
                    "ledger: it holds no decisions about the weights of this pipeline, which an earlier version did not write "
                    "behind a cache; so the steps that were seen are not known"
                )
            return replayed(self._source, self._delivery, step, part.epoch, _seeds(state))
        first, states = self._before(part, max(part.began, step - looks_back(self._source, step)))
        return step_from(self._source, self._delivery, states, first, step)

    def _before(self, part: PassSegment, step: int) -> tuple[int, list[State]]:
        """The states that are kept of the last place before a step, and before which step that is."""
        first, kept = part.inputs_before(step)
        inputs, last = self._state_of(part)["inputs"], part.inputs[-1] if part.inputs else kept
        if not len(inputs) == len(kept) == len(last) or first > step:
            raise DataLossError(
                f"ledger: step {step} of epoch {part.epoch} is damaged: it is of other inputs than its job"
            )
        # What was decided later, about steps that were still to come, holds for them too.
        latest = [{name: each[name] for name in ("decided",) if name in each} for each in last]
        kept = [{**place, **made} for place, made in zip(kept, latest, strict=True)]
        return first, [resealed(given, place) for given, place in zip(inputs, kept, strict=True)]

    def _state_of(self, part: PassSegment) -> State:
        """The state at the beginning of a part.

        Raises:
          StateError: it is of another pipeline or distribution.
        """
        key = id(part.told)
        if key not in self._checked:
            state = self._opened(part.told)
            for dataset, given in zip(described(self._source), state["inputs"], strict=True):
                place_in(dataset.node, dataset._runs(), given)
            self._checked[key] = state
        return self._checked[key]

    def _opened(self, told: Mapping[str, Any]) -> State:
        try:
            return opened_state(told["state"], self._source.layout, self._source.pipelines)
        except StateError as error:
            replicas, workers, each = self._source.terms.replicas, told["workers"], told["replicas"] // told["workers"]
            if (workers, told["replicas"]) == (replicas.workers, replicas.total):
                raise
            raise StateError(
                f"ledger: the job had workers={workers} and replicas={told['replicas']}, which divided the data, and "
                f"this dataset has workers={replicas.workers} and replicas={replicas.total}; without the job, "
                f"distinput.distribute.rehearsal.rehearse(dataset, {workers}, {each}, body) calls body(distributed, strategy) "
                "with what each of its workers had: ask the ledger there"
            ) from error
