# SPDX-License-Identifier: Apache-2.0
"""`make_csv_dataset`, beside the recorded answers of TensorFlow."""

import json
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

FILES = {
    "a.csv": "x,name,y\n1,a,0.5\n2,,1.5\n,c,\n",
    "b.csv": 'x,name,y\n4,d,3.5\n5,"e,",4.5\n',
    "bad.csv": "x,name,y\n1,a,0.5\nno,b,1.5\n3,c,2.5\n",
    "big.csv": "p,q,r,s,t\n1,3000000000,1e39,nan,\n2,4,1,2,\n",
    "na.csv": "x,y\nNA,1\n2,NA\n",
    "none.csv": "1,2\n3,4\n",
}
ANSWERS: list[Any] = json.loads((Path(__file__).parent / "csv_batches.json").read_text())
CASES: dict[str, tuple[list[str], dict[str, Any]]] = {
    "a": (["a.csv"], {}),
    "label": (["a.csv"], {"label_name": "y"}),
    "two": (["a.csv", "b.csv"], {"batch_size": 3}),
    "two parallel": (["a.csv", "b.csv"], {"batch_size": 3, "num_parallel_reads": 2}),
    "select names": (["a.csv"], {"select_columns": ["y", "x"]}),
    "select numbers": (["a.csv"], {"select_columns": [2, 0], "label_name": "x"}),
    "defaults": (["a.csv"], {"column_defaults": [[7.0], ["dflt"], [7.0]]}),
    "big": (["big.csv"], {}),
    "bad": (["bad.csv"], {"column_defaults": [di.float32, ["dflt"], di.float32], "ignore_errors": True}),
    "na": (["na.csv"], {"na_value": "NA"}),
    "names": (["none.csv"], {"header": False, "column_names": ["u", "v"]}),
    "rename": (["a.csv"], {"column_names": ["u", "v", "w"]}),
    "endless": (["a.csv"], {"num_epochs": None}),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


def plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    return [str(value.dtype), [item.decode() if isinstance(item, bytes) else item for item in value.tolist()]]


def made(folder: Path, names: list[str], **options: Any) -> di.data.Dataset[Any]:
    options = {"batch_size": 2, "num_epochs": 1, "shuffle": False, **options}
    return di.data.experimental.make_csv_dataset([str(folder / name) for name in names], **options)


@pytest.mark.parametrize("case", [case for case in ANSWERS if case[1] is not None], ids=lambda case: case[0])
def test_it_answers_as_tensorflow(case: list[Any], folder: Path) -> None:
    names, options = CASES[case[0]]
    found = [plain(batch) for batch in made(folder, names, **options).take(4)]
    assert json.loads(json.dumps(found)) == case[1] or repr(found) == repr(case[1])


def test_shuffled_rows_are_all_there(folder: Path) -> None:
    batches = made(folder, ["a.csv", "b.csv"], shuffle=True, shuffle_seed=1, select_columns=["x"]).to_list()
    assert sorted(value for batch in batches for value in batch["x"]) == [0, 1, 2, 4, 5]


def test_compressed_files(folder: Path) -> None:
    import gzip

    (folder / "a.csv.gz").write_bytes(gzip.compress(FILES["b.csv"].encode()))
    assert made(folder, ["a.csv.gz"], compression_type="GZIP").to_list() == made(folder, ["b.csv"]).to_list()


@pytest.mark.parametrize(
    "names, options, says",
    [
        (["none.csv"], {"header": False}, "without a header, column_names must be given"),
        (["a.csv"], {"column_names": ["x", "x", "y"]}, "column names must differ, got x, x, y"),
        (["a.csv"], {"label_name": "q"}, "label_name must be one of the columns, x, name, y; got 'q'"),
        (["a.csv"], {"select_columns": ["q"]}, "names or numbers of the columns x, name, y; got 'q'"),
        (["a.csv"], {"select_columns": ["x", 0]}, r"select_columns has a column twice: \['x', 0\]"),
        (["a.csv", "na.csv"], {}, r"na\.csv: the columns in the header are x, y, but those of .*a\.csv are x, name, y"),
        (["a.csv"], {"column_defaults": [1.0]}, "column_defaults must have one for each column, x, name, y; got 1"),
        (
            ["none.csv"],
            {"header": False, "column_names": ["x"]},
            "row 1 has 2 fields, expected 1; types cannot be inferred",
        ),
    ],
)
def test_what_does_not_fit_is_refused(folder: Path, names: list[str], options: dict[str, Any], says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        made(folder, names, **options)


def test_an_empty_file_has_no_header(folder: Path) -> None:
    (folder / "empty.csv").write_text("")
    with pytest.raises(InvalidArgumentError, match=r"empty\.csv: there is no header; is it an empty file\?"):
        made(folder, ["empty.csv"])


@pytest.mark.parametrize("label", [None, "c"])
def test_specs_are_those_of_the_defaults(tmp_path: Path, label: str | None) -> None:
    # They were found by a look at the first rows, so that a row that does not fit was an error of `element_spec`.
    (tmp_path / "a.csv").write_text("a,b,c\nnone,,x\n", encoding="utf-8")
    dataset = di.data.experimental.make_csv_dataset(
        str(tmp_path / "a.csv"), 2, column_defaults=[di.int32, 0.5, di.string], label_name=label, num_epochs=1
    )
    columns = {
        name: di.TensorSpec([None], kind) for name, kind in {"a": "int32", "b": "float32", "c": "string"}.items()
    }
    wanted = columns if label is None else ({"a": columns["a"], "b": columns["b"]}, columns["c"])
    assert dataset.element_spec == wanted
    with pytest.raises(InvalidArgumentError, match="Field 0 in record is not a valid int32: none"):
        next(iter(dataset))
