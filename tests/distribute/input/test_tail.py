# SPDX-License-Identifier: Apache-2.0
"""The tail of the data, and what stands in where a replica has none."""

from decimal import Decimal
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from distinput.distribute import InputOptions, MirroredStrategy
from distinput.errors import InvalidArgumentError
from tests.distribute.workers import by_step, on_workers, rows_of, with_policy

Dataset = di.data.Dataset
POLICY = di.data.experimental.AutoShardPolicy


def mirrored(replicas: int) -> MirroredStrategy:
    return MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def files(folder: Any, counts: list[int]) -> Any:
    """Lines numbered through, in files of these many lines."""
    first = 0
    for i, count in enumerate(counts):
        (folder / f"{i}.txt").write_text("".join(f"{n}\n" for n in range(first, first + count)))
        first += count
    names = Dataset.list_files(f"{folder}/*.txt", shuffle=False)
    return names.flat_map(di.data.TextLineDataset).map(int, output_signature=di.TensorSpec([], "int64"))


kinds = st.sampled_from(["own", "through", "unknown"])


def dataset(kind: str, n: int, batch: int) -> Any:
    rows = Dataset.range(n)
    if kind == "through":
        rows = rows.map(lambda x: x).cache()
    if kind == "unknown":
        rows = rows.filter(lambda x: True)
    return with_policy(rows.batch(batch), POLICY.DATA)


