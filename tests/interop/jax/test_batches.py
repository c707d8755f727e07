# SPDX-License-Identifier: Apache-2.0
"""Batches as global arrays: what they hold, where they are, how they are saved, and what is refused."""

import gc
import json
import threading
import time
import weakref
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import jax
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from jax.sharding import NamedSharding, PartitionSpec, SingleDeviceSharding

import distinput as di
from distinput.errors import InvalidArgumentError, StateError
from distinput.interop.jax import batches
from distinput.values import buffers
from tests.patience import wait_until

Dataset = di.data.Dataset


def over(*spec: Any, axes: tuple[int, ...] = (8,)) -> NamedSharding:
    return NamedSharding(jax.make_mesh(axes, ("data", "model")[: len(axes)]), PartitionSpec(*spec))


DATA = over("data")


def values(steps: Any) -> list[list[Any]]:
    return [np.asarray(batch)[np.asarray(mask)].tolist() for batch, mask in steps]


@given(st.integers(0, 40), st.sampled_from([8, 16]), st.sampled_from([0, 2]))
def test_masked_batches_are_the_batches(rows: int, size: int, ahead: int) -> None:
    dataset = Dataset.range(rows).batch(size)
    feed = batches(dataset, DATA, ahead=ahead)
    steps = list(feed)
    assert values(steps) == dataset.to_list()
    assert len(feed) == len(steps)
    for batch, mask in steps:
        count = int(mask.sum())
        assert batch.shape == mask.shape == (size,)
        assert np.asarray(mask).tolist() == [True] * count + [False] * (size - count)
        assert not np.asarray(batch)[count:].any()


@pytest.mark.parametrize(
    "sharding",
    [
        DATA,
        over("data", axes=(4, 2)),
        over(("data", "model"), axes=(4, 2)),
        over("model", "data", axes=(2, 4)),
        over(),
        SingleDeviceSharding(jax.devices()[2]),
    ],
    ids=str,
)
def test_arrays_have_the_sharding_that_was_asked_for(sharding: Any) -> None:
    images = np.arange(24 * 4, dtype=np.float32).reshape(24, 4)
    feed = batches(Dataset.from_tensor_slices(images).batch(8), sharding)
    for i, (batch, mask) in enumerate(feed):
        assert batch.sharding.is_equivalent_to(sharding, 2)
        assert np.array_equal(batch, images[8 * i : 8 * i + 8])
        assert mask.sharding.device_set == sharding.device_set


def test_components_have_shardings_of_their_own() -> None:
    dataset = Dataset.from_tensor_slices({"x": np.ones((8, 4), np.float32), "y": np.arange(8, dtype=np.int32)}).batch(8)
    shardings = {"x": over("data", "model", axes=(4, 2)), "y": over("data", axes=(4, 2))}
    ((batch, _),) = batches(dataset, shardings)
    assert {name: array.sharding for name, array in batch.items()} == shardings


def test_a_jitted_function_is_compiled_once_an_epoch() -> None:
    compiled = []

    @jax.jit
    def total(batch: Any, mask: Any) -> Any:
        compiled.append(batch["x"].shape)
        return (batch["x"] * mask).sum()

    feed = batches(Dataset.from_tensor_slices({"x": np.ones(41, np.float32)}).batch(8), DATA)
    assert sum(float(total(*step)) for step in feed) == 41
    assert compiled == [(8,)]


def test_what_a_step_looks_like() -> None:
    feed = batches(Dataset.range(20).map(lambda x: {"x": x}).batch(8), DATA)
    spec, mask = feed.element_spec
    assert (spec["x"].shape, spec["x"].dtype, spec["x"].sharding) == ((8,), np.int32, DATA)
    assert (mask.shape, mask.dtype) == ((8,), bool)
    jax.jit(lambda batch, mask: batch["x"] * mask).lower(spec, mask)  # can be compiled before the first batch
    assert "tail:     pad" in feed.explain()


def test_a_short_last_batch_is_dropped_padded_or_an_error() -> None:
    dataset = Dataset.range(20).batch(8)
    assert [batch.tolist() for batch in batches(dataset, DATA, tail="drop")] == dataset.to_list()[:2]
    assert len(batches(dataset, DATA, tail="drop")) == 2
    with pytest.raises(InvalidArgumentError, match="every step needs 8 rows, one has 4"):
        batches(dataset, DATA, tail="error")
    counted = list(batches(dataset.take(2), DATA, tail="error"))
    assert [batch.tolist() for batch in counted] == dataset.to_list()[:2]
    found_out = batches(Dataset.range(20).filter(lambda x: x < 12).batch(8), DATA, tail="error")
    with pytest.raises(InvalidArgumentError, match="every step needs 8 rows, one has 4"):
        list(found_out)


