# SPDX-License-Identifier: Apache-2.0
"""Steps with fewer rows than the global batch, for every tail, number of ranks and way of counting."""

import json
import warnings
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InputWarning, InvalidArgumentError
from distinput.interop.rank_steps import TAILS, RankPosition, RankSteps, ShortSteps, rows_of

Dataset = di.data.Dataset


def counted(n: int, size: int) -> Any:
    return Dataset.range(n).shuffle(n, seed=1).batch(size)


def uncounted(n: int, size: int) -> Any:
    return Dataset.range(n).filter(lambda x: x >= 0).batch(size)


MAKERS = {
    "counted": counted,
    "uncounted": uncounted,
    "prefetched": lambda n, size: counted(n, size).prefetch(2),
    "mapped": lambda n, size: counted(n, size).map(hidden),
}


def hidden(batch: Any) -> Any:
    """A function of whole batches, which may change their sizes for all that is known."""
    return batch + 0


class Finished:
    """Steps as a feed delivers them."""

    def __init__(self, steps: RankSteps) -> None:
        self._steps = steps

    def begin(self, position: RankPosition) -> Any:
        """The steps of a pass."""
        return map(self._steps.finish, self._steps.begin(position))


def plain(dataset: Any, rank: int, ranks: int, tail: str | None, size: int | None = None, **more: Any) -> RankSteps:
    return RankSteps(dataset, rank, ranks, "test", ShortSteps.of(tail, dataset.node, "test", size), **more)


