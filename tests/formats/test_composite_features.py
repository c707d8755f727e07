# SPDX-License-Identifier: Apache-2.0
"""Features of several keys, beside the answers of TensorFlow 2.21 to the same records.

`tests/golden/composed_features.json` holds what `tf.io.parse_single_example` and `tf.io.parse_example` returned.
"""

import json
import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, UnimplementedError
from distinput.formats.features import composed, is_composed, plain_features
from distinput.testing import check_dataset

ANSWERS = json.loads((Path(__file__).parents[1] / "golden" / "composed_features.json").read_text(encoding="utf-8"))
Sparse, Ragged = di.io.SparseFeature, di.io.RaggedFeature
NONE = np.zeros(0, np.int64)

Case = tuple[dict[str, Any], list[dict[str, Any]]]
CASES: dict[str, Case] = {
    "sparse": (
        {"s": Sparse("i", "v", di.float32, 10)},
        [{"i": [7, 2], "v": [1.0, 2.0]}, {"i": NONE, "v": NONE}, {"i": [3], "v": [5.0]}, {"v": [1.0]}],
    ),
    "sparse sorted": (
        {"s": Sparse("i", "v", di.float32, 10, already_sorted=True)},
        [{"i": [7, 2], "v": [1.0, 2.0]}],
    ),
    "sparse2": (
        {"s": Sparse(["i", "j"], "v", di.int64, [4, 5])},
        [{"i": [3, 0], "j": [4, 1], "v": [7, 8]}, {"i": NONE, "j": NONE, "v": NONE}],
    ),
    "sparse dup": ({"s": Sparse("i", "v", di.int64, 4)}, [{"i": [1, 1], "v": [7, 8]}]),
    "sparse out": ({"s": Sparse("i", "v", di.int64, 4)}, [{"i": [9], "v": [7]}]),
    "sparse neg": ({"s": Sparse("i", "v", di.int64, 4)}, [{"i": [-1], "v": [7]}]),
    "sparse uneven": ({"s": Sparse("i", "v", di.int64, 4)}, [{"i": [1, 2], "v": [7]}]),
    "sparse str + fixed": (
        {
            "s": Sparse("i", "v", di.string, 4),
            "i": di.io.VarLenFeature(di.int64),
            "f": di.io.FixedLenFeature([], di.int64),
        },
        [{"i": [1], "v": ["a"], "f": [3]}, {"i": [2, 0], "v": ["b", "c"], "f": [4]}],
    ),
    "sparse size list1": ({"s": Sparse(["i"], "v", di.int64, [4])}, [{"i": [1], "v": [7]}]),
    "lengths": (
        {"r": Ragged(di.int64, "v", [Ragged.RowLengths("l")])},
        [{"v": [1, 2, 3], "l": [1, 2]}, {"v": NONE, "l": NONE}, {"v": [4], "l": [0, 1, 0]}],
    ),
    "splits": (
        {"r": Ragged(di.int64, "v", [Ragged.RowSplits("l")])},
        [{"v": [1, 2, 3], "l": [0, 1, 3]}, {"v": [4], "l": [0, 0, 1]}],
    ),
    "splits empty": (
        {"r": Ragged(di.int64, "v", [Ragged.RowSplits("l")])},
        [{"v": [1, 2, 3], "l": [0, 1, 3]}, {"v": NONE, "l": NONE}],
    ),
    "starts": (
        {"r": Ragged(di.int64, "v", [Ragged.RowStarts("l")])},
        [{"v": [1, 2, 3], "l": [0, 1]}, {"v": [4], "l": [0, 0]}],
    ),
    "limits": (
        {"r": Ragged(di.int64, "v", [Ragged.RowLimits("l")])},
        [{"v": [1, 2, 3], "l": [1, 3]}, {"v": [4], "l": [1, 1]}],
    ),
    "rowids": (
        {"r": Ragged(di.int64, "v", [Ragged.ValueRowIds("l")])},
        [{"v": [1, 2, 3], "l": [0, 0, 2]}, {"v": [4], "l": [0]}, {"v": NONE, "l": NONE}],
    ),
    "uniform": (
        {"r": Ragged(di.int64, "v", [Ragged.UniformRowLength(2)])},
        [{"v": [1, 2, 3, 4]}, {"v": NONE}, {"v": [5, 6]}],
    ),
    "uniform bad": ({"r": Ragged(di.int64, "v", [Ragged.UniformRowLength(2)])}, [{"v": [1, 2, 3]}]),
    "two": (
        {"r": Ragged(di.float32, "v", [Ragged.RowLengths("a"), Ragged.RowLengths("b")])},
        [{"v": [1.0, 2.0, 3.0], "a": [2], "b": [1, 2]}, {"v": [4.0], "a": [0, 1], "b": [1]}],
    ),
    "uniform inner": (
        {"r": Ragged(di.int64, "v", [Ragged.RowLengths("a"), Ragged.UniformRowLength(2)])},
        [{"v": [1, 2, 3, 4], "a": [1, 1]}, {"v": [5, 6], "a": [1]}],
    ),
    "uniform outer": (
        {"r": Ragged(di.int64, "v", [Ragged.UniformRowLength(2), Ragged.RowLengths("a")])},
        [{"v": [1, 2, 3], "a": [1, 2]}, {"v": [5, 6], "a": [1, 0, 1, 0]}],
    ),
    "bad lengths": ({"r": Ragged(di.int64, "v", [Ragged.RowLengths("l")])}, [{"v": [1, 2, 3], "l": [1, 1]}]),
    "bad lengths validate": (
        {"r": Ragged(di.int64, "v", [Ragged.RowLengths("l")], validate=True)},
        [{"v": [1, 2, 3], "l": [1, 1]}],
    ),
    "own key": ({"r": Ragged(di.int64, partitions=[Ragged.RowLengths("l")])}, [{"r": [1, 2, 3], "l": [1, 2]}]),
    "string": (
        {"r": Ragged(di.string, "v", [Ragged.RowLengths("l")])},
        [{"v": ["a", "b"], "l": [2, 0]}],
    ),
    "missing lengths": ({"r": Ragged(di.int64, "v", [Ragged.RowLengths("l")])}, [{"v": [1, 2]}, {"l": [0, 0]}]),
}
STRICTER = {"bad lengths": "error", "missing lengths": "error", "splits empty": []}
"""TensorFlow loses values where lengths do not take in all of them; and refuses no splits at all in one record alone."""


