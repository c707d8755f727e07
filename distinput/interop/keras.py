# SPDX-License-Identifier: Apache-2.0
"""Keras: a dataset of batches as a `keras.utils.PyDataset`, for `fit`, `evaluate` and `predict` on every backend."""

from threading import Lock
from typing import Any

import numpy as np

from distinput.data.dataset import Dataset
from distinput.distribute.input.dealing import StepPadding
from distinput.errors import OutOfRangeError, importing
from distinput.interop.pass_starts import PassStarts
from distinput.interop.rank_steps import TAILS, ShortSteps
from distinput.plan.check import at_least
from distinput.plan.node import INFINITE
from distinput.sharding.own_rows import full_batch_rows
from distinput.values.leaves import STRING
from distinput.values.nest import component, structure_of
from distinput.values.spec import RaggedTensorSpec, Spec, TensorSpec

__all__ = ["Sequence"]


with importing(
    "interop.keras: needs Keras and a backend for it, which cannot be imported ({error}); use `pip install "
    "'distinput[keras]'`, install JAX or PyTorch, and set KERAS_BACKEND to 'jax' or 'torch' before Keras is imported"
):
    import keras


_WHO = "interop.keras.Sequence"


class Sequence(keras.utils.PyDataset):  # type: ignore[misc]
    """A dataset of batches as Keras takes it: `x`, `(x, y)` or `(x, y, sample_weight)`.

    Batches come in the order of the dataset, so shuffle the dataset: `fit` asks for batches in a random order unless it is
    called with `shuffle=False`, and gets the next one each time. Each epoch is another pass, with another order if the
    dataset is shuffled. `evaluate` and `predict` begin a pass of their own. The dataset reads ahead on its own threads; Keras
    needs no workers.

    Args:
      dataset: a dataset whose elements are batches. Its number of batches must be known, or infinite with
        `fit(steps_per_epoch=)`.
      tail: what becomes of a last batch with fewer rows. "partial" delivers it as it is: Keras weights batches by their rows,
        so the losses and metrics that it reports are exact; the JAX backend compiles another program for that batch. "pad"
        fills it up with rows of zeros whose `sample_weight` is 0, so that all batches have one shape: `weighted_metrics` are
        exact, but losses and unweighted metrics count the added rows, and so do predictions. Elements need targets then.
        "drop" leaves it out, "error" raises.
      batch_size: the rows of a full batch, for "pad" and "error", if a function over whole batches hides it.

    Raises:
      TypeError: no dataset, elements of more than three parts, or a component that is no dense array of numbers.
      ValueError: elements are not batches; the number of batches is unknown; the batch size is unknown, and `tail` needs it;
        with "pad", there are no targets. With "error", a batch is short, which may be known only when it is read.
      EngineMissing: Keras is not installed.

    Source: `keras.utils.PyDataset`.
    """

    def __init__(self, dataset: Any, *, tail: str = "partial", batch_size: int | None = None) -> None:
        super().__init__(workers=1, use_multiprocessing=False)
        if not isinstance(dataset, Dataset):
            raise TypeError(f"{_WHO}: needs a dataset, got a {type(dataset).__name__}")
        if tail not in TAILS:
            raise ValueError(f"{_WHO}: tail must be one of {', '.join(TAILS)}, got {tail!r}")
        spec = Spec.of(dataset.element_spec)
        _check(dataset, spec)
        self._parts = len(spec.structure.children) if spec.structure.kind == "tuple" else 0
        if self._parts > 3:
            raise TypeError(
                f"{_WHO}: elements must be x, (x, y) or (x, y, sample_weight), got tuples of {self._parts}; group several "
                "inputs as a nested tuple or a dict"
            )
        if tail in ("drop", "error"):
            short = ShortSteps.of(tail, dataset.node, _WHO, batch_size)
            dataset = Dataset(short.shares(short.kept(dataset.node), ranks=1, rank=0))
        self._batches = _count(dataset)
        self._padding = _padding(dataset, spec, batch_size, self._parts) if tail == "pad" else None
        self._dataset = dataset.prefetch(2)
        self._starts = PassStarts(self._batches)
        self._iterator: Any = None
        # The batches returned since the pass began, while Keras may have only looked at them.
        self._first: list[Any] = []
        self._again: list[Any] = []  # these batches, if it has
        self._epoch: int | None = None
        self._lock = Lock()

    @property
    def num_batches(self) -> int | None:
        """The number of batches; None if there is no end. Keras asks for it when it makes another iterator; use `len`."""
        self._starts.ask()
        return self._batches

    def __len__(self) -> int:
        if self._batches is None:
            raise TypeError(f"{_WHO}: the dataset is infinite")
        return self._batches

    def set_epoch(self, epoch: int) -> None:
        """Let the next pass be number `epoch`, to continue training in another process."""
        self._epoch = epoch
        self._close()
        self._starts = PassStarts(self._batches)

    def __getitem__(self, index: int) -> Any:
        """The next batch; index 0 at the beginning of an epoch is the first one of a pass.

        Raises:
          OutOfRangeError: the dataset has fewer batches than were counted.
        """
        with self._lock:
            if self._starts.request(index):
                self._close()
                self._iterator = iter(self._dataset) if self._epoch is None else self._dataset.iter_pass(self._epoch)
                self._epoch = None
            batch = self._again.pop(0) if self._again else self._following()
            if self._starts.may_be_looked_at:
                self._first.append(batch)
            else:
                self._first.clear()
            return batch

    def _following(self) -> Any:
        batch = next(self._iterator, None)
        if batch is None:
            raise OutOfRangeError(f"{_WHO}: the dataset ended before it had returned {self._batches} batches")
        return self._weighted(batch)

    def on_epoch_begin(self) -> None:
        """Called by Keras."""
        self._starts.enter()

    def on_epoch_end(self) -> None:
        """Called by Keras, also after it has looked at a first batch to build the model."""
        with self._lock:
            if self._starts.leave():
                self._again = [*self._first, *self._again]
            self._first = []

    def _close(self) -> None:
        self._first, self._again = [], []
        if self._iterator is not None:
            self._iterator.close()

    def _weighted(self, batch: Any) -> Any:
        """The batch; filled up, with the weights of its rows, if it is to be."""
        if self._padding is None:
            return batch
        batch, mask = self._padding(batch)
        weights = mask.astype(np.float32)
        if self._parts < 3:
            return *batch, weights
        structure = structure_of(batch[2])  # one array for all outputs, or a nest with one for each
        left = [
            given * weights.astype(given.dtype).reshape(-1, *[1] * (given.ndim - 1))
            for given in structure.flatten(batch[2])
        ]
        return *batch[:2], structure.build(left)