def steps(*given: Any, **more: Any) -> Finished:
    return Finished(plain(*given, **more))


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("n, size, ranks", [(7, 3, 2), (9, 4, 4), (6, 3, 2), (5, 2, 3), (1, 4, 2), (7, 3, 1)])
def test_pad_gives_all_ranks_the_same_rows_and_a_mask(maker: str, n: int, size: int, ranks: int) -> None:
    dataset = MAKERS[maker](n, size)
    per_rank = [list(steps(dataset, rank, ranks, "pad", size).begin(RankPosition(0))) for rank in range(ranks)]
    assert len({len(each) for each in per_rank}) == 1
    for whole, parts in zip(dataset, zip(*per_rank, strict=True), strict=True):
        assert {(part.shape, mask.shape) for part, mask in parts} == {((-(-size // ranks),), (-(-size // ranks),))}
        assert [row for part, mask in parts for row in part[mask].tolist()] == whole.tolist()
        assert not any(part[~mask].any() for part, mask in parts)


@pytest.mark.parametrize("maker", ["counted", "uncounted", "prefetched"])
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_drop_leaves_short_steps_out_on_all_ranks(maker: str, ranks: int) -> None:
    dataset = MAKERS[maker](10, 4)
    per_rank = [list(steps(dataset, rank, ranks, "drop").begin(RankPosition(0))) for rank in range(ranks)]
    joined = [np.concatenate(parts).tolist() for parts in zip(*per_rank, strict=True)]
    assert joined == [batch.tolist() for batch in dataset][:2]


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_error_raises_on_all_ranks_at_the_same_step(maker: str, ranks: int) -> None:
    for rank in range(ranks):
        seen: list[Any] = []
        with pytest.raises(InvalidArgumentError, match="tail='error': every batch must have 4 rows, and one has 2"):
            seen.extend(steps(MAKERS[maker](10, 4), rank, ranks, "error", 4).begin(RankPosition(0)))
        assert len(seen) in (0, 2)  # found when it is made, where sizes are known
        assert len(list(steps(MAKERS[maker](8, 4), rank, ranks, "error", 4).begin(RankPosition(0)))) == 2


@pytest.mark.parametrize("maker", MAKERS)
@pytest.mark.parametrize("tail, expected", [(None, [1, 1]), ("partial", []), ("pad", []), ("error", [])])
def test_a_rank_without_rows_is_told_of_unless_the_tail_is_chosen(
    maker: str, tail: str | None, expected: list[int]
) -> None:
    told: list[int] = []
    size = None if tail in (None, "partial") else 3
    for rank in range(2):
        mine = steps(
            MAKERS[maker](7 - (tail == "error"), 3), rank, 2, tail, size, empty=lambda rank=rank: told.append(rank)
        )
        for _ in range(2):
            list(mine.begin(RankPosition(0)))
    assert told == expected


@pytest.mark.parametrize("tail", TAILS)
def test_states_of_every_tail_restore_on_other_ranks(tail: str) -> None:
    for n in (8, 10) if tail != "error" else (8,):
        dataset = uncounted(n, 4)
        begun = plain(dataset, 0, 2, tail).begin(RankPosition(0))
        next(begun)
        state = json.loads(json.dumps(begun.position().to_json()))
        again = [list(steps(dataset, rank, 3, tail).begin(RankPosition.of(state, "test"))) for rank in range(3)]
        whole = list(steps(dataset, 0, 1, tail).begin(RankPosition(0)))[1:]
        assert [len(each) for each in again] == [len(whole)] * 3


def test_nests_text_and_ragged_rows_are_filled_up() -> None:
    rows = {"t": ["a", "b", "c"], "n": np.ones((3, 2))}
    parts = list(steps(Dataset.from_tensor_slices(rows).batch(2), 1, 2, "pad").begin(RankPosition(0)))
    assert [(part["t"].tolist(), part["n"].shape, mask.tolist()) for part, mask in parts] == [
        ([b"b"], (1, 2), [True]),
        ([b""], (1, 2), [False]),
    ]
    ragged = (
        Dataset.range(3).map(lambda n: np.arange(n), output_signature=di.TensorSpec([None], "int64")).ragged_batch(2)
    )
    (first, mask), (second, none) = steps(ragged, 1, 2, "pad").begin(RankPosition(0))
    assert (first.to_list(), mask.tolist(), second.to_list(), none.tolist()) == ([[0]], [True], [[]], [False])


@pytest.mark.parametrize(
    "make, tail, message",
    [
        (lambda: counted(4, 2), "cut", "test: tail must be one of drop, error, pad, partial, got 'cut'"),
        (lambda: Dataset.range(4), "pad", "test: tail='pad' is about the rows of batches.*no batch axis"),
        (
            lambda: counted(4, 2).map(lambda x: x[x > 1], output_signature=di.TensorSpec([None], "int64")),
            "drop",
            "test: tail='drop' needs to know the rows of a full batch",
        ),
    ],
)
def test_what_is_refused(make: Any, tail: str, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        ShortSteps.of(tail, make().node, "test")


def test_rows_are_counted_in_any_nest() -> None:
    assert rows_of(Dataset.range(3).batch(2).node.spec)(np.zeros(2)) == 2
    nest = Dataset.from_tensor_slices({"a": np.zeros((3, 2)), "b": (np.zeros(3),)}).batch(2)
    assert rows_of(nest.node.spec)(nest.to_list()[0] and next(iter(nest))) == 2


@pytest.mark.needs("torch")
def test_views_and_loaders_warn_once_and_pad() -> None:
    torch_feed = pytest.importorskip("distinput.interop.torch", reason="torch is not installed")
    loader = torch_feed.Loader(counted(7, 3), 1, 2)
    with pytest.warns(InputWarning, match=r"rank 1 of 2 has no rows in this step.*tail='pad'") as seen:
        sizes = [len(step) for _ in range(2) for step in loader]
    assert (sizes, len(seen)) == ([1, 1, 0] * 2, 1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert [len(step) for step in torch_feed.Loader(counted(7, 3), 1, 2, tail="partial")] == [1, 1, 0]
        padded = torch_feed.Loader(counted(7, 3), 1, 2, tail="pad")
        assert [(step.shape, mask.tolist()) for step, mask in padded] == [((2,), [True, False])] * 2 + [
            ((2,), [False, False])
        ]
        dropped = torch_feed.Loader(counted(7, 3), 1, 2, tail="drop")
        assert (len(dropped), len(list(dropped))) == (2, 2)
