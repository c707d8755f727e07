# SPDX-License-Identifier: Apache-2.0
"""Which records the parts of each step are made of, for every source of steps; and a step once more."""

import posixpath
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property, lru_cache
from itertools import islice
from typing import Any, TypeAlias

import numpy as np

from distinput.columns.block import balanced_slice
from distinput.columns.column import Ints
from distinput.columns.state import State
from distinput.data.seal import Seal, sealed
from distinput.distribute.input.dealing import END, Placeholders, equal_slices
from distinput.distribute.input.delivery import Delivery, StepsAhead
from distinput.distribute.input.located import Located, Ranges, Records, Seen
from distinput.distribute.input.sources import CutBatches, DealtElements, OwnBatches, OwnPiecesSource, Steps, StepSource
from distinput.errors import InvalidArgumentError, OutOfRangeError, UnimplementedError
from distinput.lineage.followed import Followed
from distinput.lineage.numbered import Numbered, numbered
from distinput.ops.balance_rows import BalanceRows
from distinput.plan.families import drawn_seeds, stores, with_drawn_seeds
from distinput.plan.node import INFINITE, UNKNOWN, Node, walk
from distinput.rewrite.rules import Running
from distinput.sharding.own_rows import leaves_out_steps
from distinput.sharding.shard_plan import workers_of

# ----------------------------------------------------------------------------
# Which records the parts of each step are made of, for every source of steps; which steps are left out.
# ----------------------------------------------------------------------------


# ---- The rows of replicas in a step, made of the numbers of their records


_NAMED = 4
"""Files that an error names."""

Numbering: TypeAlias = Numbered | Followed
"""What the numbers of records stand for: `files`, `places` among them, and whether it `fills` with numbers of no record."""


