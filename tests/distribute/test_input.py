# SPDX-License-Identifier: Apache-2.0
import json
from dataclasses import replace
from importlib import import_module
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.data import Dataset
from distinput.distribute import (
    CentralStorageStrategy,
    InputContext,
    InputOptions,
    InputReplicationMode,
    MirroredStrategy,
    OneDeviceStrategy,
    PerReplicaSpec,
    Strategy,
    get_strategy,
)
from distinput.errors import InvalidArgumentError, OutOfRangeError, StateError
from distinput.values.spec import TensorSpec
from tests.distribute.list_dataset import ListDataset, batches

PER_REPLICA = InputReplicationMode.PER_REPLICA
distributed_input = import_module("distinput.distribute.input.distribution")


def mirrored(replicas: int) -> MirroredStrategy:
    return MirroredStrategy([f"CPU:{i}" for i in range(replicas)])


def dealt(strategy: Strategy, *datasets: Any, **options: Any) -> Any:
    """A distributed dataset of the user's own datasets, which need no cutting."""
    given_back = iter(datasets)
    return strategy.distribute_datasets_from_function(lambda context: next(given_back), InputOptions(**options))


def piped(elements: list[Any], spec: Any) -> Dataset:
    """A pipeline that gives these elements."""
    return Dataset.from_generator(lambda: elements, output_signature=spec)


def rows(strategy: Strategy, steps: Any) -> list[list[list[int]]]:
    return [[part.tolist() for part in strategy.experimental_local_results(step)] for step in steps]


