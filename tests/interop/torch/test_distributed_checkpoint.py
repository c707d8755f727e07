# SPDX-License-Identifier: Apache-2.0
"""A loader in a checkpoint of `torch.distributed`, as torchtitan saves it: the class is that of docs/feeds/pytorch.md."""

from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch", reason="torch is not installed")

import torch

import distinput as di
from tests.docs.pages import snippets

PAGE = Path(__file__).parents[3] / "docs" / "feeds" / "pytorch.md"
DATASET = di.data.Dataset.range(20).shuffle(20, seed=1).batch(6)


def saved_loader() -> Any:
    """The class of the page."""
    (found,) = [s for s in snippets(PAGE.read_text(encoding="utf-8")) if "class SavedLoader" in s.code]
    names: dict[str, Any] = {}
    exec(found.code, names)
    return names["SavedLoader"]


@pytest.mark.filterwarnings("ignore:torch.distributed is disabled")
@pytest.mark.parametrize("taken", range(5))
def test_another_number_of_data_ranks_goes_on(taken: int, tmp_path: Path) -> None:
    import torch.distributed.checkpoint as dcp  # takes half a second, in each process that collects tests
    from torch.distributed.checkpoint.stateful import Stateful

    kind, whole = saved_loader(), [batch.tolist() for number in range(2) for batch in DATASET.iter_pass(number)]
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
