# SPDX-License-Identifier: Apache-2.0
"""Mistakes of those who come from other libraries: what would be wrong in silence is an error, and errors say what to write."""

import datetime as dt
import decimal
import json
import sqlite3
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import DataLossError, InputWarning, InvalidArgumentError

Dataset = di.data.Dataset
INT64 = di.TensorSpec([], "int64")
TEXT = Dataset.from_tensor_slices(["a b", "c"])


# ----------------------------------------------------------------------------
# What was wrong in silence.
# ----------------------------------------------------------------------------


def test_a_second_argument_is_no_label() -> None:
    with pytest.raises(
        TypeError, match=r"name must be the text of a label, got array\(\[0, 1\]\); several components are one a"
    ):
        Dataset.from_tensor_slices(np.zeros(2), np.arange(2))  # type: ignore[call-overload]
    assert Dataset.from_tensor_slices([1], "rows").node.name == "rows"


def test_a_list_of_what_has_no_end_is_refused() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^to_list: the dataset is infinite; take\(n\) elements of it$"):
        Dataset.range(3).take(2).repeat().to_list()
    assert Dataset.range(3).repeat().take(4).to_list() == [0, 1, 2, 0]


def test_a_list_asks_no_file_that_is_left_out_or_not_read(tmp_path: Path) -> None:
    for number in range(2):
        Dataset.range(2).map(lambda x: {"x": x}).write(tmp_path / str(number), "parquet")
    paths = sorted(map(str, tmp_path.rglob("*.parquet")))
    Path(paths[1]).write_bytes(b"PAR1 and no more")
    files = di.data.ParquetDataset(paths)
    whole = [{"x": 0}, {"x": 1}]
    assert (
        files.ignore_errors().to_list() == files.ignore_errors().repeat(1).to_list() == files.take(2).to_list() == whole
    )


@pytest.mark.parametrize("kind", [dt.date, dt.datetime, decimal.Decimal, list, dict, np.ndarray])
def test_a_class_is_no_text(kind: type, tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=rf"^{kind.__qualname__} is no dtype; times are 'datetime64\[D\]'"):
        di.TensorSpec([], kind)
    path = tmp_path / "a.csv"
    path.write_text("day,price\n2024-01-02,1.50\n")
    with pytest.raises(
        InvalidArgumentError, match=r"csv: column 'day' must have a dtype, .*; days are 'datetime64\[D\]'"
    ):
        di.data.CsvDataset(path, schema={"day": kind})


@pytest.mark.parametrize("kind", [object, np.object_, str, bytes, np.str_, np.bytes_, "string", "O", np.dtype("U3")])
def test_text_has_many_names(kind: Any) -> None:
    assert di.TensorSpec([], kind) == di.TensorSpec([], "string")


def numbers() -> Iterator[int]:
    yield from range(3)


def test_a_generator_that_has_ended_is_told() -> None:
    held = numbers()
    once = Dataset.from_generator(lambda: held, output_signature=INT64)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert once.to_list() == [0, 1, 2]
    with pytest.warns(InputWarning, match="gave the iterator of an earlier pass again, which had ended"):
        assert once.to_list() == []


def test_a_pass_that_goes_on_behind_another_is_not_told() -> None:
    held = numbers()
    once = Dataset.from_generator(lambda: held, output_signature=INT64)
    assert once.take(1).to_list() == [0]
    assert once.to_list() == [1, 2]


def nothing() -> Iterator[int]:
    yield from ()


def test_an_empty_generator_is_not_told() -> None:
    empty = Dataset.from_generator(nothing, output_signature=INT64)
    assert empty.to_list() == empty.to_list() == []


def test_a_dataset_is_not_zipped_with_itself_alone() -> None:
    one, other = Dataset.range(2), Dataset.range(5, 8)
    with pytest.warns(
        InputWarning, match=r"^zip: of one dataset it gives .*; two side by side are Dataset\.zip\(one, other\)"
    ):
        assert one.zip(other).to_list() == [5, 6, 7]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Dataset.zip(one, other).to_list() == [(0, 5), (1, 6)]
        assert Dataset.zip(datasets=one).to_list() == [0, 1]  # type: ignore[call-overload]


# ----------------------------------------------------------------------------
# What said too little.
# ----------------------------------------------------------------------------


class Items(Dataset):
    """As a dataset of PyTorch would be written."""

    def __init__(self) -> None:
        self.items = [1, 2, 3]

    def __len__(self) -> int:
        return len(self.items)

    def __getitem__(self, index: Any) -> Any:
        return self.items[index]


class Plain(Dataset):
    """Without a constructor."""


class Asks(Dataset):
    """Its constructor asks what it has."""

    def __init__(self) -> None:
        self.known = hasattr(self, "count_of_items"), getattr(self, "items", None)
        super().__init__(Dataset.range(2).node)