def shuffled() -> Any:
    return Dataset.range(60).shuffle(60, seed=3).batch(8)


@pytest.mark.parametrize("ahead", [0, 2])
def test_a_state_is_the_position_after_the_last_batch_returned(ahead: int) -> None:
    feed = batches(shuffled(), DATA, ahead=ahead)
    whole, again = values(feed), values(feed)
    assert whole != again  # another epoch has another order
    fresh, restarted = (batches(shuffled(), DATA, ahead=ahead) for _ in range(2))
    with iter(fresh) as iterator:
        for step in range(len(whole) + 1):
            state = json.loads(json.dumps(iterator.state_dict()))
            assert values(restarted.restore(state)) == whole[step:]
            next(iterator, None)
    assert values(restarted) == again  # the epoch after the one that was restored
    iterator = iter(feed)
    next(iterator)
    iterator.load_state_dict(state)
    assert values(iterator) == []


def test_another_mesh_continues() -> None:
    whole = values(batches(shuffled(), DATA))
    with iter(batches(shuffled(), DATA)) as iterator:
        next(iterator)
        state = iterator.get_state()
    following = iter(batches(shuffled(), over("data", axes=(2, 4))))
    following.set_state(state)
    assert values(following) == whole[1:]
    with pytest.raises(StateError, match="belongs to another pipeline"):
        batches(shuffled().skip(1), DATA).restore(json.loads(state))


def test_batches_are_put_ahead_by_a_thread() -> None:
    made: list[tuple[int, str]] = []

    def note(x: Any) -> Any:
        made.append((int(x[0]), threading.current_thread().name))
        time.sleep(0.002)
        return x

    feed = batches(Dataset.range(80).batch(8).map(note), DATA, batch_size=8)
    made.clear()
    with iter(feed) as iterator:
        values([next(iterator), next(iterator), next(iterator)])
        wait_until(lambda: len(made) >= 6)
        assert {first for first, _ in made} >= set(range(0, 48, 8))
        assert "distinput-steps-ahead" in {name for _, name in made} or "prefetch" in str(made)
        assert iterator.state()["step"] == 3


def test_an_error_is_raised_in_its_turn() -> None:
    def fail(x: Any) -> Any:
        if x == 17:
            raise ValueError("a damaged record")
        return x

    iterator = iter(batches(Dataset.range(40).map(fail, output_signature=di.TensorSpec((), "int64")).batch(8), DATA))
    assert values([next(iterator), next(iterator)]) == [list(range(8)), list(range(8, 16))]
    with pytest.raises(ValueError, match="a damaged record"):
        next(iterator)


@pytest.mark.parametrize("rows", [4096, 100])
def test_batches_are_not_overwritten_while_they_are_used_late(rows: int) -> None:
    """Buffers are used again by reference count, and JAX looks at memory later than it seems."""
    slow = jax.jit(lambda x: (jax.numpy.sin(x) ** 2 + jax.numpy.cos(x) ** 2).sum() + x.sum())
    data = np.repeat(np.arange(24, dtype=np.float32), 8 * rows).reshape(24 * 8, rows)
    dataset = Dataset.from_tensor_slices(data).map(lambda x: x + 0).batch(8, drop_remainder=True)
    feed = batches(dataset, DATA, tail="drop")
    found = [(batch, slow(batch)) for batch in feed]
    gc.collect()
    for i, (batch, total) in enumerate(found):
        assert (np.asarray(batch) == i).all()
        assert float(total) == pytest.approx(8 * rows * (1 + i), rel=1e-3)


def test_masks_that_a_program_takes_over_are_made_again() -> None:
    take = jax.jit(lambda batch, mask: (batch + mask, ~mask), donate_argnums=(0, 1))
    feed = batches(Dataset.range(44).map(lambda x: np.int32(x)).batch(8), DATA)
    totals = []
    for batch, mask in feed:
        count = int(mask.sum())
        made, _ = take(batch, mask)
        totals.append((count, int(made.sum())))
    assert totals == [(8, sum(range(i, i + 8)) + 8) for i in range(0, 40, 8)] + [(4, sum(range(40, 44)) + 4)]


def test_batches_asked_for_again_are_planned_once() -> None:
    dataset = Dataset.range(20).shuffle(20).batch(8)
    masks = [next(iter(batches(dataset, DATA)))[1] for _ in range(3)]
    assert masks[0] is masks[1] is masks[2]
    steps = [values(batches(dataset, DATA)) for _ in range(2)]
    assert [sorted(x for batch in epoch for x in batch) for epoch in steps] == [list(range(20))] * 2
    assert steps[0] != steps[1]  # passes are counted together
    other = next(iter(batches(dataset, DATA, tail="drop")))
    assert other.shape == (8,)
    assert next(iter(batches(dataset, over())))[1].sharding == over()


