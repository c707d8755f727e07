# SPDX-License-Identifier: Apache-2.0
"""The position of a `Loader` in checkpoints of Lightning, on the CPU; several ranks are in test_recipes.py."""

import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

import distinput as di
from distinput.interop.torch import Loader


@pytest.mark.needs("lightning")
@pytest.mark.filterwarnings("ignore")  # those of Lightning itself
@pytest.mark.parametrize(
    "passes, workers",
    [
        (di.data.Dataset.range(7).shuffle(7, seed=2).repeat().batch(3), 0),
        (di.data.Dataset.range(9).filter(lambda x: x != 4).shuffle(9, seed=2).batch(3), 0),
        (di.data.Dataset.range(7).shuffle(7, seed=2).repeat().batch(3), 1),
    ],
    ids=["endless", "unknown", "endless, one worker"],
)
def test_a_step_that_lightning_takes_ahead_is_in_no_state(tmp_path: Path, passes: Any, workers: int) -> None:
    import lightning  # takes seconds, in each process that collects tests
    from lightning.pytorch.callbacks import ModelCheckpoint

    def fitted(checkpoint: Path | None = None) -> list[list[int]]:
        seen: list[list[int]] = []

        class Model(lightning.LightningModule):
            def __init__(self) -> None:
                super().__init__()
                self.layer = torch.nn.Linear(1, 1)

            def training_step(self, batch: Any, _: int) -> Any:
                seen.append(batch.tolist())
                return self.layer(batch[:, None].float()).sum()

            def configure_optimizers(self) -> Any:
                return torch.optim.SGD(self.parameters(), lr=1e-6)

        saves = ModelCheckpoint(tmp_path, filename="{step}", every_n_train_steps=1, save_top_k=-1)
        trainer = lightning.Trainer(
            max_steps=7,
            accelerator="cpu",
            devices=1,
            logger=False,
            callbacks=[saves],
            enable_progress_bar=False,
            enable_model_summary=False,
        )
        trainer.fit(Model(), Loader(passes, num_workers=workers), ckpt_path=checkpoint)
        return seen

    whole = fitted()
    assert len(whole) == 7
    for taken in (1, 3, 5):
        assert fitted(tmp_path / f"step={taken}.ckpt") == whole[taken:]


def test_a_loader_whose_pass_has_begun_is_pickled() -> None:
    loader = Loader(di.data.Dataset.range(6).batch(2))
    next(iter(loader))
    assert [step.tolist() for step in pickle.loads(pickle.dumps(loader))] == [[0, 1], [2, 3], [4, 5]]
