# SPDX-License-Identifier: Apache-2.0
"""Ops that somebody else wrote are sharded, counted, rewritten and explained by what they say of themselves."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import NotFoundError
from distinput.plan.node import Node
from distinput.rewrite.rules import rewrite
from distinput.testing import check_dataset
from distinput.testing.laws import check_policy
from tests.distribute.workers import by_step, on_workers, rows_of, with_policy
from tests.sharding.ops_of_others import STRETCHES, Backwards, Halves, Packed, Squares, Sums, Tripled

POLICY = di.data.experimental.AutoShardPolicy

MAKERS: dict[str, tuple[Callable[[], Node], list[int]]] = {
    "source": (lambda: Squares(9), [n * n for n in range(9)]),
    "source that is not counted": (lambda: Squares(9, False), [n * n for n in range(9)]),
    "one for one": (lambda: Tripled(di.data.Dataset.range(9).node), [3 * n for n in range(9)]),
    "one for one over a source": (lambda: Tripled(Squares(9)), [3 * n * n for n in range(9)]),
    "each": (lambda: Halves(di.data.Dataset.range(7).node), [m for n in range(7) for m in (n // 2, n - n // 2)]),
    "by position": (lambda: Backwards(di.data.Dataset.range(9).node), list(range(9))[::-1]),
    "silent": (lambda: Sums(di.data.Dataset.range(9).node), [0, 1, 3, 6, 10, 15, 21, 28, 36]),
}


@pytest.mark.parametrize("name", MAKERS)
def test_it_keeps_all_laws(name: str) -> None:
    make, elements = MAKERS[name]
    checked = check_dataset(lambda: Dataset(make()), elements, policies=("DATA",))
    assert {"restart", "rewrites", "policies", "distributed"} <= set(checked)


@pytest.mark.parametrize("name", MAKERS)
def test_it_is_explained_and_measured(name: str) -> None:
    make, elements = MAKERS[name]
    dataset = Dataset(make()).batch(3)
    plan = di.data.experimental.shard_plan(dataset, 2)
    assert (plan.policy, plan.asked, plan.reason) == ("DATA", "AUTO", "not_files")
    assert make().op in dataset.explain(num_workers=2)
    with iter(dataset) as iterator:
        assert sum(len(batch) for batch in iterator) == len(elements)
        (measured,) = [counts for step, counts in iterator.stats().items() if make().op in step]
        assert measured["rows"] == len(elements)


def read_with(op: Callable[[Node], Node], folder: Path, files: int = 3) -> Dataset:
    for number in range(files):
        (folder / f"{number}.txt").write_text("".join(f"{10 * number + i}\n" for i in range(number + 2)))
    names = di.data.Dataset.list_files(str(folder / "*.txt"), shuffle=False)
    lines = di.data.TextLineDataset(names).map(int, output_signature=di.TensorSpec([], "int64"))
    return Dataset(op(lines.node))


@pytest.mark.parametrize("policy", ["AUTO", "FILE", "BALANCED", "DATA"])
@pytest.mark.parametrize("op", [Tripled, Halves])
def test_files_below_are_divided_by_every_policy(op: Callable[[Node], Node], policy: str, tmp_path: Path) -> None:
    for workers in (2, 3):
        assert check_policy(lambda: read_with(op, tmp_path), policy, workers)
    plan = di.data.experimental.shard_plan(read_with(op, tmp_path), 3, policy=POLICY[policy])
    assert plan.policy == {"AUTO": "FILE"}.get(policy, policy)
    if policy != "DATA":
        assert plan.reads == "own"


def test_what_says_nothing_is_not_divided_below(tmp_path: Path) -> None:
    dataset = read_with(Sums, tmp_path)
    assert di.data.experimental.shard_plan(dataset, 3).policy == "DATA"
    assert check_policy(lambda: read_with(Sums, tmp_path), "DATA", 3)
    with pytest.raises(NotFoundError, match="Did not find a shardable source: sums must see all"):
        di.data.experimental.auto_shard_dataset(with_policy(dataset, POLICY.FILE), 3, 0)
    with pytest.raises(NotFoundError, match="BALANCED: sums needs to see all elements"):
        di.data.experimental.auto_shard_dataset(with_policy(dataset, POLICY.BALANCED), 3, 0)


@pytest.mark.parametrize(
    "make", [lambda: Squares(9), lambda: Tripled(Squares(9)), lambda: Backwards(di.data.Dataset.range(9).node)]
)
def test_rows_of_a_source_are_divided_by_their_positions(make: Callable[[], Node]) -> None:
    assert check_policy(lambda: Dataset(make()), "BALANCED", 3)
    shares = [worker.rows for worker in di.data.experimental.shard_plan(
        Dataset(make()), 3, policy=POLICY.BALANCED
    ).workers]  # fmt: skip
    assert shares == [3, 3, 3]


def test_names_that_are_reordered_stay_so_under_balanced(tmp_path: Path) -> None:
    for number in range(4):
        (tmp_path / f"{number}.txt").write_text(f"{number}\n")
    names = Backwards(di.data.Dataset.from_tensor_slices([str(tmp_path / f"{n}.txt") for n in range(4)]).node)
    dataset = with_policy(di.data.TextLineDataset(Dataset(names)), POLICY.BALANCED)
    shares = [di.data.experimental.auto_shard_dataset(dataset, 2, worker).to_list() for worker in range(2)]
    assert shares == [[b"1", b"0"], [b"3", b"2"]]


@pytest.mark.parametrize("op", [Tripled, Backwards])
def test_own_rows_are_read_through_it(op: Callable[[Node], Node]) -> None:
    dataset = Dataset(op(di.data.Dataset.range(40).node)).batch(8)
    plan = di.data.experimental.shard_plan(dataset, 2, policy=POLICY.DATA)
    assert [worker.rows for worker in plan.workers] == [20, 20]
    tree = di.data.experimental.auto_shard_dataset(
        di.data.experimental.rebatch_for_worker(with_policy(dataset, POLICY.DATA), 2, 1, 0), 2, 0, 2
    )
    assert "own_rows" in tree.explain()


def test_batches_of_others_are_batches(tmp_path: Path) -> None:
    dataset = Dataset(Packed(di.data.Dataset.range(10).shuffle(10, seed=1).node, 4))
    assert di.data.experimental.shard_plan(dataset, 2).steps == 3
    running, fired = rewrite(dataset.node)
    assert "read_for_batches" in fired
    assert running.inputs[0].group == 4  # type: ignore[attr-defined]
    cut = di.data.experimental.rebatch_for_worker(dataset, 2, 1, 0)
    assert [len(batch) for batch in cut] == [2, 2, 2, 2, 2]
    steps = by_step(on_workers([1, 1], lambda s, _: rows_of(s, s.experimental_distribute_dataset(dataset))))
    assert [[len(part) for part in step] for step in steps] == [[2, 2], [2, 2], [1, 1]]


@pytest.mark.parametrize("policy", ["AUTO", "DATA", "BALANCED", "OFF"])
def test_workers_of_a_strategy_read_each_row_once(policy: str) -> None:
    def body(strategy: Any, _: int) -> Any:
        dataset = with_policy(Dataset(Tripled(Squares(12))).batch(4), POLICY[policy])
        return rows_of(strategy, strategy.experimental_distribute_dataset(dataset))

    steps = by_step(on_workers([1, 1], body))
    found = sorted(n for step in steps for part in step for n in part)
    assert found == sorted([3 * n * n for n in range(12)] * (2 if policy == "OFF" else 1))


# --- a policy


def test_a_policy_of_others_divides() -> None:
    assert check_policy(lambda: di.data.Dataset.range(10), STRETCHES, 3)
    dataset = with_policy(di.data.Dataset.range(10), STRETCHES)
    shares = [di.data.experimental.auto_shard_dataset(dataset, 3, worker).to_list() for worker in range(3)]
    assert shares == [[0, 1, 2], [3, 4, 5], [6, 7, 8, 9]]


def test_a_policy_of_others_is_explained() -> None:
    dataset = di.data.Dataset.range(10).batch(2)
    plan = di.data.experimental.shard_plan(dataset, 2, policy=STRETCHES)
    assert (plan.policy, plan.asked, plan.reason, plan.sentence) == (
        "STRETCHES",
        "STRETCHES",
        "asked",
        STRETCHES.sentence,
    )
    shown = with_policy(dataset, STRETCHES).explain(num_workers=2)
    assert "policy STRETCHES" in shown
    assert "STRETCHES" in str(with_policy(dataset, STRETCHES).options())


def test_a_strategy_takes_a_policy_of_others() -> None:
    def body(strategy: Any, _: int) -> Any:
        dataset = with_policy(di.data.Dataset.range(8).batch(2), STRETCHES)
        return rows_of(strategy, strategy.experimental_distribute_dataset(dataset))

    steps = by_step(on_workers([1, 1], body))
    assert sorted(n for step in steps for part in step for n in part) == list(range(8))


def test_a_state_of_a_dataset_with_a_policy_of_others_goes_on() -> None:
    dataset = with_policy(di.data.Dataset.range(8), STRETCHES)
    iterator = iter(dataset)
    assert [next(iterator) for _ in range(3)] == [0, 1, 2]
    state = iterator.state_dict()
    assert list(dataset.restore(state)) == [3, 4, 5, 6, 7]
