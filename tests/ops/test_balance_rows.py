# SPDX-License-Identifier: Apache-2.0
"""`InputOptions(balance_replicas=...)`: even costs, each row once, on any workers; the laws are in tests/laws."""

import json
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

import distinput as di
from distinput.distribute import InputOptions
from distinput.errors import InvalidArgumentError
from tests.distribute.workers import by_step, on_workers, rows_of

D: Any = di.data.Dataset
SIZES = np.clip(np.random.default_rng(1).lognormal(5, 1, 1000), 10, 2000).astype(np.int64)
BALANCED = InputOptions(balance_replicas=lambda sizes: sizes)


def mirrored(replicas: int) -> Any:
    return di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def steps_of(replicas: int, dataset: Any, options: InputOptions = BALANCED) -> list[list[list[int]]]:
    strategy = mirrored(replicas)
    return rows_of(strategy, strategy.experimental_distribute_dataset(dataset, options))


def test_costs_are_even_and_every_row_is_in_its_step_once() -> None:
    for replicas in (2, 4):
        steps = steps_of(replicas, D.from_tensor_slices(SIZES).batch(32 * replicas))
        for number, parts in enumerate(steps):
            rows = SIZES[number * 32 * replicas : (number + 1) * 32 * replicas]
            assert sorted(row for part in parts for row in part) == sorted(rows)
            assert {len(part) for part in parts} <= {len(rows) // replicas, -(-len(rows) // replicas)}
            if len(rows) == 32 * replicas:
                costs = [sum(part) for part in parts]
                assert max(costs) / np.mean(costs) <= 1.05


def test_rows_of_a_replica_keep_their_order_and_components_stay_together() -> None:
    ds = D.from_tensor_slices((np.arange(40), SIZES[:40])).batch(16)
    strategy = mirrored(2)
    options = InputOptions(balance_replicas=lambda number, size: size)
    for numbers, sizes in strategy.experimental_distribute_dataset(ds, options):
        for own, costs in zip(numbers.values, sizes.values, strict=True):
            assert list(own) == sorted(own)
            assert costs.tolist() == SIZES[own].tolist()


def test_ragged_batches() -> None:
    rows = di.RaggedTensor.from_row_lengths(np.arange(20), np.array([9, 1, 1, 9]))
    strategy = mirrored(2)
    options = InputOptions(balance_replicas=lambda rows: rows.row_lengths())
    (step,) = strategy.experimental_distribute_dataset(D.from_tensor_slices(rows).batch(4), options)
    assert [part.row_lengths().tolist() for part in step.values] == [[9, 1], [1, 9]]


def fewer(batch: Any) -> Any:
    return {**batch, "x": batch["x"][:-1]}


def test_a_map_that_leaves_rows_out_of_one_component_is_named() -> None:
    ds = D.from_tensor_slices({"x": SIZES[:12], "cost": SIZES[:12]}).batch(4).map(fewer).prefetch(1)
    with pytest.raises(
        InvalidArgumentError, match=r"map\(map_func=fewer\), made at .* must leave the rows .* 3 and 4 rows"
    ):
        steps_of(2, ds, InputOptions(balance_replicas="cost"))


def test_a_map_that_leaves_records_out_is_named_where_records_are_looked_for() -> None:
    ds = D.from_tensor_slices(SIZES[:12]).batch(4).map(lambda sizes: sizes[:-1])
    steps = mirrored(2).experimental_distribute_dataset(ds, BALANCED)
    assert len(list(steps)) == 3
    with pytest.raises(InvalidArgumentError, match=r"map\(.*\), made at .* must leave the rows .* 3 and 4 rows"):
        steps.locate(1)


def test_batches_without_rows_are_steps() -> None:
    ds = D.range(6).batch(2).map(lambda rows: rows[rows < 3])
    assert steps_of(2, ds) == [[[1], [0]], [[2], []], [[], []]]


@pytest.mark.parametrize("replicas", [[1, 1], [2, 1], [2, 2]])
def test_workers_take_the_same_steps_as_one(replicas: list[int]) -> None:
    ds = D.from_tensor_slices(SIZES).filter(lambda n: n % 7 != 0).batch(24)

    def body(strategy: Any, _: int) -> Any:
        return rows_of(strategy, strategy.experimental_distribute_dataset(ds, BALANCED))

    assert by_step(on_workers(replicas, body)) == steps_of(sum(replicas), ds)


def test_other_workers_and_replicas_go_on_from_a_state() -> None:
    ds = D.from_tensor_slices(SIZES).batch(50)

    def begin(strategy: Any, _: int) -> Any:
        iterator = iter(strategy.experimental_distribute_dataset(ds, BALANCED))
        rows = [rows_of(strategy, [next(iterator)]) for _ in range(7)]
        return json.loads(json.dumps(iterator.state())), rows

    saved = on_workers([2, 1], begin)
    before = sum(len(part) for _, rows in saved for step in rows for parts in step for part in parts)
    assert before == 350
    for count in (1, 4):
        strategy = mirrored(count)
        distributed = strategy.experimental_distribute_dataset(ds, BALANCED)
        rest = rows_of(strategy, distributed.restore(saved[0][0]))
        assert sorted(row for parts in rest for part in parts for row in part) == sorted(SIZES[350:])


def test_short_batches_are_padded_or_left_out() -> None:
    ds = D.from_tensor_slices(SIZES[:21]).batch(8)
    strategy = mirrored(4)
    padded = InputOptions(balance_replicas=lambda sizes: sizes, tail="pad")
    steps = list(strategy.experimental_distribute_dataset(ds, padded))
    assert [[part.shape for part in step.values] for step, _ in steps] == [[(2,)] * 4] * 3
    dropping = InputOptions(balance_replicas=lambda sizes: sizes, tail="drop")
    assert len(list(strategy.experimental_distribute_dataset(ds, dropping))) == 2


def test_costs_may_be_fractions_or_all_zero() -> None:
    ds = D.from_tensor_slices(SIZES[:64]).batch(64)
    halves = InputOptions(balance_replicas=lambda sizes: sizes / 2)
    ((first, second),) = steps_of(2, ds, halves)
    assert abs(sum(first) - sum(second)) <= 2
    assert steps_of(2, ds, InputOptions(balance_replicas=np.zeros_like)) == [
        [SIZES[:32].tolist(), SIZES[32:64].tolist()]
    ]


@pytest.mark.parametrize(
    "cost, message",
    [
        (
            lambda sizes: sizes[:1],
            r"cost must return one number for each of the 4 rows of a batch, or \[4, modules\], got int64 of shape \[1\]",
        ),
        (lambda sizes: "x", "cost must return one number for each of the 4 rows"),
        (lambda sizes: -sizes, "costs must be finite and not negative, got"),
        (lambda sizes: sizes * np.nan, "costs must be finite and not negative, got nan to nan"),
    ],
)
def test_costs_that_are_none(cost: Any, message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=r"InputOptions\(balance_replicas\): " + message) as error:
        steps_of(2, D.from_tensor_slices(SIZES).batch(4), InputOptions(balance_replicas=cost))
    assert any("balance_replicas" in note for note in error.value.__notes__)


def test_where_it_does_not_apply() -> None:
    wrong: Any
    for wrong in (3, []):
        with pytest.raises(TypeError, match="balance_replicas must be a function, or names, got"):
            InputOptions(balance_replicas=wrong)
    with pytest.raises(ValueError, match=r"balance_replicas=.* is for global batches"):
        mirrored(2).distribute_datasets_from_function(lambda _: D.range(3).batch(2), BALANCED)


def test_explain_names_it() -> None:
    strategy = mirrored(2)
    text = strategy.experimental_distribute_dataset(D.from_tensor_slices(SIZES).batch(4), BALANCED).explain()
    assert "balance_replicas(cost=" in text


def test_costs_of_several_modules_are_even_in_each() -> None:
    random = np.random.default_rng(3)
    text = random.lognormal(6, 0.8, 1024).astype(np.int64)
    vision = np.where(random.random(1024) < 0.4, random.integers(1, 6, 1024) * 576, 0)
    ds = D.from_tensor_slices({"row": np.arange(1024), "text": text, "vision": vision}).batch(256)
    strategy = mirrored(8)
    options = InputOptions(balance_replicas=["text", "vision"])
    seen = []
    for step in strategy.experimental_distribute_dataset(ds, options):
        for name in ("text", "vision"):
            costs = [int(part.sum()) for part in step[name].values]
            assert max(costs) / np.mean(costs) <= 1.05
        assert {len(part) for part in step["row"].values} == {32}
        seen += np.concatenate(step["row"].values).tolist()
    assert sorted(seen) == list(range(1024))


def test_a_function_may_return_costs_of_modules() -> None:
    ds = D.from_tensor_slices((SIZES[:512], SIZES[488:])).batch(128)
    options = InputOptions(balance_replicas=lambda a, b: np.stack([a, b], 1))
    for first, second in mirrored(4).experimental_distribute_dataset(ds, options):
        for component in (first, second):
            costs = [int(part.sum()) for part in component.values]
            assert max(costs) / np.mean(costs) <= 1.05


def test_costs_of_a_named_component_are_those_of_a_function_of_it() -> None:
    ds = D.from_tensor_slices({"n": SIZES}).batch(100)
    strategy = mirrored(3)
    found = [
        [[part.tolist() for part in step["n"].values] for step in strategy.experimental_distribute_dataset(ds, options)]
        for options in (InputOptions(balance_replicas="n"), InputOptions(balance_replicas=lambda batch: batch["n"]))
    ]
    assert found[0] == found[1]
    with pytest.raises(InvalidArgumentError, match="there is no component 'm'; it has 'n'"):
        list(strategy.experimental_distribute_dataset(ds, InputOptions(balance_replicas="m")))


def test_names_may_be_of_inner_dicts_and_of_what_may_be_null() -> None:
    costs = [9, None, 1, 9]
    ds = di.data.Dataset.from_arrow(pa.table({"n": costs, "m": [{"a": cost or 0} for cost in costs]})).batch(4)
    strategy = mirrored(2)
    for name in ("m.a", "n.value", ["m.a", "n.value"]):
        (step,) = strategy.experimental_distribute_dataset(ds, InputOptions(balance_replicas=name))
        assert sorted(int(part["m"]["a"].sum()) for part in strategy.experimental_local_results(step)) == [9, 10]
    with pytest.raises(InvalidArgumentError, match=r"component 'n' may be null; name 'n\.value'"):
        list(strategy.experimental_distribute_dataset(ds, InputOptions(balance_replicas="n")))


def test_costs_of_few_bits_do_not_overflow() -> None:
    ds = D.from_tensor_slices(np.array([8, 1, 7, 2, 6, 3, 5, 4])).batch(8)
    options = InputOptions(balance_replicas=lambda sizes: sizes.astype(np.float16))
    ((first, second),) = steps_of(2, ds, options)
    assert sum(first) == sum(second) == 18