@given(st.integers(1, 5), st.lists(st.integers(0, 4), max_size=12))
def test_every_row_is_delivered_once_and_in_order(replicas: int, sizes: list[int]) -> None:
    strategy = mirrored(replicas)
    steps = rows(strategy, dealt(strategy, ListDataset(batches(*sizes))))
    assert all(len(step) == replicas for step in steps)
    assert [x for step in steps for part in step for x in part] == list(range(sum(sizes)))
    assert len(steps) == -(-len(sizes) // replicas)


@given(st.integers(1, 5), st.lists(st.integers(0, 9), max_size=8))
def test_a_balanced_split_delivers_every_row_once(replicas: int, sizes: list[int]) -> None:
    strategy = mirrored(replicas)
    dataset = piped(batches(*sizes), TensorSpec([None], "int64"))
    steps = rows(strategy, strategy.experimental_distribute_dataset(dataset, InputOptions(balanced_split=True)))
    assert len(steps) == len(sizes)
    for step in steps:
        assert replicas == 1 or max(map(len, step)) - min(map(len, step)) <= 1
    assert [x for step in steps for part in step for x in part] == list(range(sum(sizes)))


@given(st.integers(1, 4), st.lists(st.integers(0, 3), max_size=9), st.data())
def test_restoring_gives_exactly_the_rest(replicas: int, sizes: list[int], data: st.DataObject) -> None:
    strategy = mirrored(replicas)
    dataset = dealt(strategy, ListDataset([(np.arange(n), np.ones((n, 5))) for n in sizes], PAIR))
    whole = [repr(step) for step in dataset]
    at = data.draw(st.integers(0, len(whole)))
    iterator = iter(dataset)
    for _ in range(at):
        next(iterator)
    state = json.loads(json.dumps(iterator.state()))
    assert [repr(step) for step in dataset.restore(state)] == whole[at:]
    again = iter(dataset)
    again.load_state_dict(state)
    assert [repr(step) for step in again] == whole[at:]
    ended = json.loads(json.dumps(again.state_dict()))
    assert list(dataset.restore(ended)) == []


PAIR = (TensorSpec([None], "int64"), TensorSpec([None, None], "float64"))


def test_an_empty_replica_keeps_dtype_and_inner_shape() -> None:
    strategy = mirrored(3)
    (step,) = dealt(strategy, ListDataset([(np.arange(2), np.ones((2, 5)))], PAIR))
    assert [(part.shape, part.dtype.name) for part in step[0].values] == [((2,), "int64"), *[((0,), "int64")] * 2]
    assert [part.shape for part in step[1].values] == [(2, 5), (0, 5), (0, 5)]
    assert strategy.gather(step[1], axis=0).shape == (2, 5)


def test_the_end() -> None:
    iterator = iter(dealt(mirrored(2), ListDataset(batches(1))))
    assert iterator.get_next().values[0].tolist() == [0]
    for _ in range(2):
        with pytest.raises(OutOfRangeError, match="End of sequence"):
            iterator.get_next()
        with pytest.raises(StopIteration):
            next(iterator)
    nothing = iterator.get_next_as_optional()
    assert not nothing.has_value()
    with pytest.raises(InvalidArgumentError, match="does not have a value"):
        nothing.get_value()


def test_static_shapes_drop_a_last_incomplete_step() -> None:
    strategy = mirrored(2)
    scalars = dealt(strategy, ListDataset(range(3), TensorSpec([], "int64")))
    assert [step.values for step in scalars] == [(0, 1)]
    iterator = iter(scalars)
    found = []
    while (step := iterator.get_next_as_optional()).has_value():
        found.append(step.get_value().values)
    assert found == [(0, 1), (2, 0)]  # a scalar has no rows to leave out, so its stand-in is a zero


def test_an_infinite_data_set_that_ends() -> None:
    iterator = iter(dealt(mirrored(2), ListDataset(batches(1, 1, 1), cardinality=-1)))
    assert iterator.get_next_as_optional().has_value()
    with pytest.raises(OutOfRangeError):
        iterator.get_next_as_optional()


def test_central_storage_delivers_a_last_incomplete_step() -> None:
    strategy = CentralStorageStrategy(["CPU:0", "CPU:1"])
    assert rows(strategy, dealt(strategy, ListDataset(batches(1, 1, 1)))) == [[[0], [1]], [[2], []]]


def test_a_pipeline_for_each_replica() -> None:
    strategy = mirrored(2)
    contexts: list[tuple[int, int, int]] = []

    def make(context: InputContext) -> ListDataset:
        contexts.append((context.num_input_pipelines, context.input_pipeline_id, context.num_replicas_in_sync))
        return ListDataset(batches(2, 1) if context.input_pipeline_id == 0 else batches(2, 2, 1))

    options = InputOptions(experimental_replication_mode=PER_REPLICA)
    dataset = strategy.distribute_datasets_from_function(make, options)
    assert contexts == [(2, 0, 2), (2, 1, 2)]
    assert rows(strategy, dataset) == [[[0, 1], [0, 1]], [[2], [2, 3]], [[], [4]]]
    iterator = iter(dataset)
    next(iterator), next(iterator)
    assert rows(strategy, dataset.restore(iterator.state())) == [[[], [4]]]
    strategy.distribute_datasets_from_function(make)
    assert contexts[2:] == [(1, 0, 2)]  # the strategy itself has not changed


def test_it_starts_over_each_time() -> None:
    strategy = mirrored(2)
    dataset = dealt(strategy, ListDataset(batches(1, 1)))
    assert rows(strategy, dataset) == rows(strategy, dataset) == [[[0], [1]]]
    one, two = iter(dataset), iter(dataset)
    assert rows(strategy, one) == rows(strategy, two)


def test_specs_and_cardinality() -> None:
    leaf = TensorSpec([None], "int64")
    two = dealt(mirrored(2), ListDataset(batches(1), {"x": leaf}, cardinality=-2))
    assert two.element_spec == iter(two).element_spec == {"x": PerReplicaSpec(leaf, leaf)}
    assert two.cardinality == -2
    assert dealt(mirrored(1), ListDataset(batches(1))).element_spec == leaf
    eight = piped([np.arange(8)], TensorSpec([8], "int64"))
    options = InputOptions(balanced_split=True)
    assert mirrored(2).experimental_distribute_dataset(eight, options).element_spec.value_specs[0].shape == (4,)
    assert mirrored(3).experimental_distribute_dataset(eight, options).element_spec.value_specs[0].shape == (None,)


def test_one_replica_gets_plain_elements() -> None:
    for strategy in (mirrored(1), OneDeviceStrategy("CPU:0")):
        steps = list(strategy.experimental_distribute_dataset(Dataset.range(2)))
        assert steps == [0, 1]


def test_the_default_strategy_changes_nothing() -> None:
    dataset = ListDataset(batches(1))
    assert get_strategy().experimental_distribute_dataset(dataset) is dataset
    assert dealt(get_strategy(), dataset) is dataset


def test_reduce_goes_over_all_steps() -> None:
    strategy = mirrored(2)
    dataset = dealt(strategy, ListDataset(batches(2, 2, 1)))
    assert dataset.reduce(0, lambda total, step: total + strategy.reduce("SUM", step, axis=0)) == 10


def test_it_has_no_transformations() -> None:
    dataset = dealt(mirrored(2), ListDataset(batches(1)))
    for name in ("map", "batch", "shuffle", "take", "repeat", "prefetch", "filter"):
        assert not hasattr(dataset, name)
    with pytest.raises(AttributeError, match=r"no attribute 'map'; .* transform the dataset before you distribute it"):
        dataset.map(lambda x: x)


def test_its_length_is_the_number_of_steps() -> None:
    strategy = mirrored(2)
    batches = Dataset.range(10).batch(4)
    assert len(strategy.experimental_distribute_dataset(batches)) == 3
    assert len(strategy.experimental_distribute_dataset(batches.take(0))) == 0
    assert bool(strategy.experimental_distribute_dataset(batches.take(0))) is True
    with pytest.raises(TypeError, match="number of steps of this distributed dataset is infinite"):
        len(strategy.experimental_distribute_dataset(batches.repeat()))
    with pytest.raises(TypeError, match="is known only at the end"):
        len(strategy.experimental_distribute_dataset(batches.filter(lambda x: True)))


def test_steps_are_taken_outside_of_replicas() -> None:
    strategy, other = mirrored(2), mirrored(3)
    iterator = iter(dealt(strategy, ListDataset(batches(1, 1))))
    with pytest.raises(ValueError, match=r"next\(iterator\) should be called from outside of replica_fn"):
        strategy.run(lambda: next(iterator))
    with other.scope(), pytest.raises(RuntimeError, match=r"Mixing different tf\.distribute\.Strategy objects"):
        next(iterator)
    with strategy.scope():
        assert next(iterator).values[1].tolist() == [1]


def test_an_error_loses_no_element() -> None:
    strategy = mirrored(2)
    iterator = iter(dealt(strategy, ListDataset([*batches(1), OSError("disk"), *batches(2)])))
    with pytest.raises(OSError, match="disk"):
        next(iterator)
    with pytest.raises(StateError, match="failed when some replicas had their element"):
        iterator.state()
    assert rows(strategy, iterator) == [[[0], [0, 1]]]


def test_closing() -> None:
    inner = ListDataset(batches(1, 1, 1))
    dataset = dealt(mirrored(2), inner)
    with iter(dataset) as iterator:
        next(iterator)
    assert inner.closed == 1
    assert list(iterator) == []
    dataset.reduce(0, lambda total, step: total)
    assert inner.closed == 2


@pytest.mark.parametrize(
    "change, text",
    [
        ({"kind": "other"}, "not a state of a distributed iterator"),
        ({"version": 99}, "version 99"),
        ({"step": 1}, "not as it was saved"),
    ],
)
def test_a_foreign_state_is_refused(change: dict[str, Any], text: str) -> None:
    dataset = dealt(mirrored(2), ListDataset(batches(1, 1)))
    with pytest.raises(StateError, match=text):
        dataset.restore({**iter(dataset).state(), **change})


def test_a_state_of_other_replicas_is_refused() -> None:
    state = iter(dealt(mirrored(3), ListDataset(batches(1, 1)))).state()
    with pytest.raises(StateError, match="replicas=3, this dataset has replicas=2"):
        dealt(mirrored(2), ListDataset(batches(1, 1))).restore(state)


def test_what_cannot_be_distributed() -> None:
    strategy = mirrored(2)
    with pytest.raises(TypeError, match="got a list"):
        strategy.experimental_distribute_dataset([1])
    with pytest.raises(TypeError, match="distributed already"):
        strategy.experimental_distribute_dataset(dealt(strategy, ListDataset([])))
    spec = {"a": TensorSpec([], "int64"), "b": TensorSpec([None], "int64")}
    with pytest.raises(ValueError, match=r"component \['a'\] has no batch axis.*\.batch\(global_batch_size\)"):
        strategy.experimental_distribute_dataset(piped([], spec))
    with pytest.raises(TypeError, match="dataset_fn must be callable"):
        strategy.distribute_datasets_from_function(ListDataset([]))  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="dataset_fn must return a dataset, got a NoneType"):
        strategy.distribute_datasets_from_function(lambda context: None)


