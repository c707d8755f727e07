# SPDX-License-Identifier: Apache-2.0
"""The laws of resuming that torchdata and Hugging Face hold their own loaders to, restated for ours.

torchdata: a state after any number of steps, also none and all, in any epoch, with any number of workers and any distance of
snapshots, gives the rest of that epoch and whole epochs after it. Hugging Face: a stream goes on behind the row of the state.
"""

import json
from typing import Any

import pytest

import distinput as di

torch_data = pytest.importorskip("torchdata.stateful_dataloader", reason="left out: torchdata is not installed")
datasets = pytest.importorskip("datasets", reason="left out: datasets is not installed")
torch_feed = di.interop.torch
pytestmark = pytest.mark.filterwarnings("ignore:'set_vital' is deprecated")
ROWS, SIZE = 14, 4
DATASET = di.data.Dataset.range(ROWS).shuffle(ROWS, seed=1).batch(SIZE)
EPOCHS = [[batch.tolist() for batch in DATASET.iter_pass(epoch)] for epoch in range(3)]


def stateful(workers: int, every: int) -> Any:
    return torch_data.StatefulDataLoader(
        torch_feed.IterableView(DATASET, 0, 1), batch_size=None, num_workers=workers, snapshot_every_n_steps=every
    )


def of(steps: Any) -> list[list[int]]:
    return [step.tolist() for step in steps]


@pytest.mark.parametrize("every", [1, 2, 5])
@pytest.mark.parametrize("epoch", [0, 1])
def test_torchdata_resumes_after_every_step_at_every_distance_of_snapshots(every: int, epoch: int) -> None:
    for taken in range(1, len(EPOCHS[0])):
        loader = stateful(0, every)
        for _ in range(epoch):
            list(loader)
        steps = iter(loader)
        assert [next(steps).tolist() for _ in range(taken)] == EPOCHS[epoch][:taken]
        state = json.loads(json.dumps(loader.state_dict()))
        again = stateful(0, every)
        again.load_state_dict(state)
        assert of(again) == EPOCHS[epoch][taken:]
        assert of(again) == EPOCHS[epoch + 1], "the epoch after it is whole"


@pytest.mark.parametrize("every", [1, 3])
def test_torchdata_resumes_with_workers(every: int) -> None:
    loader = stateful(2, every)
    steps = iter(loader)
    taken = [next(steps).tolist() for _ in range(2)]
    state = json.loads(json.dumps(loader.state_dict()))
    del steps
    again = stateful(2, every)
    again.load_state_dict(state)
    assert taken + of(again) == EPOCHS[0]
    view = torch_feed.IterableView(DATASET, 0, 1)
    view.load_state_dict(state)
    assert taken + of(view) == EPOCHS[0]


def test_torchdata_a_state_is_not_changed_by_what_follows() -> None:
    loader = stateful(0, 1)
    steps = iter(loader)
    next(steps)
    state = loader.state_dict()
    text = json.dumps(state)
    list(steps)
    assert json.dumps(state) == text


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s,
        lambda s: s.map(lambda row: {"x": row["x"] + 1}),
        lambda s: s.filter(lambda row: row["x"] % 2),
        lambda s: s.batch(3),
        lambda s: s.take(9).skip(2),
        lambda s: s.shuffle(seed=3, buffer_size=4),
    ],
    ids=["plain", "map", "filter", "batch", "take, skip", "shuffle"],
)
def test_hugging_face_resumes_behind_every_row(change: Any) -> None:
    stream = change(datasets.Dataset.from_dict({"x": list(range(12))}).to_iterable_dataset(num_shards=3))
    given = di.interop.huggingface.from_hf(stream)
    whole = [str(row) for row in given]
    assert [str(row["x"]) for row in stream] == [str(row["x"].tolist()) for row in given]
    for taken in range(len(whole) + 1):
        with iter(given) as rows:
            first = [str(next(rows)) for _ in range(taken)]
            state = rows.state()
        assert first + [str(row) for row in given.restore(state)] == whole
