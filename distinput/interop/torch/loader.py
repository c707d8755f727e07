# SPDX-License-Identifier: Apache-2.0
"""`Loader`: a DataLoader over a dataset that knows its epoch and its position, also with loader workers."""

import re
from collections import deque
from collections.abc import Callable, Collection, Iterator, Sequence
from typing import Any

import torch
import torch.utils.data

from distinput.columns.state import State
from distinput.data.dataset import Dataset
from distinput.errors import FailedPreconditionError
from distinput.interop.rank_steps import as_it_is
from distinput.interop.torch.iterable_view import CountedView, IterableView, ViewIterator
from distinput.interop.torch.mesh_place import MeshPlace
from distinput.interop.torch.readers import steps_held
from distinput.plan.check import at_least
from distinput.values.spec import Spec

# ----------------------------------------------------------------------------
# Copies to a GPU: through pinned memory, on a stream of their own, so that the GPU computes meanwhile.
#
# No thread waits for a copy. The stream on which the loop computes waits for it when the loop takes the step, and the memory
# on the GPU is not used again before that stream has finished reading it.
# ----------------------------------------------------------------------------


BegunCopies = tuple[Any, list[Any], Any]
"""A step, its tensors on the device, and the event after their copies; None: they are there."""


_IN_FLIGHT = 8
"""Steps whose copies may be under way before the host waits for the oldest of them."""


