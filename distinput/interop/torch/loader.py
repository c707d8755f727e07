# SPDX-License-Identifier: Apache-2.0
"""`Loader`: a DataLoader over a dataset that knows its epoch and its position, also with loader workers."""

from collections.abc import Iterator
from typing import Any

import torch.utils.data

from distinput.core.state import State
from distinput.data.dataset import Dataset
from distinput.interop.torch.iterable_view import IterableView

__all__ = ["Loader"]

_OURS = ("batch_sampler", "batch_size", "collate_fn", "dataset", "drop_last", "sampler", "shuffle")


class Loader(torch.utils.data.DataLoader):  # type: ignore[misc]
    """A PyTorch DataLoader over an `IterableView`, with `set_epoch`, `state_dict` and `load_state_dict`.

    It counts the steps that the loop took, so its state is right with any number of loader workers. Lightning saves and
    restores it. So does Accelerate, whose `prepare` leaves it as it is: the view has divided the batches for the ranks already.

    Args:
      dataset: of global batches, or an `IterableView` of one.
      rank: as for `IterableView`.
      world_size: as for `IterableView`.
      share_memory: as for `IterableView`.
      **options: of DataLoader: `num_workers`, `pin_memory`, `persistent_workers`, `multiprocessing_context` and the like.

    Raises:
      TypeError: an option that batches, shuffles or samples, which the dataset does; or a rank for a view, which has its own.

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
        **options: Any,
    ) -> None:
        refused = sorted(set(options) & set(_OURS))
        if refused:
            raise TypeError(
                f"Loader: {refused[0]} is not an option here, since the dataset shuffles, batches and transforms: "
                "dataset.shuffle(n, seed=1).batch(global_batch_size)"
            )
        if isinstance(dataset, IterableView):
            if rank is not None or world_size is not None or share_memory:
                raise TypeError(
                    "Loader: rank, world_size and share_memory are those of the view; pass them to IterableView"
                )
            view = dataset
        else:
            view = IterableView(dataset, rank, world_size, share_memory=share_memory)
        self.view = view
        self._pass: _Pass | None = None  # None: not begun
        super().__init__(view, batch_size=None, collate_fn=_as_it_is, **options)

    def __iter__(self) -> Iterator[Any]:
        taken = self.view.position
        # Without workers and pinned memory, a DataLoader would add nothing but several microseconds a step.
        through = super().__iter__() if self.num_workers or self.pin_memory else iter(self.view)
        self._pass = _Pass(taken)
        return _Counted(through, self._pass)

    @property
    def _taken(self) -> tuple[int, int] | None:
        """The pass, and how many of its steps were taken; None if none is under way."""
        return None if self._pass is None else self._pass.taken

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
        known = self._taken is None or not self.num_workers
        return self.view.state_dict() if taken and known else self.view.state_after(taken, epoch)

    def load_state_dict(self, state: State) -> None:
        """The next pass continues at a saved position, on any number of ranks and loader workers.

        Args:
          state: a result of `state_dict`, also of an `IterableView` or of a `StatefulDataLoader` over one.

        Raises:
          StateError: it is something else.
        """
        self.view.load_state_dict(state)
        self._iterator = None  # workers that persist would not see it
        self._pass = None


class _Pass:
    """How far a pass is, without the steps, which end when the loop drops them.

    Args:
      taken: the number of the pass, and how many of its steps were taken; None at its end.
    """

    def __init__(self, taken: tuple[int, int] | None) -> None:
        self.taken = taken


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
        for step in self._steps:  # no function is called before the step is returned, so no interrupt comes there
            counts.taken = after
            return step
        counts.taken = None
        raise StopIteration


def _as_it_is(step: Any) -> Any:
    return step
