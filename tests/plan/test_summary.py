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
        (RANGE(7).batch(2), "batch(2) int64[?] × 4"),
        (RANGE(2, 9), "range(first=2, stop=9) int64 × 7"),
        (RANGE(7).batch(2, name="twos"), "batch[twos](2) int64[?] × 4"),
        (RANGE(7).filter(never), "filter(never) int64 × 0…7"),
        (RANGE(7).map(never), "map(never) ? × 7"),
        (RANGE(7).map(never).batch(2), "batch(2) ? × 4"),
        (
            RANGE(7).map(never, output_signature=di.TensorSpec([2], "int8")),
            "map(map_func=never, output_signature=TensorSpec(shape=(2,), dtype=int8)) int8[2] × 7",
        ),
        (RANGE(7).repeat(), "repeat() int64 × ∞"),
        (di.data.Dataset.from_tensors((np.zeros((2, 3)), b"")), "slices('1 element') (float64[2,3], string) × 1"),
        (di.data.TextLineDataset(["gone.txt"]), "text(TextLines(compression_type=None)) string × ?"),
        (
            di.data.ParquetDataset(["gone.parquet"]),
            "parquet(Parquet(columns=None, batch_rows=None, nulls='error')) ? × ?",
        ),
    ],
)
def test_one_line(dataset: Any, text: str) -> None:
    assert summary(dataset.node) == text


def test_what_was_asked_for_before_is_known() -> None:
    dataset = RANGE(7).map(lambda x: x + 1)
    assert summary(dataset.node).endswith(" ? × 7")
    assert dataset.element_spec == di.TensorSpec([], "int64")
    assert summary(dataset.node).endswith(" int64 × 7")
    assert summary(dataset.batch(2).node) == "batch(2) int64[?] × 4", "what follows is known with it"


def test_rows_of_files_are_known_once_they_were_counted(tmp_path: Path) -> None:
    RANGE(9).write(tmp_path / "rows", "parquet", shards=1)
    (name,) = (tmp_path / "rows").glob("*.parquet")
    dataset = di.data.ParquetDataset([str(name)])
    assert repr(dataset).endswith(" ? × ?>")
    assert len(dataset) == 9
    assert dataset.element_spec
    assert repr(dataset).endswith("{'value': int64} × 9>")


@settings(max_examples=cases(8, 200), deadline=None)
@given(pipelines())
def test_every_pipeline_has_a_line(pipeline: Pipeline) -> None:
    text = repr(pipeline.build())
    assert text.startswith("<")
    assert text.endswith(">")
    assert pipeline.build().node.op in text
