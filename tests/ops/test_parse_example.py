# SPDX-License-Identifier: Apache-2.0
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


def test_a_batch_has_no_features_of_variable_length() -> None:
    with pytest.raises(InvalidArgumentError, match="a feature of variable length cannot be parsed from a batch"):
        STRINGS.batch(2).parse_example(VARYING)


def test_parallel_calls_are_checked() -> None:
    with pytest.raises(InvalidArgumentError, match="parse_example: num_parallel_calls must be at least 1, or AUTOTUNE"):
        STRINGS.parse_example(FIXED, num_parallel_calls=0)


def test_a_record_that_lacks_a_feature_is_named() -> None:
    _, error = until_error(STRINGS.parse_example({"y": di.io.FixedLenFeature([], "int64")}))
    assert isinstance(error, InvalidArgumentError)
    assert "y" in str(error)