@lru_cache(maxsize=256)
def replica_rows(rows: int, replica: int | None, total: int, workers: int, balanced: bool) -> tuple[Ints, Ints, Ints]:
    """Which rows of a global batch a replica gets, or all of them, replica by replica.

    Args:
      rows: of the batch.
      replica: None: all.
      total: how many replicas there are.
      workers: how many workers they are on.
      balanced: whether the sizes of parts differ by at most one.

    Returns:
      The rows in the batch [n], the replicas that get them [n], and the rows in their parts [n]; not to be written to.
    """
    numbers = range(total) if replica is None else [replica]
    if balanced:
        parts = [balanced_slice(rows, total, number) for number in numbers]
    else:  # a worker has every W-th piece
        slices, count = equal_slices(rows, total), total // workers
        parts = [slices[number // count + number % count * workers] for number in numbers]
    sizes = [part.stop - part.start for part in parts]
    at = np.concatenate([np.arange(part.start, part.stop) for part in parts])
    found = at, np.repeat(np.asarray(numbers), sizes), np.concatenate([np.arange(size) for size in sizes])
    for array in found:
        array.flags.writeable = False
    return found


def located_part(
    step: int, epoch: int, replica: int, numbers: Ints, records: Numbering, assumes: tuple[str, ...]
) -> Located:
    """`located_rows` of the part of one replica."""
    rows = 1 if numbers.ndim == 1 else len(numbers)
    return located_rows(step, epoch, np.full(rows, replica), np.arange(rows), numbers, records, assumes)


def located_rows(
    step: int, epoch: int, replica: Ints, row: Ints, numbers: Ints, records: Numbering, assumes: tuple[str, ...]
) -> Located:
    """The rows of replicas.

    Args:
      step: which step.
      epoch: of which pass.
      replica: [n] that gets the row.
      row: [n] the row in its part.
      numbers: [n, records of a row] of the records, or [records] of a single row.
      records: what these numbers stand for.
      assumes: what is taken for granted, in words.
    """
    flat = numbers.reshape(-1)
    if len(flat) != len(row):
        each = len(flat) // max(1, len(row))
        replica, row = np.repeat(replica, each), np.repeat(row, each)
    if records.fills and len(flat) and flat.min() < 0:  # what fills short batches of batches
        there = flat >= 0
        replica, row, flat = replica[there], row[there], flat[there]
    file, record = records.places(flat)
    return Located(step, epoch, records.files, file, record, replica, row, assumes)


# ---- `StepRecords`


class StepRecords:
    """The records of the steps of a source, computed from positions.

    Args:
      source: where the steps come from.
      trees: of its pipelines, as they run in an iteration, whose seeds may be those of a restored one; None: as described.
      read: count records that cannot be counted otherwise by reading all files once.
    """

    def __init__(self, source: StepSource, trees: Sequence[Node] | None = None, *, read: bool = False) -> None:
        self._nodes = [dataset.node for dataset in _datasets(source)] if trees is None else trees
        self._source, self._read, self._told_seeds = source, read, trees is not None
        self._made: dict[tuple[int, bool], Numbered] = {}

    @classmethod
    def with_seeds(cls, source: StepSource, seeds: Sequence[Sequence[int]], *, read: bool = False) -> "StepRecords":
        """The records where steps without a seed drew these, of each pipeline, as a state holds them."""
        trees = [_drawn(dataset.node, given) for dataset, given in zip(_datasets(source), seeds, strict=True)]
        return cls(source, trees, read=read)

    def locate(self, step: int, replica: int | None, epoch: int) -> Located:
        """See `DistributedDataset.locate`."""
        total = self._source.terms.replicas.total
        if step < 0:
            raise OutOfRangeError(f"locate: steps are numbered from 0 on, got {step}")
        check_replica(replica, total)
        if self._batches:
            return self._of_batch(step, replica, epoch)
        assert isinstance(self._source, DealtElements)
        found = [
            located_part(step, epoch, number, numbers, tree, self._assumes(tree))
            for number, numbers, tree in self._dealt(self._source, step, replica, epoch)
        ]
        return Located.joined(found) if found else Located.empty(step, epoch)

    def when(self, file: str, record: int, epoch: int, steps: range | None) -> tuple[Seen, ...]:
        """See `DistributedDataset.when`."""
        cure = "pass steps=, a range of the steps to look at (--first N on the command line)"
        wanted = self._all_steps(cure) if steps is None else steps
        at = self._steps_with(file, [record], wanted, epoch)[0]
        found = []
        for step in at:
            try:
                located = self.locate(step, None, epoch)
            except IndexError:  # left out at the end
                break
            found += [Seen(epoch, step, p.replica, p.row) for p in located if (p.file, p.record) == (file, record)]
        return tuple(found)

    def steps_with(self, file: str, records: Sequence[int], epoch: int) -> list[int]:
        """The steps of a pass that hold one of these records, in their order.

        Raises:
          ValueError: no such file is read, it has no such record, or the number of steps is not known.
        """
        found, lacking = self._steps_with(file, records, self._all_steps("give ranges of steps"), epoch)
        if lacking:
            raise InvalidArgumentError(
                f"{file} has no record {min(lacking):,}; it has {self.records_of(file):,}, from 0 on"
            )
        return found

    def records_of(self, file: str) -> int:
        """How many records a file has, of those that the pipelines read; INFINITE if there is no end."""
        trees = [self._tree(number) for number, _ in self._trees]
        counts = [tree.records_of(file) for tree in trees if file in tree.files]
        return INFINITE if INFINITE in counts else max(counts)

    def _all_steps(self, cure: str) -> range:
        sizes = [] if self._batches or self.steps != UNKNOWN else self._sizes()
        if sizes and min(sizes) >= 0:
            terms = self._source.terms
            return range(max(sizes) if terms.keeps_partial or terms.replicas.workers > 1 else min(sizes))
        if self.steps < 0:
            known = "the data have no end" if self.steps == -1 else "the number of steps is not known beforehand"
            raise InvalidArgumentError(f"when: {known}; {cure}")
        return range(self.steps)

    def _sizes(self) -> list[int]:
        """The number of steps with an element of each pipeline; negative if it is not known."""
        whole = self._source.terms.keeps_partial or self._source.terms.replicas.workers > 1
        found = [(self._tree(number).node.size, each) for number, each in self._trees]
        return [size if size < 0 else -(-size // each) if whole else size // each for size, each in found]

    @cached_property
    def steps(self) -> int:
        """The number of steps: -1 infinite, -2 if it is known only at the end."""
        known = self._source.num_steps
        if known != UNKNOWN or not self._batches or self._source.terms.full_rows:
            return known
        return self._tree(0).node.size

    def _steps_with(
        self, file: str, records: Sequence[int], steps: range, epoch: int
    ) -> tuple[list[int], Collection[int]]:
        """The steps that hold one of these records, in their order, and the records that are not in the file.

        Raises:
          ValueError: no pipeline reads that file.
        """
        trees = [(self._tree(number), each) for number, each in self._trees]
        reading = [(tree, each) for tree, each in trees if file in tree.files]
        if not reading:
            raise self._unknown(file, [name for tree, _ in trees for name in tree.files])
        there = np.array(sorted([step for step in steps if step >= 0]), np.int64)
        steps_found: set[int] = set()
        missing = set(records)
        for tree, each in reading:
            numbers = {record: tree.numbers(file, record) for record in records}
            missing -= {record for record in records if numbers[record]}
            wanted = np.array([number for record in records for number in numbers[record]], np.int64)
            if len(wanted):
                elements = (there[:, None] * each + np.arange(each)).reshape(-1)
                steps_found.update([element // each for element in tree.elements_with(elements, wanted, epoch)])
        return [step for step in steps if step in steps_found], missing

    @property
    def _trees(self) -> Iterator[tuple[int, int]]:
        """The pipelines that can be asked here, and how many elements of each make a step."""
        source = self._source
        if self._batches:
            yield 0, 1
            return
        assert isinstance(source, DealtElements)
        replicas = source.terms.replicas
        if len(source.datasets) > 1:
            yield from [(number, 1) for number in range(len(source.datasets))]
        elif source.tree_of is not None and replicas.workers > 1:
            yield from [(worker, replicas.count) for worker in range(replicas.workers)]
        else:
            yield (replicas.rank if replicas.workers > 1 else 0), replicas.count

    def _unknown(self, file: str, known: Sequence[str]) -> ValueError:
        names = list(dict.fromkeys(known))
        source = self._source
        alone = source.terms.replicas.workers > 1 and isinstance(source, DealtElements) and source.tree_of is None
        there = " by this worker; the others only know themselves what they read, ask there" if alone else ""
        more = ", ..." if len(names) > _NAMED else ""
        near = [name for name in names if posixpath.basename(name) == posixpath.basename(file)]
        meant = f"; did you mean {near[0]!r}?" if near else ""
        read = "not the file that is" if len(names) == 1 else f"none of the {len(names)} files that are"
        return ValueError(f"when: {file!r} is {read} read{there} ({', '.join(names[:_NAMED])}{more}){meant}")

    @cached_property
    def _batches(self) -> bool:
        """Whether an element of the pipeline is a whole step, of which replicas get pieces."""
        source = self._source
        return not isinstance(source, DealtElements) or source.whole

    def _of_batch(self, step: int, replica: int | None, epoch: int) -> Located:
        """The rows of a step that is one element of the pipeline."""
        terms, source, tree = self._source.terms, self._source, self._tree(0, ordered=True)
        try:
            rows, numbers_at = tree.element(step, epoch)
        except IndexError:
            raise self._behind(step) from None
        if terms.full_rows and rows < terms.full_rows:
            raise self._behind(step)
        if isinstance(source, DealtElements):
            cut = replica_rows(rows, None, 1, 1, False)
        else:
            assert isinstance(source, OwnPiecesSource | CutBatches)
            replicas = terms.replicas
            cut = replica_rows(rows, replica, replicas.total, replicas.workers, source.balanced)
        return located_rows(step, epoch, *cut[1:], numbers_at(cut[0]), tree, self._assumes(tree))

    def _dealt(
        self, source: DealtElements, step: int, replica: int | None, epoch: int
    ) -> Iterator[tuple[int, Ints, Numbered]]:
        replicas = source.terms.replicas
        num_steps = source.num_steps
        if 0 <= num_steps <= step:
            raise self._behind(step)
        mine = range(replicas.first, replicas.first + replicas.count)
        everywhere = range(replicas.total) if source.tree_of is not None and replicas.workers > 1 else mine
        if replica is not None and replica not in everywhere:
            raise UnimplementedError(
                f"locate: replica {replica} belongs to another worker, whose dataset only its own dataset_fn makes; ask there"
            )
        replicas_asked = everywhere if replica is None else [replica]
        present = rows = 0
        for number in everywhere if num_steps < 0 else replicas_asked:
            worker, local = divmod(number, replicas.count) if replicas.workers > 1 else (0, number)
            several = len(source.datasets) > 1
            tree = self._tree(local if several else worker, ordered=True)
            element = step if several else step * replicas.count + local
            try:
                numbers = tree.elements(np.array([element]), epoch)[0]
            except IndexError:
                continue
            present, rows = present + 1, rows + len(numbers)
            if number in replicas_asked:
                yield number, numbers, tree
        short = rows < source.terms.full_rows and len(everywhere) == replicas.total
        if num_steps < 0 and (short or not present):
            raise self._behind(step)

    def _behind(self, step: int) -> OutOfRangeError:
        there = f", there are {self.steps}" if self.steps >= 0 else ""
        return OutOfRangeError(f"locate: there is no step {step}{there}")

    def _assumes(self, tree: Numbered) -> tuple[str, ...]:
        return (*tree.assumes, *self._drawn)

    @cached_property
    def _drawn(self) -> tuple[str, ...]:
        """Steps that drew their seed in this process, if no iteration says that these are the seeds in question."""
        if self._told_seeds:
            return ()
        steps = dict.fromkeys([step for node in self._nodes for step in walk(node) if step.draws and step.chooses])
        return tuple([f"{step.where()}, which was given no seed, drew it in this process" for step in steps])

    def _tree(self, number: int, *, ordered: bool = False) -> Numbered:
        """The pipeline over numbers: the only one, that of a replica with one of its own, or that of a worker."""
        if (number, ordered) not in self._made:
            source, nodes = self._source, self._nodes
            rank = source.terms.replicas.rank
            if isinstance(source, DealtElements) and len(nodes) == 1 and not source.whole and number != rank:
                assert source.tree_of is not None
                node = _drawn(source.tree_of(number), drawn_seeds(nodes[0]))
            else:
                node = nodes[number if len(nodes) > 1 else 0]
            check_no_steps_left_out(source, node, "take larger batches, or policy DATA")
            made = numbered(node, read=self._read, ordered=ordered)
            self._made[number, ordered] = made
            if not any(isinstance(step, BalanceRows) for step in walk(node)):
                self._made[number, not ordered] = made
        return self._made[number, ordered]


def check_replica(replica: int | None, total: int) -> None:
    """Refuse the number of a replica that a job of so many does not have."""
    if replica is not None and not 0 <= replica < total:
        raise OutOfRangeError(f"locate: there are {total} replicas, numbered from 0 on, got replica {replica}")


def may_leave_out_steps(source: StepSource, tree: Node) -> bool:
    """Whether workers leave out steps of this tree in which none of them has a row, which no worker can count alone.

    Functions over whole batches are taken to keep the number of rows.
    """
    replicas = source.terms.replicas
    return replicas.workers > 1 and leaves_out_steps(tree, replicas.count, assumed=True)


def check_no_steps_left_out(source: StepSource, tree: Node, cure: str) -> None:
    """Raise UnimplementedError, which names a cure, if workers may leave out steps of this tree."""
    if may_leave_out_steps(source, tree):
        raise UnimplementedError(
            "locate: some batches have fewer rows than there are replicas, and steps without any row are left out, which "
            f"workers find out together; {cure}"
        )


def _drawn(node: Node, seeds: Sequence[int]) -> Node:
    return node if drawn_seeds(node) == list(seeds) else with_drawn_seeds(node, seeds)


# ---- Which steps of a pass are left out: ranges of them, and those that hold certain records


def steps_left_out(skip: Ranges, source: StepSource, inputs: Sequence[State]) -> list[range]:
    """Ranges of steps, with each group of records replaced by the steps that hold one of them.

    Args:
      skip: what was given.
      source: where the steps come from.
      inputs: the states of the input pipelines, which tell the pass, and seeds that were drawn.

    Raises:
      UnimplementedError: the records cannot be located.
      ValueError: no such file is read, or it has no such record.
    """
    given = [skip] if isinstance(skip, range | Records) else list(skip)
    found: list[range] = []
    for each in given:
        if isinstance(each, Records):
            found += [range(step, step + 1) for step in _steps_of(each, source, inputs)]
        else:
            found.append(each)
    return found


def _steps_of(given: Records, source: StepSource, inputs: Sequence[State]) -> list[int]:
    cure = "give the ranges of steps instead"
    if isinstance(source, DealtElements) and source.terms.replicas.workers > 1 and source.tree_of is None:
        raise UnimplementedError(
            f"skip: workers whose datasets only their own dataset_fn makes do not know in which steps of the others {given} "
            f"are; {cure}"
        )
    seeds = [state.get("seeds", []) for state in inputs]
    try:
        records = StepRecords.with_seeds(source, seeds, read=given.read)
        return records.steps_with(given.file, given.numbers, inputs[0].get("epoch", 0))
    except UnimplementedError as error:
        raise UnimplementedError(f"skip: {given} cannot be found in steps; {cure}. {error}") from error
    except ValueError as error:
        raise ValueError(f"skip: {given}: {error}") from error


# ----------------------------------------------------------------------------
# A step of a distributed dataset once more, without the steps before it where positions can be computed.
# ----------------------------------------------------------------------------


def replayed(source: StepSource, delivery: Delivery, step: int, epoch: int, seeds: Sequence[Sequence[int]] = ()) -> Any:
    """See `DistributedDataset.replay`.

    Args:
      source: where the steps come from.
      delivery: how they are handed over.
      step: of the pass.
      epoch: the pass.
      seeds: those that steps without a seed drew in each pipeline, as a state holds them; none: those drawn here.
    """
    if step < 0:
        raise OutOfRangeError(f"replay: steps are numbered from 0 on, got {step}")
    first = step - looks_back(source, step)
    states = states_at(source, first, epoch, seeds)
    if states is None:
        first, states = 0, states_at(source, 0, epoch, seeds)
    assert states is not None, "where a pass begins is known"
    return step_from(source, delivery, states, first, step)


def looks_back(source: StepSource, step: int) -> int:
    """How many steps before it a step has to begin: what stands for missing elements has the shape of the last one seen."""
    return min(step, int(Placeholders(source.spec).watches))


def step_from(source: StepSource, delivery: Delivery, states: Sequence[State], first: int, step: int) -> Any:
    """A step, from the states of the input pipelines before an earlier one, or before itself.

    Raises:
      IndexError: there is no such step.
    """
    with _passes_as_they_are(source):
        steps = delivery.steps(source, source.restore(states, first, None, ()))
        try:
            found = next(islice(_each(steps, source.terms.keeps_partial), step - first, None), END)
        finally:
            steps.close()
    if found is END:
        there = f", there are {source.num_steps}" if source.num_steps >= 0 else ""
        raise OutOfRangeError(f"replay: there is no step {step}{there}")
    return found


def _each(steps: Steps | StepsAhead, keeps_partial: bool) -> Any:
    while (step := steps.next(keeps_partial)) is not END:
        yield step


def states_at(source: StepSource, step: int, epoch: int, seeds: Sequence[Sequence[int]] = ()) -> list[State] | None:
    """The states of the input pipelines before a step; None if they cannot be computed."""
    datasets = described(source)
    if step and any(may_leave_out_steps(source, dataset.node) for dataset in datasets):
        return None
    each = source.terms.replicas.count if isinstance(source, DealtElements) and len(datasets) == 1 else 1
    states = []
    for number, dataset in enumerate(datasets):
        kept = stores(dataset.node)
        for store in kept:  # caches keep the first pass
            store.epoch = 0 if store.epoch is None else store.epoch
        running = dataset._runs()
        drawn, given = drawn_seeds(dataset.node), list(seeds[number]) if seeds else []
        tree = running.node
        if given and given != drawn:
            tree, drawn = Running.of(with_drawn_seeds(dataset.node, given), running.rules).node, given
        at = tree.start_at(step * each, epoch) if step else tree.start(epoch)
        if at is None:
            return None
        place: State = {"epoch": epoch, "at": at, "skip": 0}
        if drawn:
            place["seeds"] = drawn
        if kept:
            place["kept"] = [store.epoch for store in kept]
        states.append(Seal(dataset.node, running)(place))
    return states


def resealed(state: State, place: State) -> State:
    """The state of another place in the same pipeline."""
    return sealed(place, state["plan"])


def described(source: StepSource) -> list[Any]:
    """The datasets that the states of a source belong to."""
    return [one.whole if isinstance(one, OwnBatches) else one for one in _datasets(source)]


def _datasets(source: Any) -> list[Any]:
    """What a source reads.

    Raises:
      UnimplementedError: it continues with the inputs of an earlier job.
    """
    layout = source.layout
    if layout.get("cut") == "lanes":
        workers, replicas = layout["workers"], layout["replicas"] // layout["workers"]
        raise UnimplementedError(
            f"lineage: this pass continues with the inputs of an earlier job ({workers_of(workers, replicas)}), so its records "
            "are not located or written into a ledger; a dataset that is distributed for as many has the same steps, and the "
            "next pass is planned for this job"
        )

    if isinstance(source, OwnPiecesSource):
        return [source.batches]
    return list(source.datasets) if isinstance(source, DealtElements) else [source.dataset]


@contextmanager
def _passes_as_they_are(source: StepSource) -> Iterator[None]:
    """The next iteration is the pass that it would have been."""
    passes = [dataset._passes for dataset in _datasets(source)]
    begun = [each.begun for each in passes]
    try:
        yield
    finally:
        for each, number in zip(passes, begun, strict=True):
            each.begun = number