class DeviceCopies:
    """Copies of steps to a device. Text and other values that are not tensors stay on the host.

    Args:
      device: any of PyTorch's but the CPU. Only GPUs of CUDA have streams here; to others tensors are copied one by one.
      element_spec: of the steps.
      cuda: `torch.cuda`, or what stands for it in a test.

    Raises:
      FailedPreconditionError: it is a GPU of CUDA, and PyTorch sees none here.
    """

    def __init__(self, device: torch.device, element_spec: Any, cuda: Any = torch.cuda) -> None:
        if device.type == "cuda" and not cuda.is_available():
            raise FailedPreconditionError(
                f"Loader: device is {str(device)!r}, and PyTorch {torch.__version__} sees no GPU of CUDA in this process; "
                "install PyTorch for CUDA, or leave device out"
            )
        if device.type == "cuda" and device.index is None:
            device = torch.device("cuda", cuda.current_device())
        self._device, self._structure, self._cuda = device, Spec.of(element_spec).structure, cuda
        self._stream = cuda.Stream(device) if device.type == "cuda" else None
        self._free: dict[int, list[Any]] = {}  # pinned buffers, by their sizes
        self._copied: deque[tuple[Any, list[Any], list[Any]]] = deque()
        """Events, and the buffers and other tensors that are read until then."""

    def begin(self, step: Any) -> BegunCopies:
        """Begin the copies of a step. Its memory is not read after the call, unless it is pinned."""
        structure = self._structure
        leaves = [step] if structure.is_leaf else list(structure.flatten(step))
        with torch.inference_mode(False):  # buffers outlive a loop in inference mode
            there, tensors, event = self._begin_all(leaves)
        return (there[0] if structure.is_leaf else structure.build(there)), tensors, event

    def _begin_all(self, leaves: list[Any]) -> tuple[list[Any], list[Any], Any]:
        if self._stream is None:
            there = [leaf.to(self._device) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
            return there, [], None
        self._take_back()
        cuda, buffers, kept, tensors = self._cuda, list[Any](), list[Any](), list[Any]()
        with cuda.stream(self._stream):
            there = [
                self._begin(leaf, buffers, kept, tensors) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves
            ]
            event = cuda.Event()
            event.record(self._stream)
        # An error before this line leaves the buffers to PyTorch, which knows what is copied from them.
        self._copied.append((event, buffers, kept))
        return there, tensors, event

    def deliver(self, placed: BegunCopies) -> Any:
        """The step; the stream on which the calling thread computes waits until it has arrived."""
        step, tensors, event = placed
        if event is not None:
            stream = self._cuda.current_stream(self._device)
            stream.wait_event(event)
            for tensor in tensors:  # else their memory could be filled again while that stream still reads it
                tensor.record_stream(stream)
        return step

    def _begin(self, tensor: Any, buffers: list[Any], kept: list[Any], tensors: list[Any]) -> Any:
        """The tensor on the GPU, where it arrives later; notes what is read meanwhile, and the tensors that are written."""
        if tensor.is_nested:
            parts = [self._begin(part, buffers, kept, tensors) for part in (tensor.values(), tensor.offsets())]
            return torch.nested.nested_tensor_from_jagged(*parts)
        size = tensor.numel() * tensor.element_size()
        if size and not self._is_pinned(tensor):
            buffer = self._buffer(size)
            buffers.append(buffer)
            pinned = buffer[:size].view(tensor.dtype).view(tensor.shape)
            pinned.copy_(tensor)
        else:
            pinned = tensor
            kept.append(tensor)
        there = self._copy(pinned)
        tensors.append(there)
        return there

    def _buffer(self, size: int) -> Any:
        """A pinned buffer that nobody holds, of a power of two bytes, as PyTorch would reserve for any size."""
        whole = 1 << (size - 1).bit_length()
        free = self._free.get(whole)
        return free.pop() if free else self._pinned(whole)

    def _take_back(self) -> None:
        """Note the buffers whose copies are complete, to use them again."""
        copied = self._copied
        while copied and (copied[0][0].query() or len(copied) > _IN_FLIGHT):
            event, buffers, _ = copied[0]
            event.synchronize()  # the host is ahead of the copies, and would pin more and more memory
            copied.popleft()
            for buffer in buffers:
                self._free.setdefault(buffer.numel(), []).append(buffer)

    def _pinned(self, size: int) -> Any:
        return torch.empty(size, dtype=torch.uint8, device="cpu", pin_memory=True)

    def _is_pinned(self, tensor: Any) -> bool:
        return bool(tensor.is_pinned())

    def _copy(self, pinned: Any) -> Any:
        return pinned.to(self._device, non_blocking=True)


class Loader(torch.utils.data.DataLoader):  # type: ignore[misc]
    """A PyTorch DataLoader over an `IterableView`, with `set_epoch`, `state_dict` and `load_state_dict`.

    It counts the steps that the loop took, so its state is right with any number of loader workers. Lightning saves and
    restores it. So does Accelerate, whose `prepare` leaves it as it is: the view has divided the batches for the ranks already.

    Args:
      dataset: of global batches, or an `IterableView` of one.
      rank: as for `IterableView`.
      world_size: as for `IterableView`.
      share_memory: as for `IterableView`.
      tail: as for `IterableView`.
      batch_size: as for `IterableView`; the dataset makes the batches.
      may_differ: as for `IterableView`.
      mesh: a `DeviceMesh` of PyTorch whose dimensions have names, instead of `rank` and `world_size`. Each of them is named
        once in the next three. The state of any rank is good for all ranks of any other mesh.
      data: the dimensions whose ranks divide the rows of a batch, the outermost first.
      replicate: the dimensions whose ranks all get the same: tensor and pipeline parallelism.
      context: the dimensions whose ranks divide every sequence, the second axis.
      layout: of the parts of a sequence, "contiguous" or "zigzag", as for `MeshPlace`.
      sequence: the keys of the components that are sequences; (): all with two axes or more.
      positions: the name of a component to add: where each column of this rank is in the whole sequence.
      device: where the tensors of steps are put, such as "cuda" or "cuda:1". GPUs of CUDA are fed through pinned memory, on a
        stream of their own, and the stream that is the current one when the loop takes a step waits for it. Text stays on the
        host. None or "cpu": steps stay as they are.
      prefetch_to_device: how many steps are put on the device before the loop takes them; 0: each one when it is taken. Without
        a device, nothing is taken ahead. A state is always that of what the loop has taken.
      **options: of DataLoader: `num_workers`, `pin_memory`, `persistent_workers`, `multiprocessing_context` and the like.
        Values that ask for nothing are taken, such as `shuffle=False` and `batch_size=None`, so that frameworks can make a copy
        of the loader.

    Raises:
      TypeError: an option that batches, shuffles or samples, which the dataset does, or that delivers steps out of order; or a
        rank for a view, which has its own.
      FailedPreconditionError: at iteration: the device is a GPU of CUDA, and there is none.

    >>> import distinput as di
    >>> loader = di.interop.torch.Loader(di.data.Dataset.range(7).batch(3), rank=0, world_size=2)
    >>> steps = iter(loader)
    >>> next(steps), next(steps)
    (tensor([0, 1]), tensor([3, 4]))
    >>> again = di.interop.torch.Loader(di.data.Dataset.range(7).batch(3), rank=0, world_size=1)
    >>> again.load_state_dict(loader.state_dict())
    >>> list(again)
    [tensor([6])]

    Source: distinput's own; the interface is that of `torch.utils.data.DataLoader`, and of torchdata's `StatefulDataLoader`.
    """

    _is_accelerate_prepared = True  # Accelerate's prepare() leaves it as it is
    use_stateful_dataloader = True  # and its save_state() saves what state_dict() gives

    def __init__(
        self,
        dataset: Dataset[Any] | IterableView,
        rank: int | None = None,
        world_size: int | None = None,
        *,
        share_memory: bool = False,
        tail: str | None = None,
        batch_size: int | None = None,
        may_differ: str | Collection[str] = (),
        mesh: Any = None,
        data: str | Sequence[str] = (),
        replicate: str | Sequence[str] = (),
        context: str | Sequence[str] = (),
        layout: str = "contiguous",
        sequence: str | Sequence[str] = (),
        positions: str | None = None,
        device: Any = None,
        prefetch_to_device: int = 1,
        **options: Any,
    ) -> None:
        if tail in (None, "partial"):
            options["batch_size"], batch_size = batch_size, None  # then it is that of a DataLoader
        options = _left(options)
        arguments: dict[str, Any] = {"share_memory": share_memory, "tail": tail, "batch_size": batch_size}
        arguments |= {"may_differ": may_differ, "place": None}
        if mesh is not None:
            roles = {"data": data, "replicate": replicate, "context": context}
            arguments["place"] = MeshPlace.of(mesh, **roles, layout=layout, sequence=sequence, positions=positions)
        elif data or replicate or context or sequence or positions is not None or layout != "contiguous":
            raise TypeError(
                "Loader: data, replicate, context, layout, sequence and positions are of a mesh; pass mesh="
            )
        if isinstance(dataset, IterableView):
            if rank is not None or world_size is not None or any(arguments.values()):
                raise TypeError(
                    f"Loader: rank, world_size, {', '.join(arguments)} are those of the view; pass them to IterableView"
                )
            view = dataset
        else:
            view = IterableView(dataset, rank, world_size, **arguments)
        self.view = view
        self.device = None if device is None else torch.device(device)
        self.prefetch_to_device = at_least("Loader", "prefetch_to_device", prefetch_to_device, 0)
        self._copies: DeviceCopies | None = None  # begun with the first pass, in the process of the loop
        self._pass: _Pass | None = None  # None: not begun
        super().__init__(CountedView(view), batch_size=None, collate_fn=as_it_is, **options)

    def __len__(self) -> int:
        """The number of steps of a pass, the same on all ranks; `len(loader.dataset)` is the number of records.

        Raises:
          TypeError: the number is unknown, or there is no end.
        """
        return IterableView.__len__(self.view)

    def __iter__(self) -> Iterator[Any]:
        taken = self.view.position
        # Without workers and pinned memory, a DataLoader would add nothing but several microseconds a step.
        # Nor does its pinned memory where copies to the device make their own.
        put = self.device is not None and self.device.type != "cpu"
        plain = not self.num_workers and (put or not self.pin_memory)
        if self.num_workers:
            self.view.begin_elsewhere()
        through = iter(self.view) if plain else super().__iter__()
        self._pass = _Pass(taken, steps_held())
        if not put:
            return _Counted(through, self._pass)
        if self._copies is None:
            self._copies = DeviceCopies(self.device, self.view.element_spec)
        return _Counted(_Ahead(through, self._copies, self.prefetch_to_device, self._pass), self._pass)

    @property
    def _taken(self) -> tuple[int, int] | None:
        """The pass, and how many of its steps were taken; None if none is under way."""
        if self._pass is None or self._pass.taken is None:
            return None
        epoch, taken = self._pass.taken
        return epoch, taken - self._pass.held()

    @property
    def epoch(self) -> int:
        """The number of the pass that the next step belongs to.

        A loop that may have been restored runs `for epoch in range(loader.epoch, epochs)`.
        """
        return self._place()[0]

    def _place(self) -> tuple[int, int]:
        """The pass of the next step, and the steps of it that were taken."""
        now = self._taken
        if now is None:
            return self.view.position
        epoch, taken = now
        return (epoch + 1, 0) if taken == self.view.num_steps else now

    def set_epoch(self, epoch: int) -> None:
        """The pass that begins next has this number; see `IterableView.set_epoch`."""
        self.view.set_epoch(epoch)

    def state_dict(self) -> State:
        """The position after the last step that the loop took: a small JSON value, the same on all ranks.

        After the last step of a pass it is the beginning of the next one.
        """
        epoch, taken = self._place()
        now = self._pass
        held = now is not None and now.held()
        if taken and not held and now is not None and now.taken is not None and now.state is not None:
            return now.state()
        # Then the view has delivered more than the loop has taken.
        ahead = held or self.num_workers or self._copies is not None
        known = self._taken is None or not ahead
        return IterableView.state_dict(self.view) if taken and known else self.view.state_after(taken, epoch)

    def load_state_dict(self, state: State, may_differ: str | Collection[str] = ()) -> None:
        """The next pass continues at a saved position, on any number of ranks and loader workers.

        Args:
          state: a result of `state_dict`, also of an `IterableView` or of a `StatefulDataLoader` over one.
          may_differ: as for `Dataset.restore`, besides what the loader was made with.

        Raises:
          StateError: it is something else. That it belongs to another pipeline is found when the pass begins.
        """
        IterableView.load_state_dict(self.view, state, may_differ)
        self._iterator = None  # workers that persist would not see it
        self._pass = None


_OF_A_STEP = re.compile(r"Caught \S+ in (DataLoader worker process|pin memory thread)")
"""Of errors that came in the place of a step, so that the next step follows; a loader whose worker died says something else."""


class _Pass:
    """How far a pass is, without the steps, which end when the loop drops them.

    Args:
      taken: the number of the pass, and how many of its steps were taken; None at its end.
      held: tells how many of these have not come to the loop yet.

    Attributes:
      state: tells the state after the last step taken, if steps are taken ahead in this process.
    """

    def __init__(self, taken: tuple[int, int] | None, held: Callable[[], int]) -> None:
        self.taken, self.held = taken, held
        self.state: Callable[[], State] | None = None

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "held": int}  # 0: nobody holds steps in another process


