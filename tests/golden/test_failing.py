# SPDX-License-Identifier: Apache-2.0
"""What real TensorFlow gives for pipelines with failing elements, where we do the same; and where not, why."""

import json
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from tests.golden.failing_pipelines import PIPELINES, RECORDED, Engine, looped

TENSORFLOW: dict[str, dict[str, Any]] = json.loads(RECORDED.read_text())

DIFFERENT: dict[str, tuple[list[Any], str]] = {
    "assert_cardinality, too few": ([0, 1, 2, "E"], "TensorFlow raises the error for ever"),
    "assert_cardinality, too many": ([0, 1, 2, "E"], "TensorFlow raises the error for ever"),
    "records, missing": (
        ["a0", "a1", "a2", "E", "c0", "c1", "c2"],
        "TensorFlow tries to open the file for ever, behind ignore_errors without return",
    ),
    "shard of three, in a gap": (["E", 3, 6], "TensorFlow gives 4 and 7 to two of the workers, and 3 and 6 to none"),
    "skip, within": (["E", 3, 4, 5], "TensorFlow begins to count anew at the error"),
}


@pytest.mark.parametrize("name", PIPELINES)
def test_errors_are_where_tensorflow_has_them(name: str, tmp_path: Path) -> None:
    engine = Engine(di, tmp_path)
    expected = TENSORFLOW[name]["loop"]
    if name in DIFFERENT:
        assert expected != DIFFERENT[name][0]
        expected = DIFFERENT[name][0]
    assert looped(PIPELINES[name](engine), engine) == expected
    ignored = looped(PIPELINES[name](engine).ignore_errors(), engine)
    assert ignored == [element for element in expected if element != "E"]
    if name not in DIFFERENT:
        assert ignored == TENSORFLOW[name]["ignored"]


def test_every_answer_is_asked_for() -> None:
    assert list(TENSORFLOW) == list(PIPELINES)
    assert set(DIFFERENT) <= set(PIPELINES)