def test_batches_asked_for_again_share_no_state_that_was_restored() -> None:
    def shuffled() -> Any:
        return Dataset.range(64).shuffle(64).batch(8)

    state = iter(batches(shuffled(), DATA)).state()
    dataset = shuffled()
    first = batches(dataset, DATA)
    before = iter(first).state()["inputs"][0]["seeds"]
    second = batches(dataset, DATA)
    drawn = second.restore(state).state()["inputs"][0]["seeds"]
    seeds = [iter(feed).state()["inputs"][0]["seeds"] for feed in (first, second, batches(dataset, DATA))]
    assert seeds == [before, drawn, before]


def test_batches_of_a_dataset_that_is_dropped_are_dropped() -> None:
    dataset = Dataset.range(20).batch(8)
    list(batches(dataset, DATA))
    list(batches(dataset, DATA))
    node = weakref.ref(dataset.node)
    del dataset
    assert node() is None


def test_a_donated_batch_does_not_change_the_data_it_was_made_of() -> None:
    data = buffers.empty((64, 512), np.dtype(np.float32))
    data[:] = 1
    add = jax.jit(lambda x: x + 1, donate_argnums=0)
    for batch in batches(Dataset.from_tensor_slices(data).batch(8), DATA, tail="drop"):
        add(batch).block_until_ready()
    assert (data == 1).all()


@dataclass
class Pair:
    x: Any
    y: Any


def test_dataclasses_become_pytrees() -> None:
    feed = batches(Dataset.range(8).map(lambda x: Pair(x, -x)).batch(8), DATA)
    ((batch, _),) = feed
    assert isinstance(batch, Pair)
    assert int(jax.jit(lambda pair: (pair.x + pair.y).sum())(batch)) == 0
    list(batches(Dataset.range(8).map(lambda x: Pair(x, -x)).batch(8), DATA))  # registered already


def test_integers_that_do_not_fit_are_an_error() -> None:
    feed = batches(Dataset.from_tensor_slices({"x": np.full(8, 1 << 40)}).batch(8), DATA)
    with pytest.raises(
        InvalidArgumentError, match=r"interop.jax.batches: component \['x'\] is int64 and holds 1099511627776"
    ):
        next(iter(feed))


@pytest.mark.parametrize(
    "make, kind, says",
    [
        (lambda: batches([1, 2], DATA), TypeError, "interop.jax.batches: needs a dataset, got a list"),
        (
            lambda: batches(Dataset.range(8).batch(8), "data"),
            TypeError,
            "sharding must be a jax.sharding.NamedSharding",
        ),
        (lambda: batches(Dataset.range(8).batch(8), {"x": DATA}), TypeError, "with the structure of the elements"),
        (lambda: batches(Dataset.range(8), DATA), InvalidArgumentError, "must have a batch axis"),
        (lambda: batches(Dataset.range(8).batch(9), DATA), ValueError, r"of shape \[9\], cannot be divided"),
        (
            lambda: batches(Dataset.range(8).batch(8), DATA, tail="partial"),
            ValueError,
            "one of drop, error, pad, got 'partial'",
        ),
        (
            lambda: batches(Dataset.range(8).batch(8), DATA, batch_size=0),
            ValueError,
            "batch_size must be a positive integer, got 0",
        ),
        (
            lambda: batches(Dataset.range(16).batch(8), DATA, batch_size=16),
            ValueError,
            "batch_size is 16, but the batches have 8 rows",
        ),
        (
            lambda: batches(Dataset.range(8).batch(8), DATA, ahead=-1),
            ValueError,
            "ahead must be an integer of at least 0",
        ),
        (lambda: batches(Dataset.from_tensor_slices(["a"] * 8).batch(8), DATA), ValueError, "the element is text"),
        (
            lambda: batches(
                Dataset.range(8).batch(8).map(lambda x: x[x > 3], output_signature=di.TensorSpec((None,), "int64")),
                DATA,
            ),
            ValueError,
            "the batch size is not known, as a function over whole batches may change it; pass batch_size=",
        ),
    ],
)
def test_what_is_refused(make: Any, kind: type[Exception], says: str) -> None:
    with pytest.raises(kind, match=says):
        make()


