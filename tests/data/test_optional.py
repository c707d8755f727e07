# SPDX-License-Identifier: Apache-2.0
"""A step of an iterator that may have come to its end."""

import pickle
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.dataset import Dataset
from distinput.errors import InvalidArgumentError
from distinput.testing import check_dataset
from distinput.testing.elements import exact

Optional = di.data.experimental.Optional


def test_a_value_is_there() -> None:
    found = Optional.from_value(3)
    assert (found.has_value(), found.get_value(), repr(found)) == (True, 3, "Optional(np.int32(3))")


@pytest.mark.parametrize("value", [None, 0, b"", ()])
def test_any_value_is_one(value: object) -> None:
    assert Optional.from_value(value).has_value()
    assert Optional.from_value(value).get_value() == value


def test_an_empty_one_knows_what_it_would_look_like() -> None:
    spec = di.TensorSpec([], "int64")
    found = Optional.empty(spec)
    assert (found.has_value(), found.element_spec, repr(found)) == (False, spec, "Optional()")
    with pytest.raises(InvalidArgumentError, match=r"does not have a value: the data ended; ask has_value\(\) first"):
        found.get_value()


def test_an_iterator_gives_empty_ones_from_its_end_on() -> None:
    it = iter(di.data.Dataset.range(1))
    found = [it.get_next_as_optional() for _ in range(3)]
    assert [each.has_value() for each in found] == [True, False, False]
    assert {each.element_spec for each in found} == {di.TensorSpec([], "int64")}


def test_its_value_is_an_element_of_its_own() -> None:
    given = np.arange(2)
    found = Optional.from_value((given, [1.5], "a", Dataset.range(2)))
    given[0] = 9
    assert found.get_value()[0].tolist() == [0, 1]
    assert found.get_value()[1:3] == (np.float32(1.5), b"a")
    assert found.get_value()[3].to_list() == [0, 1]


def test_pickled_it_is_the_same() -> None:
    spec = di.TensorSpec([], "int64")
    full, empty = pickle.loads(pickle.dumps((Optional.from_value(3), Optional.empty(spec))))
    assert (full.get_value(), full.element_spec) == (3, di.TensorSpec([], "int32"))
    assert (empty.has_value(), empty.element_spec) == (False, spec)


def halves(n: int = 5) -> Dataset:
    empty = Optional.empty(di.TensorSpec([], "int64"))
    return Dataset.range(n).map(lambda x: Optional.from_value(x // 2) if x % 2 == 0 else empty)


def test_pipelines_of_them_keep_the_laws() -> None:
    check_dataset(lambda: halves().enumerate().shuffle(3, seed=1).concatenate(halves(2).enumerate()))


NESTS: list[Any] = [
    5,
    "text",
    (np.arange(3), {"a": [[1.5]]}),
    di.RaggedTensor.from_list([[1], [2, 3]]),
    di.SparseTensor([[0, 1]], [7], [2, 2]),
    Optional.from_value([1, 2]),
    Optional.empty(di.TensorSpec([None], "string")),
    (),
]


@pytest.mark.parametrize("value", NESTS, ids=[str(i) for i in range(len(NESTS))])
@pytest.mark.parametrize("empty", [False, True])
def test_they_are_saved(value: Any, empty: bool, tmp_path: Any) -> None:
    full = Optional.from_value(value)
    ds = Dataset.from_tensors({"o": full})
    if empty:
        ds = ds.concatenate(Dataset.from_tensors({"o": Optional.empty(full.element_spec)}))
    ds.save(str(tmp_path))
    loaded = Dataset.load(str(tmp_path))
    assert loaded.element_spec == ds.element_spec
    assert list(map(exact, loaded)) == list(map(exact, ds))


def test_a_dataset_in_one_is_not_saved(tmp_path: Any) -> None:
    with pytest.raises(InvalidArgumentError, match=r"save: .* is a dataset; flat_map or zip it first"):
        Dataset.from_tensors(Optional.from_value(Dataset.range(2))).save(str(tmp_path))


def test_other_values_than_stated() -> None:
    stated = di.OptionalSpec(di.TensorSpec([], "int64"))
    with pytest.raises(TypeError, match="yielded an element that is not an Optional of"):
        list(Dataset.from_generator(lambda: iter([3]), output_signature=stated))
    with pytest.raises(TypeError, match="output_signature"):
        list(Dataset.range(1).map(lambda x: Optional.from_value(1.5), output_signature=stated))
    assert [o.get_value() for o in Dataset.range(2).map(Optional.from_value, output_signature=stated)] == [0, 1]


def test_what_a_function_gives_is_of_one_kind() -> None:
    ds = Dataset.from_generator(lambda: iter([1, 2]), output_signature=di.TensorSpec([], "int64"))
    mixed = ds.map(lambda x: Optional.from_value(x) if x == 1 else Optional.from_value(1.5))
    with pytest.raises(TypeError):
        list(mixed)


@pytest.mark.needs("cloudpickle")
def test_through_processes() -> None:
    found = list(halves().map(lambda o: o, processes=True, num_parallel_calls=2))
    assert [o.get_value() if o.has_value() else None for o in found] == [0, None, 1, None, 2]


@pytest.mark.parametrize(
    "step, says",
    [
        (lambda ds: ds.batch(2), "an Optional cannot be batched; map it to its value, get_value"),
        (lambda ds: ds.enumerate().padded_batch(2), r"padded_batch: component \[1\] is an Optional; map it"),
        (lambda ds: ds.unbatch(), "unbatch: All components must have at least one dimension, got an Optional"),
        (
            lambda ds: ds.scan(Optional.from_value(1), lambda s, x: (s, x)),
            "scan: the carried value must be a nest of arrays",
        ),
        (
            lambda _: Dataset.from_tensor_slices(Optional.from_value(1)),
            "must have a first axis to slice, got an Optional",
        ),
    ],
)
def test_what_is_refused_says_so(step: Any, says: str) -> None:
    with pytest.raises((TypeError, InvalidArgumentError), match=says):
        list(step(halves()))


def test_values_that_differ_are_other_datasets() -> None:
    made = [Dataset.from_tensors(Optional.from_value(value)).fingerprint() for value in (1, 2, np.int64(1), 1)]
    assert made[0] == made[3]
    assert len(set(made)) == 3
