# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing import check_dataset

CHATS: list[Any] = [
    {
        "id": 1,
        "title": "Zoë",
        "messages": [
            {"role": "user", "n": None, "calls": [], "tags": ["a", None]},
            {"role": "tool", "n": 3, "calls": [{"f": "x"}, {"f": "y"}], "tags": None},
        ],
    },
    {"id": 2, "title": "", "messages": []},
    {"id": 3, "title": "c", "messages": None},
]
TEXTS = di.data.Dataset.from_tensor_slices({"t": ["a", "é", "c"], "n": [1, 2, 3], "w": [["x", "y"]] * 3})


def chats(folder: Path, rows: list[Any] = CHATS) -> di.data.Dataset[Any]:
    path = folder / "a.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return di.data.JsonLinesDataset(str(path))


def test_text_is_str_through_the_steps_of_a_pipeline() -> None:
    texts = TEXTS.as_text()
    assert [row["t"] for row in texts] == ["a", "é", "c"]
    (batch, _) = texts.batch(2)
    assert batch["t"].dtype == np.dtypes.StringDType()
    assert batch["t"].tolist() == ["a", "é"]
    assert batch["w"].tolist() == [["x", "y"]] * 2
    assert (
        texts.shuffle(3, seed=1).take(3).prefetch(1).cache().repeat(2).select(["t"]).batch(3).to_list()[1]["t"][0]
        in "aéc"
    )
    assert texts.map(lambda row: len(row["t"])).to_list() == [1, 1, 1]
    assert texts.filter(lambda row: row["t"] > "b").to_list() == texts.to_list()[1:]
    assert texts.enumerate()[1][1]["t"] == "é"
    bare = di.data.Dataset.from_tensor_slices(["a", "b"]).as_text()
    assert bare.to_list() == ["a", "b"]
    assert di.data.Dataset.zip((bare, bare)).batch(2).to_list() == [(["a", "b"], ["a", "b"])]
    assert bare.batch(1).copied().to_list() == [["a"], ["b"]]
    assert bare.map(lambda text: text + "!").to_list() == [b"a!", b"b!"]  # what functions return is bytes


def test_text_in_ragged_rows_and_of_some_columns(tmp_path: Path) -> None:
    ragged = di.data.Dataset.from_tensor_slices(di.RaggedTensor.from_list([["a", "é"], []])).ragged_batch(2)
    assert ragged.as_text().to_list() == [[["a", "é"], []]]
    assert TEXTS.as_text(["t"]).batch(3).to_list()[0] == {"t": ["a", "é", "c"], "n": [1, 2, 3], "w": [[b"x", b"y"]] * 3}
    with pytest.raises(InvalidArgumentError, match="as_text: 'n' is no component of text"):
        TEXTS.as_text(["n"]).to_list()
    with pytest.raises(InvalidArgumentError, match=r"a text is no UTF-8: .*; leave it as bytes"):
        di.data.Dataset.from_tensor_slices([b"\xff"]).as_text().to_list()


def test_rows_are_those_that_were_written(tmp_path: Path) -> None:
    rows = chats(tmp_path).as_rows(["messages", "messages.calls"]).as_text()
    assert rows.to_list() == CHATS
    assert rows.element_spec == chats(tmp_path).element_spec  # columns stay columns
    assert rows.shuffle(3, seed=2).cache().prefetch(1).filter(lambda row: row["id"] == 1).to_list() == CHATS[:1]
    assert rows.map(lambda row: len(row["messages"] or "")).to_list() == [2, 0, 0]
    assert rows.ragged_batch(2).to_list()[0]["messages"] == [CHATS[0]["messages"], []]
    assert chats(tmp_path).as_text().select(["title", "messages.role"]).as_rows(["messages"]).to_list()[0] == {
        "title": "Zoë",
        "messages": [{"role": "user"}, {"role": "tool"}],
    }
    columns = chats(tmp_path, CHATS[:1]).as_rows(["messages"]).to_list()
    assert columns[0]["messages"][1]["calls"] == {"f": [b"x", b"y"]}  # which nobody asked for


def test_they_keep_the_laws(tmp_path: Path) -> None:
    assert {"restart", "facts", "distributed"} <= set(check_dataset(lambda: TEXTS.repeat(2).as_text()))
    rows = chats(tmp_path, CHATS[:2]).as_rows(["messages"])
    assert {"restart", "facts"} <= set(check_dataset(lambda: rows, leave_out=["distributed"]))
    with pytest.raises(ValueError, match="as_rows makes lists of dicts, of which replicas get no parts"):
        di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(rows.ragged_batch(2))


@pytest.mark.parametrize(
    "columns, says",
    [
        ("n", "columns must be a list of names, got 'n'"),
        ([], "columns must be at least one name"),
        (["n"], "'n' is no dict of lists"),
        (["z"], "'z' is no dict of lists"),
        (["s"], "'s' is no dict of lists"),
    ],
)
def test_what_is_no_list_of_structs_is_refused(columns: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        di.data.Dataset.from_tensor_slices({"n": [1], "s": {"a": [1]}}).as_rows(columns).to_list()


def test_lists_of_several_lengths_are_no_rows() -> None:
    ds = di.data.Dataset.from_tensor_slices({"s": {"a": [[1, 2]], "b": [[1, 2, 3]]}})
    with pytest.raises(InvalidArgumentError, match="as_rows: the lists in 's' have 2 and 3 items"):
        ds.as_rows(["s"]).to_list()
    same = di.data.Dataset.from_tensor_slices({"s": {"a": [[1, 2]]}}).as_rows(["s"])
    with pytest.raises(InvalidArgumentError, match=r"select: 's.a' is a part of what as_rows makes"):
        same.select(["s.a"]).to_list()
