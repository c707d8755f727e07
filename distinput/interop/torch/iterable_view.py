# SPDX-License-Identifier: Apache-2.0
"""`IterableView`: a dataset for PyTorch's DataLoader, divided among ranks and loader workers."""

import os
import pickle
import warnings
from collections.abc import Callable, Collection, Iterator
from dataclasses import replace
from typing import Any
from weakref import WeakSet

import torch.utils.data

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.errors import FailedPreconditionError, InputWarning, InvalidArgumentError, StateError
from distinput.interop.rank_steps import RankPosition, RankSteps, ShortSteps, StepIterator, StepMark, empty_words
from distinput.interop.torch.map_view import Convert, converter
from distinput.interop.torch.mesh_place import MeshPlace, SequenceCut
from distinput.interop.torch.readers import Ranks, SharedPasses, reader, starts_worker
from distinput.plan.check import at_least
from distinput.plan.families import drawn_seeds, stores
from distinput.plan.fingerprint import allowances
from distinput.plan.node import INFINITE, UNKNOWN
from distinput.run.threads import LoaderWorker, loader_worker
from distinput.sharding.own_rows import has_batches

# ----------------------------------------------------------------------------
# The position in a saved state: of a view, or of a whole `StatefulDataLoader` over one.
# ----------------------------------------------------------------------------


def position_in(state: Any, who: str) -> RankPosition:
    """The position in a state.

    A loader with workers saves a position of each of them. The steps went round the workers, so the first step that is not
    delivered is the earliest of those that the workers would deliver next.

    Raises:
      StateError: there is no position of a view in it.
    """
    of_loader = {"_snapshot", "_dataset_state", "dataset_state", "fetcher_state"}
    if not isinstance(state, dict) or not of_loader & state.keys():
        return RankPosition.of(state, who)
    snapshot = state.get("_snapshot")
    if not isinstance(snapshot, dict):  # of a loader without workers
        return RankPosition.of(_of_view(state, who), who)
    workers = snapshot.get("_worker_snapshots")
    if not isinstance(workers, dict) or not workers:
        raise StateError(f"{who}: the state of a StatefulDataLoader lacks those of its workers")
    found = [RankPosition.of(_of_view(worker, who), who) for worker in workers.values()]
    first = min(found, key=lambda position: position.step)
    since = int(state.get("_steps_since_snapshot", 0))
    return replace(first, step=first.step + since, stride=1)


def _of_view(state: Any, who: str) -> Any:
    """The state of the iterator of a view, in what a loader or one of its workers saved."""
    fetcher = state.get("fetcher_state") or state.get("_fetcher_state") or {}
    found = fetcher.get("dataset_iter_state") or state.get("dataset_state") or state.get("_dataset_state")
    if found is None:
        raise StateError(f"{who}: the state of this StatefulDataLoader holds no state of a view")
    return found


_WHO = "IterableView"

_VIEWS: "WeakSet[IterableView]" = WeakSet()
"""All views of this process: a forked process gives them passes of their own."""