class _Counted(Iterator[Any]):
    """The steps of one pass, which are counted. An interrupt does not end it.

    Args:
      steps: from PyTorch's DataLoader, or from the view.
      counts: how far the pass is.
    """

    def __init__(self, steps: Iterator[Any], counts: _Pass) -> None:
        self._steps, self._pass = steps, counts

    def __next__(self) -> Any:
        counts = self._pass
        if counts.taken is None:
            raise StopIteration
        epoch, taken = counts.taken
        after = epoch, taken + 1
        try:
            for step in self._steps:  # no function is called before the step is returned, so no interrupt comes there
                counts.taken = after
                return step
        except Exception as error:
            if _OF_A_STEP.match(str(error)):
                counts.taken = after
            raise
        counts.taken = None
        raise StopIteration


class _Ahead(Iterator[Any]):
    """The steps of one pass on a device, some of them before the loop takes them.

    The loop sees steps, errors and the end as if nothing were taken ahead: nothing is taken behind an error before the loop has
    seen it, and an interrupt loses no step.

    Args:
      steps: on the host, from PyTorch's DataLoader, or from the view.
      copies: to the device.
      ahead: how many steps are there before the loop takes them.
      counts: learns the state after each step that the loop takes.
    """

    def __init__(self, steps: Iterator[Any], copies: DeviceCopies, ahead: int, counts: _Pass) -> None:
        self._steps, self._copies, self._ahead, self._pass = steps, copies, ahead, counts
        self._waiting: tuple[Any] | None = None  # taken, but not put on the device when an interrupt came
        self._ready: list[tuple[BegunCopies | Exception, Callable[[], State] | None]] = []
        self._stopped = False  # at the end, or at an error that the loop has not seen

    def __next__(self) -> Any:
        while len(self._ready) <= self._ahead and not self._stopped:
            self._take()
        if not self._ready:
            self._stopped = False
            raise StopIteration
        (placed, state), rest = self._ready[0], self._ready[1:]
        if isinstance(placed, Exception):
            self._ready, self._pass.state = rest, state
            self._stopped = False
            raise placed
        step = self._copies.deliver(placed)
        self._ready, self._pass.state = rest, state  # no function is called from here on, so no interrupt comes there
        return step

    def _take(self) -> None:
        """Take a step, and begin to copy it."""
        try:
            if self._waiting is None:
                for step in self._steps:
                    self._waiting = (step,)
                    break
                else:
                    self._stopped = True
                    return
            made: BegunCopies | Exception = self._copies.begin(self._waiting[0])
        except Exception as error:  # noqa: BLE001 - raised when the loop has taken the steps before it
            made = error
        failed = isinstance(made, Exception)
        state = self._steps.later_state() if isinstance(self._steps, ViewIterator) else None
        ready = [*self._ready, (made, state)]
        self._ready, self._waiting, self._stopped = ready, None, failed


_IDLE: dict[str, tuple[Any, ...]] = {
    "batch_sampler": (None,),
    "batch_size": (None,),
    "collate_fn": (None, as_it_is),
    "drop_last": (None, False),
    "sampler": (None,),
    "shuffle": (None, False),
}
"""What the dataset does, and the values with which DataLoader does nothing."""


def _left(options: dict[str, Any]) -> dict[str, Any]:
    """The options for DataLoader, without those of `_IDLE`.

    Raises:
      TypeError: one of them asks for something that cannot be.
    """
    for name, idle in sorted(_IDLE.items()):
        if name in options and not any(options[name] is value for value in idle):
            raise TypeError(
                f"Loader: {name} is not an option here, since the dataset shuffles, batches and transforms: "
                "dataset.shuffle(n, seed=1).batch(global_batch_size)"
            )
    if not options.get("in_order", True):
        raise TypeError(
            "Loader: in_order=False would deliver steps in the order in which the workers finish, so that no state could say "
            "which steps were delivered; leave it out, and let the threads of the dataset do slow work ahead: "
            "num_parallel_calls, prefetch"
        )
    return {name: value for name, value in options.items() if name not in _IDLE}
