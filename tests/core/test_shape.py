# SPDX-License-Identifier: Apache-2.0
"""`TensorShape`: a tuple that knows what `tf.TensorShape` knows."""

import copy
import pickle

import pytest

import distinput as di


def test_it_is_a_tuple_and_equals_lists() -> None:
    shape = di.TensorShape([None, 3])
    for same in ((None, 3), [None, 3], di.TensorShape([None, 3])):
        assert shape == same
        assert same == shape
    for other in ((None, 4), [None, 4], 3, None):
        assert shape != other
        assert other != shape
    assert hash(shape) == hash((None, 3))
    assert {(None, 3): "found"}[shape] == "found"
    assert (len(shape), shape[1], list(shape), str(shape)) == (2, 3, [None, 3], "(None, 3)")
    assert repr(shape) == "TensorShape([None, 3])"
    assert isinstance(shape, tuple)


def test_what_it_tells() -> None:
    shape = di.TensorShape((None, 3))
    assert (shape.rank, shape.ndims, shape.as_list(), shape.dims) == (2, 2, [None, 3], [None, 3])
    assert shape.num_elements() is None
    assert not shape.is_fully_defined()
    assert di.TensorShape([2, 3]).num_elements() == 6
    assert di.TensorShape([]).num_elements() == 1
    assert di.TensorShape(5) == [5]


def test_parts_and_sums_are_shapes_again() -> None:
    shape = di.TensorShape([None, 3, 4])
    assert shape[1:].as_list() == [3, 4]
    assert (shape + [5]).as_list() == [None, 3, 4, 5]  # noqa: RUF005 - it is the operator that is tried
    assert ([7] + shape[2:]).as_list() == [7, 4]  # noqa: RUF005
    assert ((7,) + shape[2:]).as_list() == [7, 4]  # noqa: RUF005
    assert shape.concatenate(None).rank is None


def test_two_shapes_of_one_array() -> None:
    shape = di.TensorShape([None, 3])
    assert shape.is_compatible_with([2, 3])
    assert shape.is_compatible_with(None)
    assert not shape.is_compatible_with([2, 4])
    assert shape.merge_with([2, None]) == [2, 3]
    assert shape.most_specific_compatible_shape([2, 3]) == [None, 3]
    assert shape.most_specific_compatible_shape([3]).rank is None
    assert shape.with_rank(2) == shape
    assert di.TensorShape(None).with_rank(2) == [None, None]
    with pytest.raises(ValueError, match=r"the shapes \(None, 3\) and \(2, 4\) are not compatible"):
        shape.merge_with([2, 4])
    with pytest.raises(ValueError, match=r"the shape \(None, 3\) must have rank 1"):
        shape.with_rank(1)
    with pytest.raises(ValueError, match="a size must be at least 0, or None, got"):
        di.TensorShape([-3])


def test_an_unknown_rank() -> None:
    unknown = di.TensorShape(None)
    assert unknown.rank is None
    assert unknown.dims is None
    assert not unknown
    assert unknown == di.TensorShape(None)
    assert unknown != di.TensorShape([])
    assert di.TensorShape([]) != unknown
    assert (str(unknown), repr(unknown), unknown[1:]) == ("<unknown>", "TensorShape(None)", unknown)
    assert unknown.merge_with([2]) == [2]
    assert not unknown.is_fully_defined()
    assert unknown.num_elements() is None
    for look in (len, list, di.TensorShape.as_list):
        with pytest.raises(ValueError, match="unknown rank"):
            look(unknown)  # type: ignore[operator]
    assert di.TensorSpec(unknown, "int64").shape is None


@pytest.mark.parametrize("dims", [None, [], [None, 3]])
def test_it_can_be_copied_and_sent(dims: list[int | None] | None) -> None:
    shape = di.TensorShape(dims)
    assert pickle.loads(pickle.dumps(shape)) == shape == copy.deepcopy(shape)
    assert type(pickle.loads(pickle.dumps(shape))) is type(shape)


def test_specs_have_such_shapes() -> None:
    spec = di.data.Dataset.range(4).batch(2, drop_remainder=True).batch(3).element_spec
    assert spec.shape.as_list() == [None, 2]
    assert spec.shape == [None, 2]
    assert spec.shape == (None, 2)
    assert di.TensorSpec(di.TensorShape([2]), "int64") == di.TensorSpec([2], "int64") == di.TensorSpec(2, "int64")