def told(value: Any) -> Any:
    """A value as the answers are written."""
    if isinstance(value, dict):
        return {key: told(each) for key, each in value.items()}
    if isinstance(value, di.SparseTensor):
        return {"sparse": [told(value.indices), told(value.values), told(value.dense_shape)]}
    if isinstance(value, di.RaggedTensor):
        return {"ragged": told(value.to_list())}
    if isinstance(value, list):
        return [told(each) for each in value]
    if isinstance(value, bytes):
        return value.decode()
    return told(value.tolist()) if hasattr(value, "tolist") else value


def wanted(answer: Any, *, batch: bool) -> Any:
    """The answer, without TensorFlow's shapes; its sparse tensors of one key are ragged ones, or arrays of one record, here."""
    if answer == "error" or not isinstance(answer, dict):
        return answer
    made = {key: {"ragged": each["ragged"]} if "ragged" in each else each for key, each in answer.items() if key != "f"}
    if "i" in made:
        places, values, (rows, *_) = made["i"]["sparse"]
        made["i"] = (
            {"ragged": [[v for p, v in zip(places, values, strict=True) if p[0] == row] for row in range(rows)]}
            if batch
            else values
        )
    return made | ({"f": answer["f"]} if "f" in answer else {})


def parsed(parse: Any, *args: Any) -> Any:
    try:
        return told(parse(*args))
    except InvalidArgumentError:
        return "error"


@pytest.mark.parametrize("name", CASES)
def test_records_and_batches_are_parsed_as_by_tensorflow(name: str) -> None:
    features, records = CASES[name]
    messages = [di.io.encode_example(record) for record in records]
    for message, answer in zip(messages, ANSWERS[name]["single"], strict=True):
        found = parsed(di.io.parse_single_example, message, features)
        if name not in STRICTER or (answer != "error" and found == wanted(answer, batch=False)):
            assert found == wanted(answer, batch=False)
        else:
            assert found == "error" or found["r"]["ragged"] == STRICTER[name]
    found = parsed(di.io.parse_example, messages, features)
    assert found == ("error" if STRICTER.get(name) == "error" else wanted(ANSWERS[name]["batch"], batch=True))


@pytest.mark.parametrize(
    "name", [name for name in CASES if "bad" not in name and name not in ("sparse", "sparse uneven")]
)
def test_datasets_parse_as_functions_do(name: str) -> None:
    features, records = CASES[name]
    if name == "missing lengths":
        records = records[1:]
    messages = [di.io.encode_example(record) for record in records]
    ds = di.data.Dataset.from_tensor_slices(messages)
    single = ds.parse_example(features)
    batched = ds.batch(2).apply(di.data.experimental.parse_example_dataset(features))
    assert [told(each) for each in single] == [told(di.io.parse_single_example(each, features)) for each in messages]
    assert told(next(iter(batched))) == told(di.io.parse_example(messages[:2], features))
    assert list(single.element_spec) == list(batched.element_spec) == list(features)


