# SPDX-License-Identifier: Apache-2.0
"""What Lightning, Accelerate and the Trainer of Hugging Face expect of a loader; docs/conventions.md lists the lines."""

from pathlib import Path
from typing import Any

import pytest

import distinput as di
from tests.docs.pages import snippets

torch = pytest.importorskip("torch")

ROOT = Path(__file__).parents[2]
BATCHES = di.data.Dataset.range(10).shuffle(10, seed=1).batch(3)


def recipe(word: str) -> str:
    """The program of docs/feeds/pytorch.md that uses a package; tests/interop/torch/test_recipes.py runs all of them."""
    page = (ROOT / "docs" / "feeds" / "pytorch.md").read_text(encoding="utf-8")
    found = [snippet.code for snippet in snippets(page) if word in snippet.code]
    assert found, f"no recipe with {word}"
    return found[0]


def test_a_loader_has_states_set_epoch_and_len_and_no_sampler_to_be_replaced() -> None:
    loader = di.interop.torch.Loader(BATCHES, rank=0, world_size=1)
    for name in ("state_dict", "load_state_dict", "set_epoch"):
        assert callable(getattr(loader, name))
    assert len(loader) == 4
    # Lightning and Accelerate put a DistributedSampler in the place of the sampler of a map-style dataset.
    assert isinstance(loader.dataset, torch.utils.data.IterableDataset)
    assert loader.batch_sampler is None
    assert type(loader.sampler).__name__ == "_InfiniteConstantSampler"


@pytest.mark.filterwarnings("ignore")
def test_lightning_has_a_recipe_and_its_combined_loader_works() -> None:
    assert "lightning" in recipe("lightning")
    pytest.importorskip("lightning")
    from lightning.pytorch.utilities.combined_loader import CombinedLoader

    loaders = {name: di.interop.torch.Loader(BATCHES, rank=0, world_size=1) for name in "ab"}
    combined = CombinedLoader(loaders, mode="min_size")
    steps = list(combined)
    assert len(steps) == len(combined) == 4
    assert all(torch.equal(step["a"], step["b"]) for step, _, _ in steps)


def test_accelerate_has_a_recipe_and_does_not_shard_again() -> None:
    assert "prepare" in recipe("Accelerator")
    assert di.interop.torch.Loader._is_accelerate_prepared is True  # what `prepare` leaves as it is


def test_the_trainer_has_a_recipe() -> None:
    assert "Trainer" in recipe("transformers")


def test_rows_go_to_hugging_face_and_back() -> None:
    datasets = pytest.importorskip("datasets")
    given = datasets.Dataset.from_dict({"x": [1, 2, 3], "text": ["a", "b", "c"]})
    taken = di.interop.huggingface.from_hf(given)
    assert [int(row["x"]) for row in taken] == [1, 2, 3]
    back = di.interop.huggingface.to_hf(taken)
    assert back.column_names == ["x", "text"]
    assert back.features["x"].dtype == "int64"
    stream: Any = given.to_iterable_dataset(num_shards=3)
    assert sorted(int(row["x"]) for row in di.interop.huggingface.from_hf(stream)) == [1, 2, 3]
    assert stream.num_shards == 3
    assert [row["x"].tolist() for row in back.with_format("numpy")] == [1, 2, 3]