def test_a_constructor_may_ask_for_an_attribute() -> None:
    assert Asks().known == (False, None)
    assert Asks().to_list() == [0, 1]


@pytest.mark.parametrize("use", [lambda: Items().batch(2), lambda: list(Items()), lambda: iter(Items()), Plain])
def test_classes_of_users_derive_from_no_dataset(use: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"Dataset\.from_source for an object of yours with __len__ and __getitem__"):
        use()


@pytest.mark.parametrize(
    "argument, cure",
    [
        ("sep", "did you mean field_delim?"),
        ("delimiter", "did you mean field_delim?"),
        ("dtype", "did you mean schema?"),
        ("usecols", "did you mean columns?"),
        ("names", "here it is column_names=, and header=False where the files have no header"),
        ("na_values", "did you mean null_values?"),
        ("nrows", "here it is .take(n) behind it"),
        ("colums", "did you mean columns?"),
    ],
)
def test_arguments_of_pandas(argument: str, cure: str) -> None:
    with pytest.raises(TypeError) as found:
        di.data.CsvDataset("a.csv", **{argument: 1})  # type: ignore[arg-type]
    assert str(found.value) == f"CsvDataset: unexpected argument {argument!r}, {cure}"


@pytest.mark.parametrize(
    "make, argument, cure",
    [
        (di.data.ParquetDataset, "filters", "here it is .filter(expression) behind it"),
        (di.data.JsonLinesDataset, "lines", "it is not needed: each line is a record"),
        (di.data.WebDataset, "columns", "did you mean members?"),
        (di.data.ImageFolderDataset, "transform", "here it is .map(fn) behind it"),
        (Dataset.range(3).map, "batched", "here it is .batch(n) before it"),
        (Dataset.range(3).map, "names", "did you mean name?"),
        (Dataset.range(3).map, "num_gpus", "steps run on the CPU: use the model in the loop over the batches"),
        (
            Dataset.range(3).map_rows,
            "batch_format",
            "it is not needed: a batch is a dict of NumPy arrays, of which the function may make a table",
        ),
        (Dataset.range(3).filter, "expr", "did you mean predicate?"),
        (Dataset.range(3).bucket_by_sequence_length, "batch_size", "did you mean bucket_batch_sizes?"),
    ],
)
def test_arguments_of_others(make: Callable[..., Any], argument: str, cure: str) -> None:
    with pytest.raises(TypeError, match="unexpected argument") as found:
        make("a", **{argument: 1})
    assert str(found.value).endswith(f"{argument!r}, {cure}")


@pytest.mark.parametrize("datasets", [(Dataset.range(3), None), ({"a": Dataset.range(3)}, None)])
def test_datasets_to_mix_are_a_list(datasets: tuple[Any, Any]) -> None:
    with pytest.raises(
        TypeError, match=r"sample_from_datasets: datasets must be a list of datasets, \[one, other\], got"
    ):
        Dataset.sample_from_datasets(*datasets)
    with pytest.raises(TypeError, match=r"choose_from_datasets: datasets must be a list of datasets"):
        Dataset.choose_from_datasets(datasets[0], Dataset.range(1))


def test_a_function_is_given_and_not_called() -> None:
    with pytest.raises(
        TypeError, match=r"generator must be a function, got .*; give the function itself, without calling it$"
    ):
        Dataset.from_generator(numbers(), output_signature=INT64)  # type: ignore[arg-type]


def test_a_connection_is_no_function() -> None:
    connection = sqlite3.connect(":memory:")
    with pytest.raises(
        InvalidArgumentError, match=r"connect must be a function that returns a connection, .*, got Connection"
    ):
        Dataset.from_sql("SELECT 1", connection)  # type: ignore[arg-type]
    connection.close()


def test_a_shape_comes_before_the_dtype() -> None:
    with pytest.raises(
        TypeError, match="a shape must be a list of sizes, got 'int64'; the dtype comes after the shape"
    ):
        di.TensorSpec("int64", [])  # type: ignore[arg-type]


def test_lists_of_several_lengths_have_two_cures() -> None:
    with pytest.raises(
        TypeError, match=r"Several components are a tuple, \(x, y\); Dataset.from_source takes a list of arrays"
    ):
        Dataset.from_tensor_slices([[1], [2, 3]])
    assert Dataset.from_source([np.array([1]), np.array([2, 3])]).to_list() == [[1], [2, 3]]
    with pytest.raises(TypeError, match=r"a list becomes a tuple, np\.array\(\.\.\.\) of it is one array"):
        Dataset.from_source([[1], [2, 3]]).to_list()


def test_a_sparse_matrix_is_made_an_array() -> None:
    sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match=r"cannot make an array of a csr_matrix; .*; give \.toarray\(\) of it$"):
        Dataset.from_tensor_slices(sparse.csr_matrix(np.eye(2)))