class IterableView(torch.utils.data.IterableDataset):  # type: ignore[misc]
    """A dataset of global batches for `DataLoader(view, batch_size=None, num_workers=k)` and torchdata's `StatefulDataLoader`.

    A step is one batch of the dataset, of which each rank gets its rows. Every record is delivered exactly once, on one rank,
    and all ranks have the same number of steps, whatever the number of loader workers. A rank may get no row of a short batch:
    `tail` says what becomes of such steps. If the dataset is shuffled, each epoch has another order, the same on all ranks,
    also with loader workers that are started again for each epoch.

    Elements keep their nest; tensors use the memory that the dataset has made for them. Rows that are views of your arrays, of
    a cache or of a file are copied, so a loop may change its tensors in place; `share_memory=True` hands them on as well.
    Text stays bytes.

    Args:
      dataset: of global batches, built alike on all ranks; if there are several, shuffles need seeds. On a single rank,
        elements need not be batches.
      rank: the rank of this process; None: that of `torch.distributed` if it is initialized, otherwise that of the launcher.
      world_size: how many ranks share the batches; None: looked up likewise, and an error if only `rank` is known.
      share_memory: do not copy rows that are views either. The program promises never to change a tensor in place: it would
        change your array, and the process would end where the memory is that of a file.
      tail: what becomes of a batch with fewer rows than a full one. "partial" delivers it as it is. "pad" makes each step a
        pair `(element, mask)`: every rank has as many rows in every step, the last of them zeros, and `mask` is true for the
        rows that are data. "drop" leaves it out, "error" raises, on all ranks at the same step. None: as "partial", and a rank
        that gets no rows warns of it once.
      batch_size: the rows of a full batch, for "pad" and "error", if a function over whole batches hides it.
      may_differ: what may have changed since a state was saved, as for `Dataset.restore`, for programs whose framework calls
        `load_state_dict`.
      place: of this rank in a mesh of devices, instead of `rank` and `world_size`.

    Raises:
      TypeError: `dataset` is not a Dataset; or there is a rank beside a place.
      ElementTypeError: PyTorch has no tensors of the dtype of a component.
      InvalidArgumentError: there is no such rank, or no such tail; `tail` needs the rows of a full batch, and they are not
        known. At iteration: sources contradict each other about the rank; several ranks cannot share the elements; a DataLoader
        would batch the batches again, or deliver steps out of order; Accelerate would shard them again.

    Warns:
      InputWarning: this rank has no rows in a step, and `tail` is None.

    >>> import distinput as di
    >>> from torch.utils.data import DataLoader
    >>> view = di.interop.torch.IterableView(di.data.Dataset.range(7).batch(3), rank=1, world_size=2, tail="pad")
    >>> [(step.tolist(), mask.tolist()) for step, mask in DataLoader(view, batch_size=None)], len(view)
    ([([2, 0], [True, False]), ([5, 0], [True, False]), ([0, 0], [False, False])], 3)

    Source: distinput's own; `torch.utils.data.IterableDataset` is the interface.
    """

    def __init__(
        self,
        dataset: Dataset[Any],
        rank: int | None = None,
        world_size: int | None = None,
        *,
        share_memory: bool = False,
        tail: str | None = None,
        batch_size: int | None = None,
        may_differ: str | Collection[str] = (),
        place: MeshPlace | None = None,
    ) -> None:
        if not isinstance(dataset, Dataset):
            raise TypeError(
                f"{_WHO}: expected a distinput Dataset, got {type(dataset).__name__}; a view divides the dataset itself, "
                "so pass the dataset that was not distributed yet"
            )
        self._short = ShortSteps.of(tail, dataset.node, _WHO, batch_size)
        self._dataset = Dataset(self._short.kept(dataset.node))
        if place is not None and (rank is not None or world_size is not None):
            raise TypeError(f"{_WHO}: rank and world_size are those of the place in the mesh; pass either")
        self._ranks = Ranks(rank, world_size) if place is None else Ranks(place.rank, place.world_size)
        self._place = place
        self._share_memory = share_memory
        self._convert: Convert = self._converter()
        self._may_differ = self._may_always_differ = allowances(may_differ)
        self._passes = SharedPasses(len(drawn_seeds(self._dataset.node)) + len(stores(self._dataset.node)))
        self._sharder = ""  # the sharder that was seen when the view was sent to a loader worker
        self._unordered = False  # whether the DataLoader that sent it there delivers steps out of order
        self._position: RankPosition | None = None  # loaded, and not begun yet
        self._resumed = 0  # which pass begins there, counted from 1; 0: the next one of this process
        _VIEWS.add(self)
        self._made: tuple[tuple[int, int], RankSteps] | None = None
        self._begin_anew()

    def _begin_anew(self) -> None:
        """Forget what was iterated: this is another process."""
        self._process, self._iterated = os.getpid(), 0
        self._latest: ViewIterator | None = None

    def __iter__(self) -> "ViewIterator":
        self._notice_process()
        steps, worker = self._steps(), loader_worker()
        self._latest = ViewIterator(self, steps, worker, self._iterated)
        self._iterated += 1
        if worker is not None:
            self._check_sendable()
            if not worker.number and worker.count > 1 and not steps.divides:
                warnings.warn(
                    f"each of the {worker.count} workers of this DataLoader reads everything, since its own steps of this "
                    "dataset cannot be read alone; use at most one (num_workers=1), and let the threads of the dataset do the "
                    f"work: num_parallel_calls, prefetch{steps.why_together}",
                    InputWarning,
                    stacklevel=2,
                )
            self._latest.begin()  # at once, as all workers of the DataLoader do
        return self._latest

    def begin_elsewhere(self) -> None:
        """Note what the pass leaves to later ones: loader workers make it, and a state may be saved before they begin."""
        if not self._passes.lasts:
            return
        steps, pending = self._steps(), self._position
        if pending is not None and self._resumed == self._passes.begun + 1:
            steps.begin(pending, may_differ=self._may_differ).close()
        self._leave(steps, self.position[0])

    def _leave(self, steps: RankSteps, epoch: int | None) -> None:
        """Have later passes, also those of other processes, go on with the seeds of this one, and with what caches keep."""
        if self._passes.lasts:
            lasting = steps.lasting(epoch)
            steps.go_on(lasting)
            self._passes.leave(lasting)

    def _check_sendable(self) -> None:
        """Refuse steps that a loader worker cannot send: PyTorch drops them, and the program would wait forever.

        Raises:
          TypeError: the class of a nest cannot be pickled.
        """
        try:
            pickle.dumps(self._dataset.node.spec.structure)
        except Exception as error:  # noqa: BLE001 - classes may raise anything
            raise TypeError(
                f"{_WHO}: loader workers send steps by pickle, and these cannot be sent: {error}; define the class of a "
                "namedtuple, dataclass or mapping at the top of a module, or use num_workers=0"
            ) from None

    def _begin(self, iterator: "ViewIterator", loaded: RankPosition | None) -> tuple[RankPosition, int]:
        """Where an iterator begins, and which pass over the view it is, counted from 1.

        Args:
          iterator: of this process.
          loaded: the position that was loaded into it; None: there is none.
        """
        worker, passes, pending = iterator.worker, self._passes, self._position
        if worker is not None and loaded is None and pending is not None and not self._resumed:
            loaded, self._position = pending, None  # loaded in this worker
        if loaded is not None and worker is not None:
            passes.set_next(loaded.epoch + 1)  # as all workers of the loader do
            return loaded, passes.begun
        if iterator.numbers is None:  # it is not, if an interrupt came afterwards
            if loaded is not None:
                passes.set_next(loaded.epoch)
            iterator.numbers = passes.begin(worker, iterator.number)
        number, begun = iterator.numbers
        if loaded is not None:
            return loaded, begun
        if passes.resumed != begun:
            return RankPosition(number), begun
        if pending is None or self._resumed != begun:
            raise StateError(
                f"{_WHO}: load_state_dict was called after persistent loader workers had been started, and they cannot see it; "
                "make a new DataLoader after load_state_dict"
            )
        return pending, begun

    def _notice_process(self) -> None:
        """Notice that this is another process."""
        if self._process != os.getpid():
            self._begin_anew()

    def __len__(self) -> int:
        """The number of steps of a pass, the same on all ranks and for any number of loader workers.

        Raises:
          TypeError: the number is unknown, or there is no end.
        """
        count = self.num_steps
        if count == INFINITE:
            raise TypeError(f"{_WHO}: the dataset is infinite, so it has no len")
        if count == UNKNOWN:
            raise TypeError(
                f"{_WHO}: the number of steps is not known before they are read; declare it with assert_cardinality, or give "
                "the files a manifest"
            )
        return count

    @property
    def num_steps(self) -> int:
        """The number of steps of a pass, or `INFINITE_CARDINALITY`, or `UNKNOWN_CARDINALITY`."""
        return self._dataset.node.count_elements()

    @property
    def num_records(self) -> int:
        """The number of rows of a pass on all ranks together, or `INFINITE_CARDINALITY`, or `UNKNOWN_CARDINALITY`."""
        steps = self.num_steps
        if steps < 0 or not has_batches(self._dataset.node):
            return steps
        sizes = self._dataset.node.batch_sizes()
        return UNKNOWN if sizes is None else sizes.rows

    @property
    def tail(self) -> str | None:
        """What becomes of a batch with fewer rows than a full one."""
        return self._short.tail

    @property
    def element_spec(self) -> Any:
        """The spec of the elements, as that of the whole dataset; with the mask if `tail` is "pad"."""
        whole = self._short.element_spec(self._dataset.element_spec)
        cut = self._cut()
        return whole if cut is None else cut.spec(whole)

    def _cut(self) -> SequenceCut | None:
        """What takes this rank's part of every sequence; None: sequences stay whole."""
        place = self._place
        return None if place is None else place.cut(self._dataset.element_spec, _WHO, masked=self._short.tail == "pad")

    def _converter(self) -> Convert:
        """What makes the tensors of a step."""
        convert, cut = converter(self.element_spec, _WHO, shared=self._share_memory), self._cut()
        return convert if cut is None else lambda element: convert(cut(element))

    @property
    def position(self) -> tuple[int, int]:
        """The number of the pass that begins next, and how many of its steps are skipped because a state was loaded."""
        pending = self._position
        if pending is not None and self._resumed == self._passes.begun + 1:
            return pending.epoch, pending.step
        return self._passes.next, 0

    def set_epoch(self, epoch: int) -> None:
        """The pass that begins next has this number, and those after it the following ones.

        If it is never called, passes are numbered from 0. Persistent loader workers see the number, too.

        Raises:
          InvalidArgumentError: `epoch` is negative or larger than 2 ** 24 - 1; or Accelerate wraps this view.
        """
        self._check_reader()
        self._passes.set_next(at_least("set_epoch", "epoch", epoch, 0))

    def state_dict(self, steps: int | None = None) -> State:
        """The position after the last step delivered: a small JSON value, the same on all ranks.

        It can be restored on any number of ranks and loader workers. Where loader workers iterate, the view does not know how
        many steps the loop got from them: use the `state_dict` of a `Loader` or a `StatefulDataLoader`, or pass the number.

        Args:
          steps: how many steps of the latest pass were delivered; None: as many as were taken in this process.

        Raises:
          FailedPreconditionError: loader workers iterate, and `steps` is None.
        """
        self._notice_process()
        if steps is not None:
            return self.state_after(at_least("state_dict", "steps", steps, 0))
        if self._position is not None and self._resumed in (0, self._passes.begun + 1):
            return self._position.to_json()
        latest = self._latest
        if latest is not None and (loader_worker() is not None or latest.begun in (0, self._passes.begun)):
            if loader_worker() is not None or not latest.ended:
                return latest.state_dict()
            return self._at(RankPosition(latest.epoch + 1))
        if self._passes.begun:
            raise FailedPreconditionError(
                f"{_WHO}: loader workers iterate this view, so only the loop knows how many steps it got: use "
                "interop.torch.Loader or torchdata's StatefulDataLoader, whose state_dict() knows, or pass the number: "
                "view.state_dict(steps=17)"
            )
        return self._at(RankPosition(self._passes.next))

    def _at(self, position: RankPosition) -> State:
        """The state of a position, without beginning the pass."""
        with self._steps().begin(RankPosition(position.epoch)) as whole:
            return replace(position, state=whole.position().state).to_json()

    def state_after(self, steps: int, epoch: int | None = None) -> State:
        """The position after a number of steps of a pass.

        Args:
          steps: the number of steps, at least 0.
          epoch: the number of the pass; None: the latest one, or the first if none has begun.
        """
        if epoch is None:
            epoch = max(0, self._passes.next - (self._passes.begun > 0))
        return self._at(RankPosition(epoch, steps))

    def load_state_dict(self, state: State, may_differ: str | Collection[str] = ()) -> None:
        """The next pass continues at a saved position, and the passes after it are the following epochs.

        Call it before the DataLoader is iterated. The numbers of ranks and loader workers may differ from those of the saved
        state, also for the state of a `StatefulDataLoader`.

        Args:
          state: a result of `state_dict` of a view, of its iterator, or of a `StatefulDataLoader`.
          may_differ: as for `Dataset.restore`, besides what the view was made with.

        Raises:
          StateError: it is something else. That it belongs to another pipeline is found when the pass begins.
        """
        position = position_in(state, _WHO)
        self._may_differ = self._may_always_differ | allowances(may_differ)
        self._notice_process()
        if position.stride > 1 and loader_worker() is None:
            raise StateError(
                f"{_WHO}: this is the state of one of {position.stride} loader workers; load the state_dict() of the whole "
                "StatefulDataLoader"
            )
        self._position, self._latest = position, None
        if loader_worker() is not None:
            self._resumed = 0
            return
        self._passes.leave({})
        self._passes.set_next(position.epoch)
        self._resumed = self._passes.resume_next()

    def explain(self) -> str:
        """What a step is, and what each process reads for it."""
        rank, size = self._ranks.found()
        unknown = {
            INFINITE: "without end",
            UNKNOWN: "one for each batch; their number is not known before they are read",
        }
        steps = unknown.get(self.num_steps, f"{self.num_steps} on every rank")
        return f"rank:   {rank} of {size}\nsteps:  {steps}\nreads:  {self._steps().reads}"

    def _steps(self) -> RankSteps:
        """The steps of this rank."""
        rank, size = self._ranks.found()
        if size > 1 or self._place is not None:
            self._check_reader()
        seen = reader()
        if seen.collates and (size > 1 or self._dataset.node.rows_per_batch is not None):
            raise InvalidArgumentError(
                f"{_WHO}: the DataLoader would make batches of these batches; give it batch_size=None, and let the "
                "dataset make the batches: dataset.batch(global_batch_size); a Trainer of Hugging Face returns "
                "interop.torch.Loader(dataset) from get_train_dataloader"
            )
        if seen.unordered or self._unordered:
            raise InvalidArgumentError(
                f"{_WHO}: a DataLoader with in_order=False delivers steps in the order in which its workers finish, and then "
                "nothing knows which steps were delivered: a state would lose and repeat records; leave in_order as it is, and "
                "let the threads of the dataset do slow work ahead: num_parallel_calls, prefetch"
            )
        if self._made is None or self._made[0] != (rank, size):
            self._made = (rank, size), RankSteps(self._dataset, rank, size, _WHO, self._short, self._without_rows)
        steps = self._made[1]
        if left := self._passes.left:
            steps.go_on(left)
        return steps

    def _without_rows(self) -> None:
        """Tell, once in all processes of this rank, that it has no rows in a step."""
        if self._passes.tell():
            warnings.warn(empty_words(_WHO, *self._ranks.found()), InputWarning, stacklevel=2)

    def _check_reader(self) -> None:
        """Refuse to be sharded again."""
        sharder = self._sharder or reader().sharder
        if sharder and (self._place is not None or self._ranks.found()[1] > 1):
            raise InvalidArgumentError(
                f"{_WHO}: Accelerate's {sharder} would shard the batches again, which this view has divided for the ranks "
                "already, so records would be lost; leave the DataLoader out of accelerator.prepare(), or use "
                "interop.torch.Loader, which prepare leaves as it is"
            )

    def __getstate__(self) -> dict[str, Any]:
        state = {**self.__dict__, "_latest": None, "_convert": None, "_made": None}
        if starts_worker():  # the worker cannot find out which rank it belongs to
            seen = reader()
            state |= {"_ranks": Ranks(*self._ranks.found()), "_process": -1}
            state |= {"_sharder": seen.sharder, "_unordered": seen.unordered}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        _VIEWS.add(self)
        self._convert = self._converter()


