# SPDX-License-Identifier: Apache-2.0
"""Arguments that `tf.data` takes, and the errors it has for others."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as tf

D = tf.data.Dataset


def test_a_shuffle_of_unknown_cardinality_holds_all_elements() -> None:
    for source in (D.range(50), D.range(50).filter(lambda x: x >= 0), D.range(50).map(lambda x: x)):
        whole = source.shuffle(tf.data.UNKNOWN_CARDINALITY, seed=3)
        assert sorted(whole.to_list()) == list(range(50))
        assert whole.to_list() == source.shuffle(50, seed=3).repeat(2).to_list()[50:]  # the second pass
        it = iter(whole)
        seen = [int(next(it)) for _ in range(20)]
        assert sorted(seen + [int(x) for x in whole.restore(it.state())]) == list(range(50))
    assert D.range(0).shuffle(tf.data.UNKNOWN_CARDINALITY).to_list() == []
    with pytest.raises(ValueError, match="a buffer of all elements, and the input has no end; give a number"):
        D.range(3).repeat().shuffle(tf.data.UNKNOWN_CARDINALITY)
    with pytest.raises(ValueError, match="buffer_size must be greater than zero, got -1"):
        D.range(3).shuffle(-1)


def test_a_buffer_larger_than_memory_can_be_resumed() -> None:
    stream = D.range(9).filter(lambda x: x >= 0).shuffle(10**15, seed=1)
    it = iter(stream)
    first = [int(next(it)) for _ in range(4)]
    assert sorted(first + [int(x) for x in stream.restore(it.state())]) == list(range(9))


def test_a_list_of_datasets_is_sliced_into_datasets() -> None:
    sources = [D.range(2), D.range(3)]
    assert [d.to_list() for d in D.from_tensor_slices(sources)] == [[0, 1], [0, 1, 2]]
    assert D.from_tensor_slices(sources).flat_map(lambda d: d).to_list() == [0, 1, 0, 1, 2]
    assert D.from_tensor_slices(sources).interleave(lambda d: d, cycle_length=2).to_list() == [0, 0, 1, 1, 2]
    assert D.from_tensor_slices(sources).element_spec == tf.data.DatasetSpec(tf.TensorSpec([], "int64"))
    pairs = D.from_tensor_slices({"d": sources, "x": [7, 8]})
    assert [(e["d"].to_list(), int(e["x"])) for e in pairs] == [([0, 1], 7), ([0, 1, 2], 8)]


def test_a_list_of_datasets_is_one_element() -> None:
    one = D.from_tensors([D.range(2), D.range(3)])
    assert one.element_spec == tf.data.DatasetSpec(tf.TensorSpec([], "int64"), [2])
    assert [d.to_list() for d in one.get_single_element()] == [[0, 1], [0, 1, 2]]
    assert one.unbatch().flat_map(lambda d: d).to_list() == [0, 1, 0, 1, 2]
    assert one.flat_map(D.from_tensor_slices).flat_map(lambda d: d).to_list() == [0, 1, 0, 1, 2]
    it = iter(one.unbatch())
    next(it)
    assert [d.to_list() for d in one.unbatch().restore(it.state())] == [[0, 1, 2]]


def test_datasets_in_a_list_have_a_common_spec() -> None:
    mixed = D.from_tensor_slices([D.range(2).batch(2, drop_remainder=True), D.range(3).batch(3, drop_remainder=True)])
    assert mixed.element_spec == tf.data.DatasetSpec(tf.TensorSpec([None], "int64"))
    with pytest.raises(
        ValueError, match="a list of datasets: all datasets must have the same dtypes, got int64 and float32"
    ):
        D.from_tensor_slices([D.range(2), D.from_tensors(1.0)])
    with pytest.raises(ValueError, match="a list of datasets must hold nothing else, got 3"):
        D.from_tensors([D.range(2), 3])
    with pytest.raises(ValueError, match="must have a first axis to slice, got a dataset; use from_tensors"):
        D.from_tensor_slices(D.range(2))


def test_windows_of_different_shapes_can_be_concatenated() -> None:
    fixed = D.range(4).batch(2, drop_remainder=True).window(2)
    ds = fixed.concatenate(D.range(6).batch(3, drop_remainder=True).window(2)).flat_map(lambda w: w)
    assert ds.element_spec == tf.TensorSpec([None], "int64")
    assert ds.to_list() == [[0, 1], [2, 3], [0, 1, 2], [3, 4, 5]]


def test_a_dataset_of_weights() -> None:
    sources = [D.range(100), D.range(100, 200)]
    weights = D.from_tensor_slices(np.array([[1.0, 0.0]] * 3 + [[0.0, 1.0]] * 3))
    sampled = D.sample_from_datasets(sources, weights=weights)
    assert sampled.to_list() == [0, 1, 2, 100, 101, 102]
    mixed = D.sample_from_datasets(sources, D.from_tensors([0.5, 0.5]).repeat(60), seed=4)
    assert mixed.to_list() == mixed.to_list()
    it = iter(mixed)
    first = [next(it) for _ in range(25)]
    assert [int(x) for x in first] + [int(x) for x in mixed.restore(it.state())] == mixed.to_list()
    assert {int(x) // 100 for x in mixed} == {0, 1}
    assert D.sample_from_datasets(
        [D.range(2)] * 2, D.from_tensors([1.0, 0.0]).repeat(), stop_on_empty_dataset=True
    ).to_list() == [0, 1]


@pytest.mark.parametrize(
    "weights, error, says",
    [
        (D.from_tensors(1.0), ValueError, r"one weight for each of the 2 datasets, got vectors of shape \(\)"),
        (D.from_tensors([1.0] * 3), ValueError, r"one weight for each of the 2 datasets, got vectors of shape \(3,\)"),
        (D.from_tensors("a"), TypeError, "a dataset of weights must give vectors of numbers, got TensorSpec"),
        (D.from_tensors(([1.0], [1.0])), TypeError, "a dataset of weights must give vectors of numbers"),
        ("ab", TypeError, "weights must be numbers or a dataset of vectors of numbers, got 'ab'"),
        ([[0.5, 0.5]], ValueError, r"one weight for each of the 2 datasets, got \(1, 2\)"),
        ([0.5, float("nan")], ValueError, "weights must not be negative"),
    ],
)
def test_weights_that_are_none(weights: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        D.sample_from_datasets([D.range(3), D.range(3)], weights=weights)


def test_weights_that_are_all_zero_are_told_when_they_come() -> None:
    with pytest.raises(ValueError, match="one weight must be greater than zero"):
        D.sample_from_datasets([D.range(3)] * 2, D.from_tensors([0.0, 0.0])).to_list()


NESTED = D.from_tensors((np.array([1, 2]), (np.array([3]), np.array([4.0], np.float32))))
SHAPES = ([3], ([2], [2]))


def test_none_stands_for_the_padding_of_a_whole_part() -> None:
    want = [([[1, 2, -1]], ([[3, 0]], [[4.0, 0.0]]))]
    assert NESTED.padded_batch(2, SHAPES, padding_values=(-1, None)).to_list() == want
    assert NESTED.padded_batch(2, SHAPES, padding_values=(-1, (None, 0.0))).to_list() == want
    named = D.from_tensors({"a": [1], "b": {"c": ["x"]}})
    shapes = {"a": [2], "b": {"c": [2]}}
    assert named.padded_batch(1, shapes, {"a": 3, "b": None}).to_list() == [{"a": [[1, 3]], "b": {"c": [[b"x", b""]]}}]


@pytest.mark.parametrize(
    "values, says",
    [
        (
            (-1, (2,)),
            "padding_values: the structures differ: expected a tuple of 2, got a tuple of 1; nest it as the elem",
        ),
        ((-1, 7), "padding_values: the structures differ: expected a tuple of 2, got a int"),
        ((1.5, None), "padding value of component .0. must have its dtype int64, got float32"),
        (1.5, "padding value of component .0. must have its dtype int64, got float32"),
    ],
)
def test_padding_values_that_do_not_fit(values: Any, says: str) -> None:
    with pytest.raises(TypeError, match=says):
        NESTED.padded_batch(2, SHAPES, padding_values=values)


def test_a_padding_value_is_a_number_that_the_dtype_has() -> None:
    small = D.from_tensors(np.array([1], np.uint8))
    assert small.padded_batch(1, [2], 255).to_list() == [[[1, 255]]]
    with pytest.raises(TypeError, match="must have its dtype uint8, got int32"):
        small.padded_batch(1, [2], 300)


@pytest.mark.parametrize(
    "shapes, error, says",
    [
        ([[2]], ValueError, r"must be one list of dimensions, such as \[None, 3\], got \[\[2\]\]"),
        (np.array([[2, 3]]), ValueError, "must be one list of dimensions"),
        ([2.5], TypeError, r"must be integers or None, got \[2.5\]"),
        (["a"], TypeError, r"must be integers or None, got \['a'\]"),
        ([-2], ValueError, "must be at least 0, or None, got"),
        (tf.TensorShape(None), ValueError, "has an unknown rank"),
        ([1], ValueError, "it is smaller"),
        ([2, 1], ValueError, "the ranks differ"),
    ],
)
def test_padded_shapes_that_are_none(shapes: Any, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says):
        D.from_tensors([1, 2]).padded_batch(2, padded_shapes=shapes)


def test_padded_shapes_are_lists_arrays_numbers_or_shapes() -> None:
    for shapes in ([3], (3,), 3, np.array([3]), tf.TensorShape([3])):
        assert D.from_tensors([1, 2]).padded_batch(2, padded_shapes=shapes).to_list() == [[[1, 2, 0]]]


def test_prefetch_of_none_is_autotune() -> None:
    assert str(D.range(4).prefetch(None).node) == str(D.range(4).prefetch(tf.data.AUTOTUNE).node)
    assert D.range(4).prefetch(None).prefetch(2).to_list() == [0, 1, 2, 3]


HINT = tf.data.experimental.SHARD_HINT


@pytest.mark.parametrize("num_shards", [HINT, np.int64(HINT), np.array(HINT)])
@pytest.mark.parametrize("index, cardinality", [(HINT, -3), (np.int32(HINT), -3), (0, -4), (3, -4), (-5, -3)])
def test_a_shard_hint_in_every_spelling(num_shards: Any, index: Any, cardinality: int) -> None:
    for hint in (D.range(4).shard(num_shards, index), D.range(4).shard(index=index, num_shards=num_shards)):
        assert hint.cardinality() == cardinality
        with pytest.raises(
            tf.errors.FailedPreconditionError, match=r"shard\(SHARD_HINT, SHARD_HINT\) can only be used"
        ):
            next(iter(hint))


@pytest.mark.parametrize("index", [HINT, 0])
def test_the_policy_puts_the_worker_in_the_place_of_a_hint(index: int) -> None:
    options = tf.data.Options()
    options.experimental_distribute.auto_shard_policy = tf.data.experimental.AutoShardPolicy.HINT
    hint = D.range(6).shard(HINT, index).with_options(options)
    parts = [tf.data.experimental.auto_shard_dataset(hint, 3, worker).to_list() for worker in range(3)]
    assert parts == [[0, 3], [1, 4], [2, 5]]


@pytest.mark.parametrize("error", [tf.errors.InvalidArgumentError, tf.errors.NotFoundError, FileNotFoundError])
def test_no_file_that_matches(error: type[Exception], tmp_path: Any) -> None:
    for shuffle in (None, False):
        with pytest.raises(error, match=r"No files matched pattern: .*nothing\*"):
            D.list_files(str(tmp_path / "nothing*"), shuffle=shuffle)


def test_a_default_of_the_right_size_takes_the_shape() -> None:
    message = tf.io.encode_example({"other": [1]})
    for default in ([1, 2, 3, 4], [[1, 2], [3, 4]], np.arange(1, 5).reshape(4, 1)):
        feature = tf.io.FixedLenFeature([2, 2], "int64", default)
        assert tf.io.parse_single_example(message, {"x": feature})["x"].tolist() == [[1, 2], [3, 4]]
    with pytest.raises(ValueError, match=r"must be a scalar or of shape \[2, 2\], got shape \[3\]"):
        tf.io.FixedLenFeature([2, 2], "int64", [1, 2, 3])


@pytest.mark.parametrize("shape", [None, tf.TensorShape(None), [None], [2, -1], "ab", 1.5])
def test_the_shape_of_a_feature_must_be_known(shape: Any) -> None:
    for feature in (tf.io.FixedLenFeature, lambda s, t: tf.io.FixedLenSequenceFeature(s, t, allow_missing=True)):
        with pytest.raises(ValueError, match="all dimensions of the shape must be known, got"):
            feature(shape, "int64")


def test_a_dataset_spec_has_a_shape() -> None:
    spec = tf.TensorSpec([], "int64")
    assert tf.data.DatasetSpec(spec, [2]).dataset_shape == [2]
    assert tf.data.DatasetSpec(spec) == tf.data.DatasetSpec(spec, ()) != tf.data.DatasetSpec(spec, [2])
    assert repr(tf.data.DatasetSpec(spec)) == "DatasetSpec(element_spec=TensorSpec(shape=(), dtype=int64))"


def test_a_generator_gets_its_arguments_as_arrays() -> None:
    given: list[Any] = []

    def generate(*args: Any) -> Any:
        given.extend(args)
        yield 0

    D.from_generator(generate, "int64", args=("a", 3, 2.5, ["x", "y"], [1, 2], b"z", (1, 2))).to_list()
    assert [type(x) for x in given] == [bytes, np.int32, np.float32, np.ndarray, np.ndarray, bytes, np.ndarray]
    assert given[0] == b"a"
    assert given[3].tolist() == [b"x", b"y"]
    for args in (3, ({"a": 1},), (None,)):
        with pytest.raises(TypeError, match="from_generator: args must be"):
            D.from_generator(generate, "int64", args=args)


def test_an_iterator_gives_optionals() -> None:
    it = iter(D.range(1))
    first, after = it.get_next_as_optional(), it.get_next_as_optional()
    assert (first.has_value(), first.get_value(), first.element_spec) == (True, 0, tf.TensorSpec([], "int64"))
    assert (after.has_value(), it.get_next_as_optional().has_value()) == (False, False)
    with pytest.raises(tf.errors.InvalidArgumentError, match="does not have a value"):
        after.get_value()
    with pytest.raises(tf.errors.OutOfRangeError):
        it.get_next()
    made = tf.data.experimental.Optional
    assert made.from_value(3).get_value() == 3
    assert not made.empty(tf.TensorSpec([], "int64")).has_value()


def test_a_variable_is_the_number_that_it_holds_when_the_step_is_made() -> None:
    variable = tf.Variable(3)
    made = {
        "range": D.range(variable),
        "range with steps": D.range(variable, 9, variable),
        "take": D.range(9).take(variable),
        "skip": D.range(9).skip(variable),
        "repeat": D.range(2).repeat(variable),
        "batch": D.range(9).batch(variable),
        "an array": D.range(9).take(np.array(3)),
    }
    before = {name: [np.asarray(x).tolist() for x in dataset] for name, dataset in made.items()}
    assert before["take"] == [0, 1, 2]
    assert before["range with steps"] == [3, 6]
    assert len(before["repeat"]) == 6
    variable.assign(5)
    assert {name: [np.asarray(x).tolist() for x in dataset] for name, dataset in made.items()} == before


def test_boundaries_may_be_any_sequence() -> None:
    ragged = D.range(1, 9).map(lambda n: np.full(n, n))
    made = ragged.bucket_by_sequence_length(len, range(2, 8, 2), np.array([2, 2, 2, 2]))
    assert len(list(made)) == 5
    with pytest.raises(TypeError, match="bucket_boundaries must be a list of integers, got 'ab'"):
        ragged.bucket_by_sequence_length(len, "ab", [2, 2, 2])


def test_a_shape_of_an_array() -> None:
    assert tf.TensorShape(np.array([2, 3])) == [2, 3]
    assert tf.TensorShape(np.array([4])) == [4]
    assert tf.TensorShape(np.int64(4)) == [4]


def test_an_optional_knows_the_spec_of_its_value() -> None:
    of = tf.data.experimental.Optional.from_value
    assert of(37.0).element_spec == tf.TensorSpec([], "float32")
    assert of({"a": np.zeros(2)}).element_spec == {"a": tf.TensorSpec([2], "float64")}


def test_a_function_may_be_signed_for_a_dataset() -> None:
    @tf.function(input_signature=[tf.data.DatasetSpec(tf.TensorSpec([], tf.int64))])
    def total(dataset: Any) -> int:
        return sum(int(x) for x in dataset)

    assert total(D.range(4)) == 6
    for other in (D.from_tensors("a"), 3):
        with pytest.raises(TypeError, match="argument 0 must fit DatasetSpec"):
            total(other)


def test_a_label_leaves_the_other_features_their_sizes(tmp_path: Path) -> None:
    path = str(tmp_path / "a.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for n in range(4):
            writer.write(tf.io.encode_example({"n": n, "k": [b"a"] * n, "label": b"x"}))
    features = {
        "n": tf.io.FixedLenFeature([], "int64"),
        "label": tf.io.FixedLenFeature([], "string"),
        "k": tf.io.VarLenFeature("string"),
    }
    made = tf.data.experimental.make_batched_features_dataset(path, 2, features, num_epochs=None, label_key="label")
    (rest, label) = made.element_spec
    assert label.shape == rest["n"].shape == [2]
    assert rest["k"].shape == [2, None]
    assert next(iter(made))[1].tolist() == [b"x", b"x"]


@pytest.mark.parametrize(
    "then, wanted",
    [
        (lambda ds: ds.ragged_batch(1), "EEe"),
        (lambda ds: ds.sparse_batch(1, [None]), "EEe"),
        (lambda ds: ds.batch(1), "EEe"),
    ],
)
def test_steps_end_where_every_element_fails(then: Any, wanted: str) -> None:
    assert told(then(D.range(2).map(failing))) == wanted


def test_what_does_not_fail_is_reduced_all_the_same() -> None:
    reducer = tf.data.experimental.Reducer(lambda _: np.int64(0), lambda s, x: s + x, lambda s: s)
    made = D.range(8).map(lambda x: failing(x) if x == 3 else x)
    grouped = tf.data.experimental.group_by_reducer(lambda x: x % 2, reducer)
    assert told(made.apply(grouped)) == "Evve"
    assert made.apply(tf.data.experimental.ignore_errors()).apply(grouped).to_list() == [12, 13]


def failing(_: Any) -> Any:
    raise ValueError("bad")


def told(dataset: Any) -> str:
    """What each call of `next` does, up to the end: E for an error, v for a value, e for the end."""
    iterator, found = iter(dataset), ""
    while len(found) < 20 and not found.endswith("e"):
        try:
            next(iterator)
            found += "v"
        except StopIteration:
            found += "e"
        except Exception:  # noqa: BLE001 - any error of the function
            found += "E"
    return found
