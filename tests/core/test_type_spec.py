# SPDX-License-Identifier: Apache-2.0
"""Relations of specs; the answers are TensorFlow 2.21's, but that arrays of NumPy are values here."""

import copy
import pickle
from typing import Any

import numpy as np
import pytest

import distinput as di

ROWS = di.TensorSpec([None, 3], "int64")
ANY = di.TensorSpec(None, "int64")
RAGGED = di.RaggedTensorSpec([None, None], "int64")
NUMBERS = di.data.DatasetSpec(di.TensorSpec([], "int64"))


@pytest.mark.parametrize(
    "spec, other, expected",
    [
        (ROWS, di.TensorSpec([2, 3], "int64"), True),
        (ROWS, di.TensorSpec([2, 4], "int64"), False),
        (ROWS, di.TensorSpec([2, 3], "int32"), False),
        (ROWS, ANY, True),
        (ROWS, np.zeros((2, 3), np.int64), True),
        (ROWS, np.zeros((2, 3)), False),
        (ROWS, [[1, 2, 3]], False),
        (di.TensorSpec([], "string"), "text", True),
        (ROWS, object(), False),
        (RAGGED, ROWS, False),
        (RAGGED, di.RaggedTensor.from_row_lengths(np.arange(3), np.array([1, 2])), True),
        (NUMBERS, di.data.Dataset.range(3), True),
        (NUMBERS, di.data.Dataset.range(3).batch(2), False),
        (NUMBERS, NUMBERS, True),
        (NUMBERS, ROWS, False),
        (NUMBERS, 3, False),
    ],
)
def test_compatible(spec: Any, other: Any, expected: bool) -> None:
    assert spec.is_compatible_with(other) is expected


def test_subtypes() -> None:
    assert ROWS.is_subtype_of(ANY)
    assert ROWS.is_subtype_of(ROWS)
    assert not ANY.is_subtype_of(ROWS)
    assert NUMBERS.is_subtype_of(NUMBERS)
    assert not NUMBERS.is_subtype_of(ROWS)
    assert not ROWS.is_subtype_of("int64")


def test_the_type_of_several() -> None:
    assert ROWS.most_specific_common_supertype([di.TensorSpec([2, 4], "int64")]) == di.TensorSpec([None, None], "int64")
    assert ROWS.most_specific_common_supertype([]) == ROWS
    assert ROWS.most_specific_common_supertype([di.TensorSpec([2, 4], "int32"), ROWS]) is None
    assert NUMBERS.most_specific_common_supertype([NUMBERS]) == NUMBERS
    assert NUMBERS.most_specific_compatible_type(NUMBERS) == NUMBERS
    with pytest.raises(
        ValueError, match=r"No TypeSpec is compatible with both TensorSpec.*int64.* and TensorSpec.*int32"
    ):
        ROWS.most_specific_compatible_type(di.TensorSpec([2, 4], "int32"))


def test_specs_of_values() -> None:
    assert di.TensorSpec.from_tensor([1, 2]) == di.TensorSpec([2], "int32")
    assert di.TensorSpec.from_spec(ROWS, "q").name == "q"
    assert (
        di.RaggedTensorSpec.from_value(di.RaggedTensor.from_row_lengths(np.arange(3), np.array([1, 2]))).ragged_rank
        == 1
    )
    assert di.data.DatasetSpec.from_value(di.data.Dataset.range(3)) == NUMBERS
    assert (ROWS.value_type, RAGGED.value_type, NUMBERS.value_type) == (np.ndarray, di.RaggedTensor, di.data.Dataset)
    with pytest.raises(ValueError, match="flat_values_spec must be None"):
        di.RaggedTensorSpec([None, None], flat_values_spec=ROWS)  # type: ignore[arg-type]


@pytest.mark.parametrize("spec", [ROWS, RAGGED, NUMBERS])
def test_specs_are_copied_and_sent(spec: Any) -> None:
    assert copy.deepcopy(spec) == pickle.loads(pickle.dumps(spec)) == spec
    with pytest.raises(AttributeError, match="has no attribute 'experimental_as_proto': a spec is a Python object"):
        spec.experimental_as_proto()
    with pytest.raises(AttributeError, match=r"has no attribute 'zzz'$"):
        _ = spec.zzz
