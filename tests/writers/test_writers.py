# SPDX-License-Identifier: Apache-2.0
"""The table of writers: each is in it, and is named as the format that reads what it writes."""

import inspect
import pkgutil
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput import writers
from distinput.writers import WRITERS
from distinput.writers.writer import Writer


def test_every_writer_is_in_the_table() -> None:
    found = set()
    for module in pkgutil.iter_modules(writers.__path__, "distinput.writers."):
        for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            if issubclass(kind, Writer) and not inspect.isabstract(kind):
                found.add(kind)
    assert {WRITERS.find(name) for name in WRITERS} == found
    assert [WRITERS.find(name).name for name in WRITERS] == list(WRITERS)  # type: ignore[attr-defined]


TEXT: dict[str, Any] = {
    "csv": {"a": ["x", "\u00e9"]},
    "jsonl": {"a": ["x", "\u00e9"]},
    "tar": {"txt": ["x", "\u00e9"]},
    "text": ["x", "\u00e9"],
    "tfrecord": {"one": ["x", "\u00e9"], "list": [["x"], ["\u00e9"]], "digits": ["1.50", "2"]},
}


@pytest.mark.parametrize("name", sorted(TEXT))
def test_text_and_decimals_of_python_are_written_as_they_are_kept(tmp_path: Path, name: str) -> None:
    plain = di.data.Dataset.from_tensor_slices(TEXT[name])
    made = plain.as_decimal(["digits"]).as_text() if name == "tfrecord" else plain.as_text()
    paths = [dataset.write(tmp_path / place, name).paths for place, dataset in (("a", plain), ("b", made))]
    one, other = [[Path(path).read_bytes() for path in each] for each in paths]
    assert one == other