def test_a_list_that_a_function_returns_is_a_tuple() -> None:
    split = TEXT.map(lambda text: text.split())
    with pytest.raises(TypeError, match=r"a list becomes a tuple, np\.array\(\.\.\.\) of it is one array"):
        split.to_list()
    assert TEXT.map(lambda text: np.array(text.split(), object)).to_list() == [[b"a", b"b"], [b"c"]]


def test_members_for_the_library_itself_are_not_suggested() -> None:
    for name in ("decode", "to_tuple", "nodes"):
        with pytest.raises(AttributeError) as found:
            getattr(TEXT, name)
        assert not any(f"mean {inside}" in str(found.value) for inside in ("node", "nest_leaf", "leaf_spec", "to_user"))


@pytest.mark.parametrize(
    "function",
    [
        lambda text: text.split(" "),
        lambda text: text + "!",
        lambda text: "!" + text,
        lambda text: text.startswith("a"),
        lambda text: "a" in text,
        lambda text: " ".join([text]),
        lambda text: json.dumps({"text": text}),
        lambda text: text.encode(),
    ],
)
def test_text_is_bytes(function: Callable[[Any], Any]) -> None:
    with pytest.raises((TypeError, AttributeError)) as found:
        TEXT.map(function).to_list()
    assert found.value.__notes__[-1].startswith("text is bytes here, b'...'; as_text() before this step")


class Plain:
    def __call__(self, text: Any) -> Any:
        return text


class Loading(Plain):
    def __init__(self) -> None:
        self.model = 1


@pytest.mark.parametrize(
    "dataset, function, cure",
    [
        (TEXT, lambda text: {"a": 1}[text], "text is bytes here, b'...'; as_text() before this step"),
        (TEXT, lambda record: record["label"], "a record is bytes until a step parses it; for Examples that is parse_"),
        (di.data.Dataset.zip((TEXT, TEXT)), lambda pair: pair, "a function gets the members of a tuple as several arg"),
        (TEXT.map(lambda text: {"a": text, "b": text}), lambda a, b: a, "a function gets the members of a tuple as "),
        (TEXT, Plain, "what is given is called with each element: of a class whose objects are to be called, give an"),
        (
            TEXT,
            Loading,
            "what is given is called with each element: of a class whose objects are to be called, give an",
        ),
    ],
)
def test_other_mistakes_of_functions_have_a_cure_beside_them(
    dataset: di.data.Dataset, function: Callable[..., Any], cure: str
) -> None:
    with pytest.raises((TypeError, KeyError)) as found:
        dataset.map(function).to_list()
    assert found.value.__notes__[-1].startswith(cure)


def test_another_key_says_nothing_of_text() -> None:
    with pytest.raises(KeyError) as found:
        TEXT.map(lambda text: {}["label"]).to_list()
    assert "text is bytes" not in " ".join(found.value.__notes__)


def in_place(array: Any) -> Any:
    array += 1
    return array


def test_other_cures_of_errors_of_functions(tmp_path: Path) -> None:
    found: Any
    with pytest.raises(ValueError, match="read-only") as found:
        Dataset.from_tensor_slices(np.zeros((2, 2))).map(in_place).to_list()
    assert found.value.__notes__[-1].endswith("return a new array, or put copied() before this step")
    path = tmp_path / "chats.jsonl"
    path.write_text('{"turns": [{"role": "user"}], "n": 1}\n{"turns": [], "n": null}\n')
    rows = di.data.JsonLinesDataset(path)
    with pytest.raises(TypeError) as found:
        rows.map(lambda row: len([turn["role"] for turn in row["turns"]])).to_list()
    assert any("as_rows() before this step makes dicts" in note for note in found.value.__notes__)
    with pytest.raises(TypeError) as found:
        rows.map(lambda row: row["n"] + 1).to_list()
    assert any("nulls= of the reader fills what is missing" in note for note in found.value.__notes__)


def test_an_error_without_a_cure_gets_no_note_of_one() -> None:
    with pytest.raises(KeyError) as found:
        Dataset.range(1).map(lambda x: {"a": x}[str(x)], output_signature=INT64).to_list()
    assert len(found.value.__notes__) == 2


class Textless(ValueError):
    """Its text cannot be made."""

    def __str__(self) -> str:
        raise RuntimeError("no text")


def raise_textless(x: Any) -> Any:
    raise Textless


def test_an_error_whose_text_fails_is_that_error() -> None:
    with pytest.raises(Textless):
        Dataset.range(1).map(raise_textless, output_signature=INT64).to_list()


def test_a_folder_of_a_store_ends_in_a_slash() -> None:
    Dataset.range(4).map(lambda x: {"x": x}).write("memory://mistakes/rows", "parquet", shards=2)
    with pytest.raises(
        DataLossError, match="it has no bytes; memory://mistakes/rows/ stands for the files below a folder"
    ):
        di.data.ParquetDataset("memory://mistakes/rows").to_list()
    assert len(di.data.ParquetDataset("memory://mistakes/rows/").to_list()) == 4