@given(kinds, st.integers(0, 40), st.integers(1, 9), st.lists(st.integers(1, 3), min_size=1, max_size=3), st.booleans())
@settings(max_examples=60)
def test_padded_steps_have_one_shape_and_their_mask_tells_the_rows(
    kind: str, n: int, batch: int, replicas: list[int], balanced: bool
) -> None:
    replicas = replicas if balanced else replicas[:1] * len(replicas)
    total = sum(replicas)
    rows = -(-batch // total)

    def body(strategy: Any, worker: int) -> Any:
        options = InputOptions(tail="pad", balanced_split=balanced)
        distributed = strategy.experimental_distribute_dataset(dataset(kind, n, batch), options)
        found = []
        for values, mask in distributed:
            for part, there in zip(
                strategy.experimental_local_results(values), strategy.experimental_local_results(mask), strict=True
            ):
                assert part.shape == there.shape == (rows,)
                assert not part[~there].any()
            total = strategy.reduce("SUM", values, axis=0, mask=mask)
            mean = strategy.reduce("MEAN", values, axis=0, mask=mask)
            found.append((strategy.gather(values, axis=0, mask=mask).tolist(), int(total), float(mean)))
        return found

    results = on_workers(replicas, body)
    for result in results:
        if isinstance(result, Exception):
            raise result
        assert [(sorted(a), b, c) for a, b, c in result] == [
            (x := list(range(i, min(i + batch, n))), sum(x), sum(x) / len(x)) for i in range(0, n, batch)
        ]


@given(kinds, st.integers(0, 40), st.integers(1, 9), st.integers(1, 3), st.integers(1, 3), st.booleans())
@settings(max_examples=40)
def test_dropped_are_the_rows_of_a_last_short_batch(
    kind: str, n: int, batch: int, workers: int, replicas: int, balanced: bool
) -> None:
    def body(strategy: Any, worker: int) -> Any:
        options = InputOptions(tail="drop", balanced_split=balanced)
        distributed = strategy.experimental_distribute_dataset(dataset(kind, n, batch), options)
        assert distributed.num_steps in (n // batch, -2)
        return rows_of(strategy, distributed)

    steps = by_step(on_workers([replicas] * workers, body))
    assert [sorted(x for part in step for x in part) for step in steps] == [
        list(range(i, i + batch)) for i in range(0, n - batch + 1, batch)
    ]


@given(kinds, st.integers(0, 40), st.integers(1, 9), st.integers(1, 3), st.integers(1, 3))
@settings(max_examples=40)
def test_a_short_step_is_an_error_on_all_workers_alike(
    kind: str, n: int, batch: int, workers: int, replicas: int
) -> None:
    def body(strategy: Any, worker: int) -> Any:
        options, found = InputOptions(tail="error"), 0
        try:
            for _ in strategy.experimental_distribute_dataset(dataset(kind, n, batch), options):
                found += 1
        except InvalidArgumentError as error:
            return found, str(error)
        return found, ""

    results = on_workers([replicas] * workers, body)
    steps, said = {r[0] for r in results}, {r[1] for r in results}
    assert len(steps) == len(said) == 1
    if n % batch:
        assert f"every step needs {batch} rows, one has {n % batch}" in said.pop()
        assert steps == {n // batch if kind == "unknown" else 0}, "what can be counted is found before the first step"
    else:
        assert said == {""}
        assert steps == {n // batch}


@pytest.mark.parametrize("tail", ["pad", "drop", "error"])
def test_the_tails_of_workers_with_files_of_their_own(tail: str, tmp_path: Any) -> None:
    dataset = files(tmp_path, [10, 4])

    def body(strategy: Any, worker: int) -> Any:
        lines = with_policy(dataset.batch(4), POLICY.FILE)
        return rows_of(strategy, map(first, strategy.experimental_distribute_dataset(lines, InputOptions(tail=tail))))

    def first(step: Any) -> Any:
        return step[0] if tail == "pad" else step

    results = on_workers([1, 1], body)
    if tail == "error":
        for result in results:
            assert isinstance(result, InvalidArgumentError)
            assert "every step needs 4 rows, one has 2" in str(result)
        return
    steps = by_step(results)
    full = [[[0, 1], [10, 11]], [[2, 3], [12, 13]]]
    rest = [[[4, 5], [0, 0]], [[6, 7], [0, 0]], [[8, 9], [0, 0]]]
    assert steps == (full if tail == "drop" else full + rest)


def test_a_padded_spec_is_true() -> None:
    strategy = mirrored(2)
    steps = strategy.experimental_distribute_dataset(
        Dataset.range(5).map(lambda x: {"x": x, "s": b"a"}).batch(4), InputOptions(tail="pad")
    )
    element, mask = steps.element_spec
    assert element["x"].value_specs[0].shape == (2,)
    assert mask.value_specs[0].shape == (2,)
    *_, (last, there) = steps
    assert [part.tolist() for part in last["s"].values] == [[b"a", b""], [b"", b""]]
    assert [part.tolist() for part in there.values] == [[True, False], [False, False]]


@pytest.mark.parametrize(
    "rows",
    [
        np.array(["2024-01-01", "2024-01-02", "2024-01-03"], "M8[us]"),
        np.array([1, 2, 3], "m8[s]"),
        np.array([1.5, 2.5, 3.5], np.complex64),
        np.array([1, 2, 3], ">i2"),
        np.array([True, True, True]),
        np.array(["a", "b", "c"]),
    ],
    ids=lambda rows: rows.dtype.str,
)
@pytest.mark.parametrize("inner", [(), (2,)])
def test_rows_that_fill_up_a_step_are_those_of_padded_batches(rows: Any, inner: tuple[int, ...]) -> None:
    rows = np.broadcast_to(rows.reshape(3, *(1 for _ in inner)), (3, *inner))
    dataset = Dataset.from_tensor_slices(rows)
    *_, (step, mask) = mirrored(1).experimental_distribute_dataset(dataset.batch(2), InputOptions(tail="pad"))
    lists = Dataset.from_tensor_slices([1, 2]).map(lambda n: rows[:n])
    (padded,) = lists.padded_batch(2)
    assert mask.tolist() == [True, False]
    assert step.dtype == padded.dtype
    assert step[1:].tolist() == padded[0, 1:].tolist()


def test_one_replica_alone_is_padded_too() -> None:
    for strategy in (mirrored(1), di.distribute.OneDeviceStrategy("CPU:0")):
        steps = list(strategy.experimental_distribute_dataset(Dataset.range(3).batch(2), InputOptions(tail="pad")))
        assert [(x.tolist(), mask.tolist()) for x, mask in steps] == [([0, 1], [True, True]), ([2, 0], [True, False])]
        assert strategy.reduce("MEAN", steps[1][0], axis=0, mask=steps[1][1]) == 2


def test_mistakes() -> None:
    with pytest.raises(ValueError, match=r"tail must be one of drop, error, pad, partial, got 'keep'"):
        InputOptions(tail="keep")
    hidden = Dataset.range(4).batch(2).map(lambda x: x[:1], output_signature=di.TensorSpec([None], "int64"))
    with pytest.raises(ValueError, match="the global batch size must be known"):
        mirrored(2).experimental_distribute_dataset(hidden, InputOptions(tail="drop"))
    with pytest.raises(ValueError, match="'pad' is for global batches"):
        mirrored(2).distribute_datasets_from_function(lambda _: Dataset.range(3), InputOptions(tail="pad"))
    with pytest.raises(TypeError, match="mask must be one vector of booleans"):
        mirrored(1).reduce("SUM", np.arange(3), axis=0, mask=np.ones(3))
    with pytest.raises(InvalidArgumentError, match="a row for each of the 2 values of its mask, got shape"):
        mirrored(1).reduce("SUM", np.arange(3), axis=0, mask=np.ones(2, bool))


def test_a_scalar_that_stands_in_for_no_data_counts_nothing() -> None:
    strategy = mirrored(2)
    steps = strategy.distribute_datasets_from_function(lambda _: Dataset.range(5, 8))
    iterator = iter(steps)
    next(iterator)
    last = iterator.get_next_as_optional().get_value()
    assert last.values == (7, 0)
    assert last.row_counts == (1, 0)
    assert "no data" in repr(last)
    assert strategy.reduce("MEAN", last, axis=None) == 7
    squares = strategy.run(lambda x: {"y": np.array([x + 1])}, args=(last,))
    assert strategy.reduce("SUM", squares["y"], axis=0) == 8
    assert strategy.reduce("MEAN", squares["y"], axis=0) == 8
    assert strategy.gather(squares["y"], axis=0).tolist() == [8]
    assert (
        strategy.reduce("MEAN", strategy.run(lambda x: np.float32(x), args=(last,)), axis=None, deterministic=True) == 7
    )


def test_scalars_that_stand_in_count_nothing_over_workers() -> None:
    def body(strategy: Any, worker: int) -> Any:
        steps = strategy.distribute_datasets_from_function(lambda _: Dataset.range(1 if worker else 3))
        wide = [strategy.run(lambda x: np.full(20_000, float(x)), args=(step,)) for step in steps]
        means = [float(strategy.reduce("MEAN", step, axis=None)[0]) for step in wide]
        return means, [float(strategy.reduce("SUM", step, axis=0)) / 20_000 for step in wide]

    for means, sums in on_workers([1, 1], body):
        assert means == [0, 1, 2]
        assert sums == [0, 1, 2]


def test_the_error_names_the_rows_of_a_short_step_between_others() -> None:
    twice = Dataset.range(6).batch(4).repeat(2)
    with pytest.raises(InvalidArgumentError, match="every step needs 4 rows, one has 2"):
        mirrored(2).experimental_distribute_dataset(with_policy(twice, POLICY.DATA), InputOptions(tail="error"))


@pytest.mark.parametrize("replicas", [[1, 1], [2, 2]])
def test_data_without_end_that_each_worker_reads_for_itself_keeps_its_full_steps(replicas: list[int]) -> None:
    """A worker's own part is never as large as a full step; only all parts together tell whether one is."""

    def body(strategy: Any, worker: int) -> Any:
        endless = with_policy(di.data.Dataset.range(10).repeat().batch(4), di.data.experimental.AutoShardPolicy.OFF)
        steps = strategy.experimental_distribute_dataset(endless, di.distribute.InputOptions(tail="drop"))
        with iter(steps) as iterator:
            return [sum(len(part) for part in strategy.experimental_local_results(next(iterator))) for _ in range(4)]

    assert on_workers(replicas, body) == [[2] * 4] * 2


def test_decimals_are_filled_up_with_decimals_also_where_a_replica_has_no_rows() -> None:
    table = pa.table({"x": pa.array([Decimal(1), Decimal(2), Decimal(3)])})
    dataset = Dataset.from_arrow(table).as_decimal().batch(2)
    strategy = mirrored(2)
    *_, (values, mask) = strategy.experimental_distribute_dataset(dataset, InputOptions(tail="pad"))
    parts = [[part.tolist() for part in strategy.experimental_local_results(each)] for each in (values["x"], mask)]
    assert parts == [[[Decimal(3)], [Decimal(0)]], [[True], [False]]]


@pytest.mark.parametrize("policy", ["FILE", "DATA", "BALANCED"])
def test_a_worker_without_any_row_has_what_the_others_have(policy: str, tmp_path: Path) -> None:
    for name, rows in (("a", 5), ("b", 0)):
        decimals = pa.array([Decimal(row) for row in range(rows)], pa.decimal128(4, 2))
        texts = pa.array(list("vwxyz")[:rows], pa.string())
        pq.write_table(pa.table({"d": decimals, "t": texts}), tmp_path / f"{name}.parquet")
    read = di.data.ParquetDataset(str(tmp_path / "*.parquet"), decimals="decimal", text="str")
    dataset = with_policy(read.batch(4), di.data.experimental.AutoShardPolicy[policy])

    def body(strategy: Any, worker: int) -> list[tuple[type, type]]:
        steps = strategy.experimental_distribute_dataset(dataset, InputOptions(tail="pad"))
        parts = [(strategy.experimental_local_results(step[name]) for name in "dt") for step, _ in steps]
        return [(type(d[0]), type(t[0])) for ds, ts in parts for d, t in zip(ds, ts, strict=True)]

    assert {kinds for worker in on_workers([1, 1], body) for kinds in worker} == {(Decimal, str)}


def of_hidden_size(batches: int, size: int) -> Any:
    """Batches whose size a strategy does not learn: each is cut on its own."""
    return Dataset.range(batches * size - size + 1).batch(size).map(lambda rows: rows, num_parallel_calls=2)


def joined(n: int, size: int) -> Any:
    return of_hidden_size(n, size).concatenate(Dataset.range(7).batch(size + 1))


def alternating(n: int, size: int) -> Any:
    parts = [of_hidden_size(n, size), Dataset.range(7).batch(size + 1)]
    return Dataset.choose_from_datasets(parts, Dataset.from_tensor_slices(np.array([0, 1] * 9)))


@pytest.mark.parametrize(
    "make, policy",
    [(of_hidden_size, POLICY.FILE), *product([of_hidden_size, joined, alternating], [POLICY.OFF, POLICY.DATA])],
)
@pytest.mark.parametrize("replicas", [[1, 1], [2, 2], [1, 1, 1]])
def test_no_step_is_without_a_row_where_the_size_of_batches_is_hidden(
    make: Any, policy: Any, replicas: list[int], tmp_path: Any
) -> None:
    names = files(tmp_path, [1] * len(replicas) * 3)

    def body(strategy: Any, worker: int) -> Any:
        if policy == POLICY.FILE:
            batches = names.batch(2).map(lambda rows: rows + 0, output_signature=di.TensorSpec([None], "int64"))
        else:
            batches = make(2, 4)
        return [
            (strategy.reduce("MEAN", step, axis=0), rows_of(strategy, [step])[0])
            for step in strategy.experimental_distribute_dataset(with_policy(batches, policy))
        ]

    results = on_workers(replicas, body)
    steps = by_step([[rows for _, rows in result] for result in results])
    assert all(any(part for part in step) for step in steps)
    assert all(np.isfinite(mean) for mean, _ in results[0])