class CountedView(IterableView):
    """The same view with another `len`, that of PyTorch's `loader.dataset`: the records of a pass, on all ranks together.

    Programs divide by it, and the Trainer of Hugging Face tells by it how many samples a second it trains.

    Args:
      view: whose passes and positions these are.
    """

    def __init__(self, view: IterableView) -> None:
        self.__dict__ = view.__dict__
        _VIEWS.add(self)

    def _of_the_loader(self) -> Any:
        """Composer would ask here, with arguments of its own, and skips steps itself if it cannot; the loader knows."""
        raise AttributeError("state_dict and load_state_dict are those of the Loader")

    state_dict = load_state_dict = property(_of_the_loader)

    def __len__(self) -> int:
        """The number of records.

        Raises:
          TypeError: the number is unknown, or there is no end.
        """
        count = self.num_records
        if count < 0:
            raise TypeError(
                f"{_WHO}: the number of records is {'infinite' if count == INFINITE else 'not known before they are read'}; "
                "len(loader) is the number of steps, and a loop can count the rows that it gets"
            )
        return count


def _after_fork() -> None:
    """Give views passes of their own in a forked process such as a rank; loader workers share those of their parent."""
    if not starts_worker():
        for view in list(_VIEWS):
            view._passes = view._passes.copy()


