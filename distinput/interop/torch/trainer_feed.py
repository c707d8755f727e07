# SPDX-License-Identifier: Apache-2.0
"""`TrainerFeed`: a mixin for the Trainer of Hugging Face, which then takes datasets of this library."""

import warnings
from collections.abc import Iterator
from typing import Any

import torch
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from distinput.data.dataset import Dataset
from distinput.errors import InputWarning, InvalidArgumentError
from distinput.interop.torch.loader import Loader
from distinput.plan.node import UNKNOWN
from distinput.sharding.own_rows import batch_size_of


class TrainerFeed:
    """Datasets of this library for the Trainer of Hugging Face: `class FedTrainer(TrainerFeed, Trainer)`.

    `train_dataset`, `eval_dataset` (also a dict of several) and what `predict` is given may be datasets of global batches,
    whose elements are dicts. Each is read through a `Loader`; other datasets are read as before.

    A run that is resumed has the order of the epoch that it was in, if the number of steps of a pass is known. Losses, metrics
    and predictions of an evaluation are those of every record once, with any number of ranks, also where the last batch is
    short. The loss is the mean over the records. Where a batch has no rows for a rank, its model is called with a row of zeros,
    which counts for nothing. Samples per second are counted in records.

    Of `TrainingArguments`, it follows `dataloader_num_workers`, `dataloader_prefetch_factor`, `dataloader_persistent_workers`,
    `dataloader_multiprocessing_context`, `dataloader_pin_memory` and `dataloader_drop_last`. The dataset says how large batches
    are.

    Warns:
      InputWarning: a run is resumed whose number of steps in a pass is not known.

    Raises:
      InvalidArgumentError: at evaluation: `batch_eval_metrics` is on; several ranks share an evaluation by a loader of your own
        that does not pad; they share batches whose size is not known.
    """

    train_dataset: Any
    eval_dataset: Any
    args: Any
    accelerator: Any

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for each in cls.__mro__[: cls.__mro__.index(TrainerFeed)]:
            # A trainer has both, and a class that adds to what comes behind it has not.
            if not issubclass(each, TrainerFeed) and {"get_train_dataloader", "train"} <= vars(each).keys():
                raise TypeError(
                    f"{cls.__name__}: TrainerFeed must come first, or {each.__name__} reads the datasets itself: "
                    f"class {cls.__name__}(TrainerFeed, {each.__name__})"
                )

    def feed_loader(self, dataset: Dataset[Any], tail: str | None, **options: Any) -> Loader:
        """The loader of a dataset; overwrite it to pass other options to `Loader`, such as a mesh.

        Args:
          dataset: of global batches.
          tail: as for `Loader`.
          **options: of `Loader`, as the arguments of the Trainer want them.
        """
        return Loader(dataset, tail=tail, **options)

    def get_train_dataloader(self) -> Any:
        """The loader of `train_dataset`."""
        dataset = self.train_dataset
        if not isinstance(dataset, Dataset):
            return super().get_train_dataloader()  # type: ignore[misc]
        if not getattr(self, "_tells_epochs", False):
            self._tells_epochs = True
            self.add_callback(_epochs())  # type: ignore[attr-defined]
        persistent = bool(self.args.dataloader_persistent_workers)
        tail = "drop" if self.args.dataloader_drop_last else None
        return self.feed_loader(dataset, tail, persistent_workers=persistent, **self._loader_options())

    def get_eval_dataloader(self, eval_dataset: Any = None) -> Any:
        """The loader of a dataset, or of that of `eval_dataset` with a name."""
        named = isinstance(eval_dataset, str)
        given = self.eval_dataset if eval_dataset is None else eval_dataset
        dataset = self.eval_dataset[eval_dataset] if named else given
        if not isinstance(dataset, Dataset):
            return super().get_eval_dataloader(eval_dataset)  # type: ignore[misc]
        return self._evaluation_loader(dataset)

    def get_test_dataloader(self, test_dataset: Any) -> Any:
        """The loader of a dataset for `predict`."""
        if not isinstance(test_dataset, Dataset):
            return super().get_test_dataloader(test_dataset)  # type: ignore[misc]
        return self._evaluation_loader(test_dataset)

    def get_total_train_batch_size(self, args: Any) -> int:
        """The records of an update on all ranks together, for the samples per second of runs with `max_steps`."""
        dataset = self.train_dataset
        rows = batch_size_of(dataset.node) if isinstance(dataset, Dataset) else None
        if rows is None:
            return super().get_total_train_batch_size(args)  # type: ignore[misc,no-any-return]
        return rows * int(args.gradient_accumulation_steps)

    def evaluation_loop(self, dataloader: Any, *args: Any, **options: Any) -> Any:
        """The evaluation loop of the Trainer, over every record exactly once."""
        if not isinstance(dataloader, Loader):
            return super().evaluation_loop(dataloader, *args, **options)  # type: ignore[misc]
        if self.args.batch_eval_metrics:
            raise InvalidArgumentError(
                "TrainerFeed: batch_eval_metrics needs to know the last batch before it is read; leave it out, and let "
                "preprocess_logits_for_metrics make predictions small"
            )
        steps = _EvaluationSteps(dataloader, self.accelerator)
        predict = self.prediction_step  # type: ignore[has-type]

        def noted(*args: Any, **options: Any) -> Any:
            made = predict(*args, **options)
            steps.loss_is_next = made[0] is not None
            return made

        # These hide the methods of the class, whoever defines them, until the loop ends.
        self.prediction_step, self.gather_function = noted, steps.gather
        try:
            output = super().evaluation_loop(steps, *args, **options)  # type: ignore[misc]
        finally:
            del self.prediction_step
            self.gather_function = self.accelerator.gather_for_metrics
        return output._replace(num_samples=steps.records)

    def _evaluation_loader(self, dataset: Dataset[Any]) -> Loader:
        tail = "pad" if self.accelerator.num_processes > 1 else "partial"
        return self.feed_loader(dataset, tail, **self._loader_options())

    def _loader_options(self) -> dict[str, Any]:
        args = self.args
        found: dict[str, Any] = {"num_workers": args.dataloader_num_workers}
        if args.dataloader_num_workers:
            context = getattr(args, "dataloader_multiprocessing_context", None)
            found |= {"prefetch_factor": args.dataloader_prefetch_factor, "multiprocessing_context": context}
        if args.device.type == "cuda":
            found |= {"device": args.device, "pin_memory": args.dataloader_pin_memory}
        return found