def _check(dataset: Any, spec: Spec) -> None:
    """Refuse what no backend takes, by the name of the component."""
    for path, leaf in zip(spec.structure.paths, spec.leaves, strict=True):
        if not isinstance(leaf, TensorSpec) or isinstance(leaf, RaggedTensorSpec) or leaf.dtype == STRING:
            raise TypeError(
                f"{_WHO}: Keras takes dense arrays of numbers, and {component(path)} is {leaf}; leave it out or turn it into "
                "numbers with map, and make arrays of ragged rows with padded_batch or to_padded()"
            )
        if leaf.shape == ():
            raise ValueError(
                f"{_WHO}: elements must be batches, and {component(path)} has no batch axis: {dataset.element_spec}; call "
                ".batch(n)"
            )


def _count(dataset: Any) -> int | None:
    """The number of batches; None if there is no end."""
    count: int = dataset.cardinality()
    if count == INFINITE:
        return None
    if count < 0:
        count = dataset.node.count_elements()
    if count < 0:
        raise ValueError(
            f"{_WHO}: Keras needs to know how many batches there are, which a filter or a function can hide; state it with "
            "apply(di.data.experimental.assert_cardinality(n)), or repeat the dataset and pass steps_per_epoch to fit"
        )
    return count


def _padding(dataset: Any, spec: Spec, given: int | None, parts: int) -> StepPadding:
    if parts < 2:
        raise ValueError(
            f"{_WHO}: tail='pad' needs elements (x, y) or (x, y, sample_weight), as added rows can only be left out by their "
            "weight; use tail='partial'"
        )
    given = None if given is None else at_least(_WHO, "batch_size", given, 1)
    return StepPadding(spec, full_batch_rows(_WHO, dataset.node, given))