if hasattr(os, "register_at_fork"):  # there is none on Windows, nor a fork
    os.register_at_fork(after_in_child=_after_fork)


class ViewIterator(Iterator[Any]):
    """One pass over a view, in one process.

    Outside of loader workers, the pass begins with the first step, so that a state can be loaded before.

    Args:
      view: what is iterated.
      steps: of the rank.
      worker: the loader worker that this process is, if it is one.
      number: how many iterators of the view this process had before.
    """

    def __init__(self, view: IterableView, steps: RankSteps, worker: LoaderWorker | None, number: int) -> None:
        self.worker, self.number, self.begun = worker, number, 0
        self.ended = False
        self._view, self._steps, self._convert = view, steps, view._convert
        self._loaded: RankPosition | None = None
        self._may_differ: frozenset[str] = frozenset()
        self.numbers: tuple[int, int] | None = None
        """The number of the pass, and which pass over the view it is, once they were taken."""
        self._iterator: StepIterator | None = None
        self._before: StepMark | None = None
        self._waiting: tuple[Any] | None = None  # taken, but not delivered when an interrupt came

    def __iter__(self) -> "ViewIterator":
        return self

    def __next__(self) -> Any:
        iterator = self._iterator or self.begin()
        if self._waiting is None:
            self._before = iterator.mark()
            for element in iterator:
                self._waiting = (element,)
                break
            else:
                self.ended = True
                raise StopIteration
        try:
            made = self._convert(self._steps.finish(self._waiting[0]))
        except Exception:
            self._waiting = None
            raise
        self._waiting = None
        return made

    def begin(self) -> StepIterator:
        """The steps; the pass begins now if it has not begun."""
        if self._iterator is None:
            position, self.begun = self._view._begin(self, self._loaded)
            worker = self.worker
            share = {} if worker is None else {"worker": worker.number, "workers": worker.count}
            if worker is not None and position.state is None:
                self._view._leave(self._steps, position.epoch)
            self._iterator = self._steps.begin(position, **share, may_differ=self._may_differ | self._view._may_differ)
            if position.state is not None:
                self._view._leave(self._steps, None if worker is None else position.epoch)
            if worker is None:
                self._view._position = None
        return self._iterator

    @property
    def epoch(self) -> int:
        """The number of the pass."""
        return self.begin().epoch

    def state_dict(self) -> State:
        """The position after the last step delivered: a small JSON value."""
        return self.begin().position(self._before if self._waiting else None).to_json()

    def later_state(self) -> Callable[[], State] | None:
        """What tells the position after the last step delivered, also later on; quick to make. None: the pass has not begun."""
        iterator = self._iterator
        if iterator is None:
            return None
        mark = iterator.mark()
        return lambda: iterator.position(mark).to_json()

    def load_state_dict(self, state: State, may_differ: str | Collection[str] = ()) -> None:
        """Continue at a saved position, in this iterator.

        Args:
          state: a result of `state_dict`.
          may_differ: as for `Dataset.restore`, besides what the view was made with.

        Raises:
          StateError: the state belongs to another pipeline, or is something else.
        """
        self._loaded, self._may_differ = position_in(state, _WHO), allowances(may_differ)
        self.numbers = None
        self.close()
        self.ended = False

    def close(self) -> None:
        """End the pass and its threads."""
        if self._iterator is not None:
            self._iterator.close()
            self._iterator = self._waiting = None
