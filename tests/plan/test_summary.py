# SPDX-License-Identifier: Apache-2.0
"""The line that stands for a dataset: no function is called and no file is opened for it."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import distinput as di
from distinput.plan.text import summary
from distinput.testing.pipelines import Pipeline, pipelines
from tests.depth import cases

RANGE = di.data.Dataset.range


def never(x: Any) -> Any:
    raise AssertionError("called")


@pytest.mark.parametrize(
    "dataset, text",
    [
        (RANGE(7).batch(2), "batch(2): 4 elements of int64[?]"),
        (RANGE(2, 9), "range(first=2, stop=9): 7 elements of int64"),
        (RANGE(7).batch(2, name="twos"), "batch[twos](2): 4 elements of int64[?]"),
        (RANGE(7).filter(never), "filter(never): 0 to 7 elements of int64"),
        (RANGE(7).map(never), "map(never): 7 elements, of which the spec is not known yet"),
        (RANGE(7).map(never).batch(2), "batch(2): 4 elements, of which the spec is not known yet"),
        (
            RANGE(7).map(never, output_signature=di.TensorSpec([2], "int8")),
            "map(map_func=never, output_signature=TensorSpec(shape=(2,), dtype=int8)): 7 elements of int8[2]",
        ),
        (RANGE(7).repeat(), "repeat(): endless elements of int64"),
        (
            di.data.Dataset.from_tensors((np.zeros((2, 3)), b"")),
            "slices('1 element'): 1 element of (float64[2,3], string)",
        ),
        (
            di.data.TextLineDataset(["gone.txt"]),
            "text(TextLines(compression_type=None)): elements of string, not counted yet",
        ),
        (
            di.data.ParquetDataset(["gone.parquet"]),
            "parquet(Parquet(columns=None, batch_rows=None, nulls='error')): its elements are not known yet",
        ),
    ],
)
def test_one_line(dataset: Any, text: str) -> None:
    assert summary(dataset.node) == text


def test_what_was_asked_for_before_is_known() -> None:
    dataset = RANGE(7).map(lambda x: x + 1)
    assert summary(dataset.node).endswith(": 7 elements, of which the spec is not known yet")
    assert dataset.element_spec == di.TensorSpec([], "int64")
    assert summary(dataset.node).endswith(": 7 elements of int64")
    assert summary(dataset.batch(2).node) == "batch(2): 4 elements of int64[?]", "what follows is known with it"


def test_rows_of_files_are_known_once_they_were_counted(tmp_path: Path) -> None:
    RANGE(9).write(tmp_path / "rows", "parquet", shards=1)
    (name,) = (tmp_path / "rows").glob("*.parquet")
    dataset = di.data.ParquetDataset([str(name)])
    assert repr(dataset).endswith(": its elements are not known yet>")
    assert len(dataset) == 9
    assert dataset.element_spec
    assert repr(dataset).endswith(": 9 elements of {'value': int64}>")


def streamed() -> Any:
    return di.data.Dataset.from_generator(lambda: iter([1]), output_signature=di.TensorSpec([], "int64"))


@pytest.mark.parametrize(
    "dataset, text",
    [
        (streamed().batch(2), "batch(2): elements of int64[?], nobody knows how many"),
        (streamed().map(never), "map(never): elements, of which the spec is not known yet, nobody knows how many"),
        (RANGE(5).concatenate(streamed()), "concatenate(): 5 or more elements of int64"),
        (RANGE(6).window(2), "window(2): 3 elements of dataset"),
        (RANGE(0), "range(first=0, stop=0): 0 elements of int64"),
    ],
)
def test_what_nobody_knows_is_said_in_words(dataset: Any, text: str) -> None:
    assert summary(dataset.node) == text


@pytest.mark.parametrize("nest", [dict, tuple])
def test_long_specs_are_cut_to_two_lines(nest: Any) -> None:
    columns = {f"a_long_name_{i}": np.zeros((4, i), np.float32) for i in range(40)}
    rows = di.data.Dataset.from_tensor_slices(columns if nest is dict else (columns, *columns.values()))
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    for text in (repr(rows), repr(rows.batch(2)), repr(strategy.experimental_distribute_dataset(rows.batch(2)))):
        assert len(text) <= 160
        assert " more" in text


@settings(max_examples=cases(8, 200), deadline=None)
@given(pipelines())
def test_every_pipeline_has_a_line(pipeline: Pipeline) -> None:
    text = repr(pipeline.build())
    assert text.startswith("<")
    assert text.endswith(">")
    assert pipeline.build().node.op in text