def test_input_options() -> None:
    options = InputOptions()
    assert (
        options.experimental_fetch_to_device,
        options.experimental_replication_mode,
        options.experimental_place_dataset_on_device,
        options.experimental_per_replica_buffer_size,
        options.balanced_split,
    ) == (True, InputReplicationMode.PER_WORKER, False, 1, False)
    assert InputOptions(None) == options
    with pytest.raises(TypeError):
        InputOptions(no_such_option=1)  # type: ignore[call-arg]


def test_where_a_pipeline_per_replica_is_possible() -> None:
    options = InputOptions(experimental_replication_mode=PER_REPLICA)
    for strategy in (mirrored(2), OneDeviceStrategy("CPU:0"), CentralStorageStrategy()):
        with pytest.raises(NotImplementedError, match=r"InputReplicationMode\.PER_REPLICA is only supported in"):
            strategy.experimental_distribute_dataset(ListDataset([]), options)
    with pytest.raises(NotImplementedError, match=r"InputReplicationMode\.PER_REPLICA is only supported in"):
        OneDeviceStrategy("CPU:0").distribute_datasets_from_function(lambda c: ListDataset([]), options)
    made = CentralStorageStrategy(["CPU:0", "CPU:1"]).distribute_datasets_from_function(
        lambda c: ListDataset([]), options
    )
    assert list(made) == []


