# SPDX-License-Identifier: Apache-2.0
"""The same rows in files of every format, and strategies of rows."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import strategies as st

import distinput as di

Dataset = di.data.Dataset

TABLES = ("arrow", "csv", "jsonl", "parquet", "tfrecord")
"""Formats that hold rows of columns."""
LINES = ("text", "tfrecord", "elements", "parquet", "jsonl", "arrow", "csv")
"""Formats that hold lines, as they are or as the column "value"."""

text = st.text(st.characters(codec="utf-8", exclude_characters="\r\n\0", exclude_categories=["Cs"]), max_size=6)
rows = st.lists(
    st.fixed_dictionaries(
        {
            "n": st.integers(-(2**53), 2**53),
            "x": st.floats(-1e6, 1e6, width=32).map(float),
            "t": text.map(str.encode),
        }
    ),
    min_size=1,
    max_size=40,
)
lines = st.lists(text.map(str.encode), min_size=1, max_size=40)


def dataset_of(values: Sequence[Any]) -> Any:
    """A dataset of rows, or of lines."""
    if not isinstance(values[0], dict):
        return Dataset.from_tensor_slices(np.array([*values, b""], object)[:-1])
    makers: dict[str, Any] = {
        "n": lambda cells: np.array(cells, np.int64),
        "x": lambda cells: np.array(cells, np.float32),
        "t": lambda cells: np.array([*cells, b""], object)[:-1],
    }
    columns = {name: make([row[name] for row in values]) for name, make in makers.items() if name in values[0]}
    return Dataset.from_tensor_slices(columns)


def write(folder: Path, values: Sequence[Any], format: str, **cut: Any) -> list[str]:
    """Rows or lines as files of a format."""
    paths: list[str] = dataset_of(values).write(str(folder), format, **(cut or {"shards": 1})).paths
    return paths