def test_specs_of_sparse_and_ragged_features() -> None:
    ds = di.data.Dataset.from_tensors(di.io.encode_example({"v": [1, 2], "i": [0, 1], "l": [2]}))
    features = {
        "s": Sparse(["i", "l"], "v", di.int64, [4, 5]),
        "r": Ragged(di.int64, "v", [Ragged.RowLengths("l"), Ragged.UniformRowLength(2)]),
        "u": Ragged(di.int64, "v", [Ragged.UniformRowLength(2)]),
    }
    single = ds.parse_example(features).element_spec
    assert single["s"] == di.SparseTensorSpec([4, 5], "int64")
    assert single["r"] == di.RaggedTensorSpec([None, None, 2], "int64", 1)
    assert single["u"] == di.TensorSpec([None, 2], "int64")
    batched = ds.batch(3, drop_remainder=True).parse_example(features).element_spec
    assert batched["s"] == di.SparseTensorSpec([3, 4, 5], "int64")
    assert batched["r"] == di.RaggedTensorSpec([3, None, None, 2], "int64", 2)
    assert batched["u"] == di.RaggedTensorSpec([3, None, 2], "int64", 1)


def test_a_pipeline_of_them_restarts_anywhere() -> None:
    features, records = CASES["two"]
    sparse = {"s": Sparse("a", "v", di.float32, 4)}
    messages = [di.io.encode_example({**record, "a": [0] * len(record["v"])}) for record in records] * 4

    check_dataset(lambda: di.data.Dataset.from_tensor_slices(messages).batch(3).parse_example(sparse))
    whole = [di.io.encode_example(record) for record in records] * 4
    check_dataset(lambda: di.data.Dataset.from_tensor_slices(whole).parse_example(features))


def test_errors_name_the_feature_and_the_record() -> None:
    def batch(features: Any, *records: Any) -> Any:
        return di.io.parse_example([di.io.encode_example(record) for record in records], features)

    with pytest.raises(
        InvalidArgumentError, match=r"SparseFeature 's': .*1 values of 'v' and 2 indices of 'i' in record 1"
    ):
        batch({"s": Sparse("i", "v", di.int64, 4)}, {"i": [1], "v": [2]}, {"i": [1, 2], "v": [2]})
    with pytest.raises(InvalidArgumentError, match=r"'r': RowLengths\('l'\) must divide all 3 values of record 0"):
        batch({"r": Ragged(di.int64, "v", [Ragged.RowLengths("l")])}, {"v": [1, 2, 3], "l": [1]})
    with pytest.raises(InvalidArgumentError, match="rows of 2 values need a multiple of that, got 3 in record 0"):
        batch({"r": Ragged(di.int64, "v", [Ragged.UniformRowLength(2)])}, {"v": [1, 2, 3]})
    for ids in ([1, 0], [0], [-1, 0]):
        with pytest.raises(InvalidArgumentError, match="ValueRowIds"):
            batch({"r": Ragged(di.int64, "v", [Ragged.ValueRowIds("l")])}, {"v": [1, 2], "l": ids})
    for kind, given in ((Ragged.RowSplits, [1, 2]), (Ragged.RowStarts, [1]), (Ragged.RowLimits, [3, 2])):
        with pytest.raises(InvalidArgumentError, match=kind.__name__):
            batch({"r": Ragged(di.int64, "v", [kind("l")])}, {"v": [1, 2], "l": given})


def test_declarations_are_checked() -> None:
    for make, said in (
        (lambda: Sparse("i", "v", di.int64, None), "size must be integers, got None"),
        (lambda: Sparse("i", "v", di.int32, 4), "a feature is int64, float32 or string"),
        (lambda: Sparse(["i"], "v", di.int64, 4), "a list of as many"),
        (lambda: Sparse(["i", "j"], "v", di.int64, [4]), "a list of as many"),
        (lambda: Sparse("i", None, di.int64, 4), "needs index_key and value_key"),
        (lambda: Ragged.UniformRowLength(0), "length must be at least 1"),
    ):
        with pytest.raises(InvalidArgumentError, match=said):
            make()
    with pytest.raises(TypeError, match=r"each partition must be one such as RaggedFeature.RowLengths"):
        Ragged(di.int64, "v", ["l"])
    with pytest.raises(UnimplementedError, match="feature 'r' is made of several keys"):
        di.io.parse_single_sequence_example(
            di.io.encode_sequence_example({}, {}), {"r": Ragged(di.int64, "v", [Ragged.RowLengths("l")])}
        )


def test_parts_have_names_of_their_own() -> None:
    features = {"s": Sparse("i", "v", di.int64, 4), "v": di.io.VarLenFeature(di.int64)}
    assert [is_composed(feature) for feature in features.values()] == [True, False]
    assert list(plain_features(features)) == ["s\0000", "s\0001", "v"]
    assert composed({"v": features["v"]}, batched=True) is None
    together = composed(features, batched=False)
    assert pickle.loads(pickle.dumps(together)) == together
    with pytest.raises(InvalidArgumentError, match="features was empty"):
        composed({}, batched=True)
