# SPDX-License-Identifier: Apache-2.0
"""`parse_sequence_example`: records into contexts and sequences; the rules are tested in tests/formats."""

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from tests.ops.iterating import until_error

IO = di.io
CONTEXT = {"id": IO.FixedLenFeature([], "int64")}
STEPS = {"x": IO.FixedLenSequenceFeature([2], "int64"), "w": IO.VarLenFeature("string")}


def records(count: int) -> di.data.Dataset:
    messages = [
        IO.encode_sequence_example({"id": i}, {"x": [[i, step] for step in range(i)], "w": [["a"] * i]})
        for i in range(count)
    ]
    return di.data.Dataset.from_tensor_slices(messages)


def test_a_record_is_a_context_and_its_sequences() -> None:
    ds = records(3).parse_sequence_example(CONTEXT, STEPS)
    assert ds.element_spec == (
        {"id": di.TensorSpec([], "int64")},
        {"x": di.TensorSpec([None, 2], "int64"), "w": di.RaggedTensorSpec([None, None], "string", 1)},
    )
    context, sequences = ds[2]
    assert context == {"id": 2}
    assert sequences["x"].tolist() == [[2, 0], [2, 1]]
    assert sequences["w"].to_list() == [[b"a", b"a"]]


def test_sequences_are_batched_padded_or_ragged() -> None:
    ds = records(3).parse_sequence_example(None, {"x": STEPS["x"]}).map(lambda _, sequences: sequences["x"])
    assert next(iter(ds.padded_batch(3))).shape == (3, 2, 2)
    ragged = next(iter(records(3).parse_sequence_example(None, {"w": STEPS["w"]}).ragged_batch(3)))
    assert ragged[1]["w"].to_list() == [[[]], [[b"a"]], [[b"a", b"a"]]]


def test_a_damaged_record_is_an_error_in_its_place() -> None:
    good = IO.encode_sequence_example({"id": 1}, {"x": [[1, 2]]})
    ds = di.data.Dataset.from_tensor_slices([good, b"\xff", good]).parse_sequence_example(CONTEXT, {"x": STEPS["x"]})
    found, error = until_error(ds)
    assert len(found) == 1
    assert isinstance(error, InvalidArgumentError)
    assert len(ds.ignore_errors().to_list()) == 2


def test_what_is_refused_while_the_pipeline_is_built() -> None:
    with pytest.raises(TypeError, match=r"parse_sequence_example: elements must be strings, got TensorSpec.*int64"):
        di.data.Dataset.range(3).parse_sequence_example(CONTEXT)
    with pytest.raises(TypeError, match=r"elements must be strings.*unbatch them first"):
        records(3).batch(2).parse_sequence_example(CONTEXT)
    with pytest.raises(InvalidArgumentError, match="both context_features and sequence_features are empty"):
        records(3).parse_sequence_example()
