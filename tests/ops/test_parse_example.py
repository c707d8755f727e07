# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import plain, until_error

RECORDS = [di.io.encode_example({"x": [i], "v": [0.5] * i}) for i in range(3)]
STRINGS = di.data.Dataset.from_tensor_slices(RECORDS)
FIXED = {"x": di.io.FixedLenFeature([], "int64")}
VARYING = {"v": di.io.VarLenFeature("float32")}


def test_records_become_dicts() -> None:
    assert [plain(x) for x in STRINGS.parse_example({**FIXED, **VARYING})] == [
        {"v": [], "x": 0},
        {"v": [0.5], "x": 1},
        {"v": [0.5, 0.5], "x": 2},
    ]


def test_batches_of_records_become_batches() -> None:
    made = STRINGS.batch(2).parse_example(FIXED)
    assert made.element_spec == {"x": di.TensorSpec([None], "int64")}
    assert [plain(x) for x in made] == [{"x": [0, 1]}, {"x": [2]}]


@pytest.mark.parametrize(
    "dataset", [di.data.Dataset.range(3), STRINGS.map(lambda x: (x, x)), STRINGS.batch(1).batch(1)]
)
def test_elements_must_be_strings(dataset: di.data.Dataset) -> None:
    with pytest.raises(TypeError, match="parse_example: elements must be strings or vectors of strings, got"):
        dataset.parse_example(FIXED)


def test_a_batch_of_features_of_variable_length_is_ragged() -> None:
    one_by_one = STRINGS.parse_example(VARYING).ragged_batch(2)
    at_once = STRINGS.batch(2).parse_example(VARYING)
    assert at_once.element_spec == one_by_one.element_spec
    assert at_once.to_list() == one_by_one.to_list()


def test_a_batch_of_sequences_is_padded_to_the_longest() -> None:
    sequences = {"s": di.io.FixedLenSequenceFeature([], "string", allow_missing=True, default_value="-")}
    records = [di.io.encode_example({"s": [b"a"] * n}) for n in (1, 0, 2)]
    ds = di.data.Dataset.from_tensor_slices(records).batch(2).parse_example(sequences)
    assert ds.element_spec == {"s": di.TensorSpec([None, None], "string")}
    assert ds.to_list() == [{"s": [[b"a"], [b"-"]]}, {"s": [[b"a", b"a"]]}]


def test_parallel_calls_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="parse_example: num_parallel_calls must be at least 1, or AUTOTUNE"):
        STRINGS.parse_example(FIXED, num_parallel_calls=0)


def test_a_record_that_lacks_a_feature_is_named() -> None:
    _, error = until_error(STRINGS.parse_example({"y": di.io.FixedLenFeature([], "int64")}))
    assert isinstance(error, InvalidArgumentError)
    assert "y" in str(error)


def test_workers_pad_sequences_to_the_longest_of_the_whole_batch() -> None:
    records = [di.io.encode_example({"a": np.arange(size, dtype=np.float32)}) for size in (1, 4, 2, 3)]
    feature = di.io.FixedLenSequenceFeature([], "float32", allow_missing=True)
    ds = di.data.Dataset.from_tensor_slices(records).batch(2).parse_example({"a": feature})
    shapes = [[batch["a"].shape for batch in ds.shard_batches(2, worker)] for worker in range(2)]
    assert shapes == [[(1, 4), (1, 3)]] * 2