def test_ragged_components_are_values_and_row_splits() -> None:
    compiled = []

    @jax.jit
    def sums(batch: Any, mask: Any) -> Any:
        values, splits = batch["words"]
        compiled.append(values.shape)
        row = jax.numpy.searchsorted(splits, jax.numpy.arange(len(values)), side="right") - 1
        return jax.ops.segment_sum(values, row, num_segments=len(mask)) * mask

    rows = [[i] * (i % 4) for i in range(20)]
    ragged = di.RaggedTensor.from_list(rows, "int32")
    dataset = Dataset.from_tensor_slices({"words": ragged, "key": np.arange(20, dtype=np.int32)}).batch(8)
    sharding = NamedSharding(jax.sharding.Mesh(jax.devices(), ("data",)), PartitionSpec("data"))
    feed = batches(dataset, sharding)
    found = []
    for batch, mask in feed:
        values, splits = batch["words"]
        assert splits.shape == (9,)
        assert values.sharding.is_fully_replicated
        assert batch["key"].sharding == sharding
        cut = [np.asarray(values)[a:b].tolist() for a, b in pairwise(np.asarray(splits))]
        found += cut[: int(mask.sum())]
        assert not any(cut[int(mask.sum()) :])
        assert np.asarray(sums(batch, mask)).tolist() == [sum(row) for row in cut]
    assert found == rows
    assert set(compiled) == {(16,), (8,)}, "12 values in full batches, 6 in the last"
    values, splits = feed.element_spec[0]["words"]
    assert (values.shape, splits.shape) == ((None,), (9,))


def test_rows_of_rows_have_two_splits() -> None:
    ragged = di.RaggedTensor.from_list([[[1], [2, 3]], [], [[4, 5, 6]]] * 3, "int32")
    ((values, inner), outer) = next(iter(batches(Dataset.from_tensor_slices(ragged).batch(8), DATA)))[0]
    assert np.asarray(outer).tolist() == [0, 2, 2, 3, 5, 5, 6, 8, 8]
    assert np.asarray(inner).tolist() == [0, 1, 3, 6, 7, 9, 12, 13, 15]
    assert np.asarray(values).tolist() == [1, 2, 3, 4, 5, 6, 1, 2, 3, 4, 5, 6, 1, 2, 3, 0]


def test_a_distributed_dataset_is_refused() -> None:
    with pytest.raises(TypeError, match="got one that is distributed already"):
        batches(batches(Dataset.range(8).batch(8), DATA), DATA)


def test_an_endless_dataset_has_no_length() -> None:
    with pytest.raises(TypeError, match="the number of batches is infinite"):
        len(batches(Dataset.range(8).repeat().batch(8), DATA))


def test_a_feed_divides_sequences_and_goes_on_on_another_mesh() -> None:
    rows = Dataset.range(22).shuffle(22, seed=1, reshuffle_each_iteration=False)
    dataset = rows.map(lambda x: {"tokens": x * 10 + np.arange(8), "id": x}).batch(8)

    def feed(axes: tuple[int, int, int]) -> Any:
        mesh = jax.make_mesh(axes, ("data", "model", "context"))
        of = lambda *spec: NamedSharding(mesh, PartitionSpec(*spec))  # noqa: E731
        return batches(dataset, {"tokens": of("data", "context"), "id": of("data")})

    whole = [batch["tokens"].tolist() for batch in dataset.iter_pass(0)]
    steps = iter(feed((2, 2, 2)))
    batch, mask = next(steps)
    assert {shard.data.shape for shard in batch["tokens"].addressable_shards} == {(4, 4)}
    assert np.asarray(batch["tokens"])[np.asarray(mask)].tolist() == whole[0]
    saved = json.loads(json.dumps(steps.state()))
    for axes in ((8, 1, 1), (1, 2, 4), (2, 1, 4)):
        rest = list(feed(axes).restore(saved))
        assert [np.asarray(b["tokens"])[np.asarray(m)].tolist() for b, m in rest] == whole[1:]


def test_bytes_of_text_are_values_and_row_splits() -> None:
    texts = di.data.Dataset.from_tensor_slices(["Ada", "", "Zoë"]).batch(3)
    ((values, splits),) = di.interop.jax.batches(texts.as_uint8(), over(axes=(1,)), tail="drop")
    assert [bytes(np.asarray(values[a:b])).decode() for a, b in pairwise(splits.tolist())] == [
        "Ada",
        "",
        "Zoë",
    ]
    with pytest.raises(ValueError, match="turn it into numbers with as_uint8 or map"):
        di.interop.jax.batches(texts, over(axes=(1,)))


def test_numbers_may_be_those_of_numpy() -> None:
    dataset = Dataset.range(9).batch(8).map(lambda x: x + 1)
    feed = batches(dataset, DATA, ahead=np.int64(1), batch_size=np.uint8(8))
    assert values(feed) == dataset.to_list()