def test_where_a_data_set_is_placed() -> None:
    strategy = mirrored(2)
    place = {"experimental_place_dataset_on_device": True}
    with pytest.raises(ValueError, match=r"only supported together with .*PER_REPLICA"):
        dealt(strategy, ListDataset([]), **place)
    with pytest.raises(ValueError, match="needs experimental_fetch_to_device=False"):
        dealt(strategy, ListDataset([]), **place, experimental_replication_mode=PER_REPLICA)
    fine = {"experimental_replication_mode": PER_REPLICA, "experimental_fetch_to_device": False}
    assert list(dealt(strategy, ListDataset([]), ListDataset([]), **place, **fine)) == []


def test_input_context() -> None:
    context = InputContext(num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=4)
    assert context.get_per_replica_batch_size(0) == 0
    assert context.get_per_replica_batch_size(12) == 3
    with pytest.raises(ValueError, match="is not divisible by `num_replicas_in_sync`"):
        context.get_per_replica_batch_size(6)
    assert str(context) == "tf.distribute.InputContext(input pipeline id 1, total: 2)"
    assert str(InputContext()) == "tf.distribute.InputContext(input pipeline id 0, total: 1)"


class FarDevices:
    """Devices that mark what was put on them."""

    host_memory = False
    local = ("TPU:0", "TPU:1")

    def put(self, value: Any, device: int, *, owned: bool) -> Any:
        return (device, owned, value.tolist())


@pytest.mark.parametrize("fetch", [True, False])
def test_parts_are_put_on_the_devices(fetch: bool) -> None:
    strategy = mirrored(2)
    strategy._replicas = replace(strategy._replicas, devices=FarDevices())  # type: ignore[arg-type]
    (step,) = dealt(strategy, ListDataset(batches(1, 2)), experimental_fetch_to_device=fetch)
    parts = [value if fetch else (i, True, value.tolist()) for i, value in enumerate(step.values)]
    assert parts == [(0, True, [0]), (1, True, [1, 2])]


def test_a_placeholder_of_an_unknown_shape_does_not_count() -> None:
    strategy = MirroredStrategy(["CPU:0", "CPU:1"])
    scalars = Dataset.from_generator(lambda: iter((10.0, 20.0, 30.0)), output_signature=TensorSpec(None, "float32"))
    steps = list(strategy.distribute_datasets_from_function(lambda _: scalars))
    assert [float(strategy.reduce("MEAN", step, axis=None)) for step in steps] == [15, 30]


def test_a_mask_leaves_out_what_was_made_of_a_placeholder() -> None:
    strategy = MirroredStrategy(["CPU:0", "CPU:1"])
    steps = iter(strategy.distribute_datasets_from_function(lambda _: Dataset.from_tensor_slices([3, 5, 7])))
    steps.get_next_as_optional()
    step = steps.get_next_as_optional().get_value()
    value = strategy.run(lambda x: np.full(2, float(x)), args=(step,))
    mask = strategy.run(lambda x: np.array([True, False]), args=(step,))
    assert strategy.reduce("MEAN", value, axis=0, mask=mask) == 7
    assert strategy.gather(value, axis=0, mask=mask).tolist() == [7]
    with pytest.raises(TypeError, match=r"mask must be one vector of booleans for each of 2 replicas, got 1"):
        strategy.reduce("MEAN", value, axis=0, mask=np.array([True, False]))