class _EvaluationSteps:
    """The steps of an evaluation without the rows that fill them up, and what gathers results of all ranks.

    Args:
      loader: on several ranks, its steps are pairs of a batch and a mask.
      accelerator: of the Trainer.

    Attributes:
      dataset: that of the loader, whose length is the number of records.
      records: how many there were, on all ranks together.
      loss_is_next: what is gathered next is the loss of this step, and not what belongs to single rows.
    """

    def __init__(self, loader: Loader, accelerator: Any) -> None:
        self._masked = loader.view.tail == "pad"
        if accelerator.num_processes > 1 and not self._masked:
            raise InvalidArgumentError(
                f"TrainerFeed: {accelerator.num_processes} ranks share this evaluation, and its loader has "
                f"tail={loader.view.tail!r}; results can be gathered from steps of equal shapes: Loader(dataset, tail='pad')"
            )
        self.dataset, self.records, self.loss_is_next = loader.dataset, 0, False
        self._loader, self._accelerator = loader, accelerator
        self._rows = self._full = 0  # of this step: those of data, and with those that fill it up
        self._real = torch.ones(0, dtype=torch.bool)  # which rows of all ranks are data

    def __len__(self) -> int:
        return len(self._loader)

    def __iter__(self) -> Iterator[Any]:
        for step in self._loader:
            batch, mask = step if self._masked else (step, None)
            if mask is None:
                mask = torch.ones(len(tree_flatten(batch, is_leaf=_is_column)[0][0]), dtype=torch.bool)
            self._rows, self._full = int(mask.sum()), len(mask)
            self._real = self._accelerator.gather(mask.to(self._accelerator.device))
            self.records += int(self._real.sum())
            kept = max(self._rows, 1) if self._masked else self._rows
            if kept != self._full:
                batch = tree_map(lambda value, kept=kept: _first(value, kept), batch, is_leaf=_is_column)
            yield batch

    def gather(self, value: Any) -> Any:
        """The rows of all ranks that are data: every record once, in the order of the dataset."""
        if self.loss_is_next:
            self.loss_is_next = False
            value = value[:1].repeat(max(self._rows, 1))  # the Trainer has repeated it as its arguments say
        leaves, structure = tree_flatten(value)
        made = [self._gathered(leaf) if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        return tree_unflatten(made, structure)

    def _gathered(self, tensor: Any) -> Any:
        if not tensor.dim() or len(tensor) != max(self._rows, 1):
            return self._accelerator.gather(tensor)  # it does not belong to single rows
        if self._full > self._rows:
            filling = tensor.new_zeros((self._full - self._rows, *tensor.shape[1:]))
            tensor = torch.cat([tensor[: self._rows], filling])
        return self._accelerator.gather(tensor.contiguous())[self._real]


def _is_column(value: Any) -> bool:
    """Whether it is one text for each row, which is a list that PyTorch would look into."""
    return isinstance(value, list)


def _first(value: Any, count: int) -> Any:
    """The first rows of a component of a batch."""
    if isinstance(value, torch.Tensor) and value.is_nested:
        offsets = value.offsets()[: count + 1]
        return torch.nested.nested_tensor_from_jagged(value.values()[: int(offsets[-1])], offsets)
    return value[:count]


def _epochs() -> Any:
    """A callback that tells a loader the epoch, and the user where a resumed run is not in the right one.

    The loader of Accelerate, in which a resumed run skips steps, does not tell its epoch.
    """
    from transformers import TrainerCallback

    class Epochs(TrainerCallback):  # type: ignore[misc]
        def on_train_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            loader = others.get("train_dataloader")
            unknown = isinstance(loader, Loader) and loader.view.num_steps == UNKNOWN
            if unknown and state.global_step and not args.ignore_data_skip:
                warnings.warn(
                    "TrainerFeed: the number of steps of a pass is not known, so the Trainer, which goes on behind step "
                    f"{state.global_step}, takes all steps before for those of the first pass; where that is shorter, "
                    "records are repeated or left out: let repeat() make one pass of all, or declare how many records there "
                    "are with assert_cardinality",
                    InputWarning,
                    stacklevel=2,
                )

        def on_epoch_begin(self, args: Any, state: Any, control: Any, **others: Any) -> None:
            loader = others.get("train_dataloader")
            if isinstance(loader, Loader):
                loader.set_epoch(int(state.epoch))

    return Epochs()
