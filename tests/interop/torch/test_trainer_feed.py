# SPDX-License-Identifier: Apache-2.0
"""The Trainer of Hugging Face over datasets of this library, on the CPU; several ranks are in test_recipes.py."""

import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import distinput as di
from distinput.errors import InputWarning, InvalidArgumentError
from distinput.interop.torch import Loader, TrainerFeed
from distinput.interop.torch.trainer_feed import _EvaluationSteps

pytestmark = pytest.mark.needs("transformers", "accelerate")
X = np.arange(21, dtype=np.float32)
RECORDS = di.data.Dataset.from_tensor_slices({"x": X, "labels": 3 * X})
LOSS, ERROR = float(((X - 0.5) ** 2).mean()), float(np.abs(X - 0.5).mean())


class Model(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight, self.bias = torch.nn.Parameter(torch.tensor(2.0)), torch.nn.Parameter(torch.tensor(0.5))
        self.seen: list[list[float]] = []

    def forward(self, x: Any, labels: Any) -> Any:
        if self.training:
            self.seen.append(x.tolist())
        made = self.weight * x + self.bias
        return {"loss": (made - labels).square().mean(), "logits": made}


@cache
def fed_trainer() -> Any:
    from transformers import Trainer  # takes a second, in each process that collects tests

    return type("Fed", (TrainerFeed, Trainer), {})


def metrics(found: Any) -> dict[str, float]:
    return {"error": float(np.abs(found.predictions - found.label_ids).mean()), "records": len(found.label_ids)}


def fed(folder: Path, train: Any = None, evaluated: Any = None, kind: Any = None, **options: Any) -> Any:
    from transformers import TrainingArguments

    quiet = {"report_to": [], "use_cpu": True, "disable_tqdm": True, "logging_strategy": "no", "save_strategy": "no"}
    arguments = TrainingArguments(str(folder), **{**quiet, "num_train_epochs": 2, **options})
    return (kind or fed_trainer())(
        Model(), arguments, train_dataset=train, eval_dataset=evaluated, compute_metrics=metrics
    )


def records_in(found: Any, name: str) -> Any:
    """The records that a speed stands for; the Trainer rounds times to tenths of milliseconds."""
    seconds = found[f"{name}_runtime"]
    return pytest.approx(found[f"{name}_samples_per_second"] * seconds, rel=0.01 + 1e-4 / seconds)


@pytest.mark.parametrize("batch, known", [(4, True), (5, True), (40, True), (4, False)])
def test_an_evaluation_is_of_every_record_once(batch: int, known: bool, tmp_path: Path) -> None:
    dataset = RECORDS.batch(batch) if known else RECORDS.filter(lambda row: row["x"] >= 0).batch(batch)
    trainer = fed(tmp_path, evaluated={"a": dataset, "b": RECORDS.take(3).batch(2)})
    found = trainer.evaluate()
    assert found["eval_a_loss"] == pytest.approx(LOSS)
    assert found["eval_a_error"] == pytest.approx(ERROR)
    assert (found["eval_a_records"], found["eval_b_records"]) == (21, 3)
    assert records_in(found, "eval_a") == 21
    predicted = trainer.predict(dataset)
    assert predicted.label_ids.tolist() == (3 * X).tolist()
    assert predicted.predictions.tolist() == (2 * X + 0.5).tolist()
    assert predicted.metrics["test_loss"] == pytest.approx(LOSS)


def test_a_prediction_step_of_a_subclass_is_called(tmp_path: Path) -> None:
    class Own(fed_trainer()):  # type: ignore[misc]
        def prediction_step(self, model: Any, inputs: Any, *args: Any, **options: Any) -> Any:
            with torch.no_grad():
                made = model(**inputs)
            return made["loss"] + 1, made["logits"], inputs["labels"]

    trainer = fed(tmp_path, evaluated=RECORDS.batch(4), kind=Own)
    for _ in range(2):
        assert trainer.evaluate()["eval_loss"] == pytest.approx(LOSS + 1)
    assert "prediction_step" not in vars(trainer)


def test_training_counts_records_and_numbers_its_epochs(tmp_path: Path) -> None:
    dataset = RECORDS.shuffle(21, seed=1).batch(4)
    steps = [step["x"].tolist() for epoch in range(3) for step in dataset.iter_pass(epoch)]
    trainer = fed(tmp_path, dataset, num_train_epochs=3, save_strategy="steps", save_steps=4)
    found = trainer.train().metrics
    assert trainer.model.seen == steps
    assert records_in(found, "train") == 63
    for taken in (4, 8, 12):  # 6 steps an epoch
        again = fed(tmp_path, dataset, num_train_epochs=3)
        again.train(resume_from_checkpoint=str(tmp_path / f"checkpoint-{taken}"))
        assert again.model.seen == steps[taken:]
    found = fed(tmp_path, dataset, max_steps=5, gradient_accumulation_steps=1).train().metrics
    assert records_in(found, "train") == 20
    dropped = fed(tmp_path, dataset, dataloader_drop_last=True)
    dropped.train()
    assert len(dropped.model.seen) == 10


def test_a_resumed_run_over_passes_of_unknown_length_is_told_of(tmp_path: Path) -> None:
    some = RECORDS.filter(lambda row: row["x"] % 2 == 0)  # 11 records, 3 steps a pass
    passes, endless = (some.shuffle(21, seed=1).batch(4), some.shuffle(21, seed=1).repeat().batch(4))
    counted = some.apply(di.data.experimental.assert_cardinality(11)).shuffle(21, seed=1).batch(4)
    for name, dataset, warns in (("passes", passes, 1), ("endless", endless, 0), ("counted", counted, 0)):
        options: Any = {"max_steps": 7, "save_strategy": "steps", "save_steps": 5}
        whole = fed(tmp_path / name, dataset, **options)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always", InputWarning)
            whole.train()
            again = fed(tmp_path / name, dataset, max_steps=7)
            again.train(resume_from_checkpoint=str(tmp_path / name / "checkpoint-5"))
        shown = [str(each.message) for each in told if each.category is InputWarning]
        assert len(shown) == warns
        assert all(
            "goes on behind step 5, takes all steps before for those of the first pass" in text for text in shown
        )
        assert warns or again.model.seen == whole.model.seen[5:]


def test_other_datasets_are_read_as_before(tmp_path: Path) -> None:
    others = [{"x": torch.tensor(x), "labels": torch.tensor(3 * x)} for x in X]
    trainer = fed(tmp_path, others, others, per_device_train_batch_size=7)
    assert not any(
        isinstance(loader, Loader)
        for loader in (
            trainer.get_train_dataloader(),
            trainer.get_eval_dataloader(),
            trainer.get_test_dataloader(others),
        )
    )
    assert trainer.evaluate()["eval_records"] == 21
    trainer.train()
    assert [len(step) for step in trainer.model.seen] == [7] * 6


class Ranks:
    """Accelerate's `gather` of two ranks, the other of which has what is given."""

    num_processes, device = 2, torch.device("cpu")

    def __init__(self, others: list[Any]) -> None:
        self.others = others

    def gather(self, tensor: Any) -> Any:
        other = torch.as_tensor(self.others.pop(0))
        assert other.shape == tensor.shape
        return torch.cat([other.to(tensor.dtype), tensor])


def test_a_rank_without_rows_runs_a_row_of_zeros_that_counts_for_nothing() -> None:
    loader = Loader(RECORDS.take(5).batch(4), 1, 2, tail="pad")
    ranks = Ranks([[True, True], [8.0, 8.0], [[0.0], [1.0]], [True, False], [7.0, 0.0], [[4.0], [0.0]]])
    steps = _EvaluationSteps(loader, ranks)
    found = []
    for batch in steps:
        steps.loss_is_next = True
        losses = steps.gather(torch.tensor(2.0).repeat(8))
        found.append((batch["x"].tolist(), losses.tolist(), steps.gather(batch["x"][:, None]).flatten().tolist()))
    assert found == [([2.0, 3.0], [8.0, 8.0, 2.0, 2.0], [0.0, 1.0, 2.0, 3.0]), ([0.0], [7.0], [4.0])]
    assert steps.records == 5


def test_jagged_rows_that_fill_up_are_left_out() -> None:
    ragged = di.RaggedTensor.from_row_splits(np.arange(6), [0, 1, 3, 6])
    loader = Loader(di.data.Dataset.from_tensor_slices({"r": ragged}).batch(4), 0, 1, tail="pad")
    (batch,) = _EvaluationSteps(
        loader, type("One", (), {"num_processes": 1, "device": "cpu", "gather": lambda _, x: x})()
    )
    assert [row.tolist() for row in batch["r"].unbind()] == [[0], [1, 2], [3, 4, 5]]


def test_texts_are_rows_and_not_letters() -> None:
    texts = di.data.Dataset.from_tensor_slices({"text": ["eleven chrs", "b", "c"], "x": [1.0, 2.0, 3.0]})
    ranks = type("One", (), {"num_processes": 1, "device": "cpu", "gather": lambda _, value: value})()
    steps = _EvaluationSteps(Loader(texts.as_text().batch(2), 0, 1, tail="partial"), ranks)
    assert [batch["text"] for batch in steps] == [["eleven chrs", "b"], ["c"]]
    assert steps.records == 3


def test_what_cannot_be_exact_is_refused(tmp_path: Path) -> None:
    trainer = fed(tmp_path, evaluated=RECORDS.batch(4))
    trainer.args.batch_eval_metrics = True
    with pytest.raises(InvalidArgumentError, match="TrainerFeed: batch_eval_metrics needs to know the last batch"):
        trainer.evaluate()
    with pytest.raises(InvalidArgumentError, match=r"TrainerFeed: 2 ranks share .* tail=None; .*tail='pad'"):
        _EvaluationSteps(Loader(RECORDS.batch(4), 0, 2), Ranks([]))


def test_the_feed_comes_first() -> None:
    with pytest.raises(
        TypeError, match=r"Late: TrainerFeed must come first, or \w+ reads the datasets itself: class Late\(Tr"
    ):
        type("Late", (fed_trainer().__mro__[2], TrainerFeed), {})


class Logs:
    """Adds to a trainer, and stands before it."""

    def get_train_dataloader(self) -> Any:
        return ["logged", super().get_train_dataloader()]  # type: ignore[misc]


def test_a_class_that_adds_to_a_trainer_stands_before_the_feed() -> None:
    trainer = fed_trainer().__mro__[2]
    both: dict[str, Any] = {"get_train_dataloader": lambda self: [], "train": lambda self: []}
    assert type("Logged", (Logs, TrainerFeed, trainer), {}).__mro__[1] is Logs
    assert type("Own", (TrainerFeed, trainer), both).__mro__[1] is TrainerFeed
