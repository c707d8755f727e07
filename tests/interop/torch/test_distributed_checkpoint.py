# SPDX-License-Identifier: Apache-2.0
"""A loader in a checkpoint of `torch.distributed`, as torchtitan saves it: the class is that of docs/feeds/pytorch.md."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

import distinput as di
from tests.docs.pages import snippets

PAGE = Path(__file__).parents[3] / "docs" / "feeds" / "pytorch.md"
DATASET = di.data.Dataset.range(20).shuffle(20, seed=1).batch(6)


def of_the_page(*classes: str) -> Any:
    """The last of these classes of the page, which may need those before it."""
    names: dict[str, Any] = {"__name__": __name__}
    for name in classes:
        (found,) = [s for s in snippets(PAGE.read_text(encoding="utf-8")) if f"class {name}" in s.code]
        exec(found.code, names)
    return names[classes[-1]]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("taken", range(5))
def test_another_number_of_data_ranks_goes_on(taken: int, tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp  # takes half a second, in each process that collects tests
    from torch.distributed.checkpoint.stateful import Stateful

    kind = of_the_page("SavedLoader")
    whole = [batch.tolist() for number in range(2) for batch in DATASET.iter_pass(number)]
    loader = kind(DATASET, rank=1, world_size=2)
    assert isinstance(loader, Stateful)
    steps = iter(loader)
    for _ in range(taken):
        if next(steps, None) is None:
            next(iter(loader))
    dcp.save({"dataloader": loader}, checkpoint_id=tmp_path, no_dist=True)
    three = [kind(DATASET, rank=rank, world_size=3, tail="partial") for rank in range(3)]
    next(iter(three[0]))  # a loader that has begun loads it too
    for loader in three:
        dcp.load({"dataloader": loader}, checkpoint_id=tmp_path, no_dist=True)
    rest = [torch.cat(parts).tolist() for parts in zip(*three, strict=True)]
    assert rest == (whole[taken:4] if taken < 4 else whole[taken:])
    assert {loader.epoch for loader in three} == {1 if taken < 4 else 2}


def test_validation_on_all_data_ends_on_all_ranks_at_once() -> None:
    """However many ranks there are, also where a batch has fewer rows than there are ranks."""
    for ranks in (1, 2, 3, 7):
        loaders = [di.interop.torch.Loader(DATASET, rank, ranks, tail="pad") for rank in range(ranks)]
        steps = [list(loader) for loader in loaders]
        assert {len(each) for each in steps} == {4}
        assert sorted(x for each in steps for batch, mask in each for x in batch[mask].tolist()) == list(range(20))


@pytest.mark.needs("torchtitan")
@pytest.mark.filterwarnings("ignore")
def test_torchtitan_makes_loaders_of_its_configuration(tmp_path: Path) -> None:
    from torchtitan.components.dataloader import BaseDataLoader

    config = of_the_page("SavedLoader", "TitanLoader").Config()

    def built(config: Any, ranks: int, rows: int) -> list[Any]:
        runtime = {"tokenizer": None, "seq_len": 8, "snapshot_every_n_steps": 10}  # what torchtitan gives beside
        return [
            config.build(dp_world_size=ranks, dp_rank=rank, local_batch_size=rows, **runtime) for rank in range(ranks)
        ]

    def labels(steps: Any) -> list[int]:
        return [label for _, found in steps for label in found.tolist()]

    two, three = built(config, 2, 3), built(config, 3, 2)
    assert all(isinstance(loader, BaseDataLoader) for loader in two)
    iterators = [iter(loader) for loader in two]
    begun = [labels(map(next, iterators)) for _ in range(5)]  # over the end of the 22 rows
    assert begun[3] == [19, 20, 21, 22, 1, 2]
    import torch.distributed.checkpoint as dcp

    dcp.save({"dataloader": two[0]}, checkpoint_id=tmp_path, no_dist=True)
    for loader in three:
        dcp.load({"dataloader": loader}, checkpoint_id=tmp_path, no_dist=True)
    assert labels(next(iter(loader)) for loader in three) == labels(map(next, iterators))
    # A validation on all data ends on all ranks, and has every row once.
    found = [list(loader) for loader in built(replace(config, infinite=False), 3, 2)]
    assert {len(steps) for steps in found} == {4}
    assert sorted(label for steps in found for label in labels(steps)) == list(range(1, 23))
