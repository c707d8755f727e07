# SPDX-License-Identifier: Apache-2.0
import json
from pathlib import Path

import pytest

import distinput as di


def test_objects_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join('{"x": ' + ("no" if i % 3 == 0 else str(i)) + "}\n" for i in range(10)))
    found = di.data.JsonLinesDataset(str(path), {"x": int}, on_error="skip", num_parallel_reads=2)
    assert [row["x"] for row in found] == [1, 2, 4, 5, 7, 8]


@pytest.mark.parametrize("end", ["\n", ""])
def test_only_the_line_that_is_no_object_is_left_out(tmp_path: Path, end: str) -> None:
    path, log = tmp_path / "a.jsonl", tmp_path / "bad"
    path.write_text('[0]\n{"x": 1}\n\n \n{bad\n{"x": 2}\n{"x": "no"}\n\nnull\n{"x": 3}\n{"x":' + end)
    policy = di.data.SkipErrors(None, quarantine=log)
    found = di.data.JsonLinesDataset(str(path), {"x": int}, on_error=policy).map(lambda row: row["x"])
    assert found.to_list() == [1, 2, 3]
    assert [json.loads(line)["row"] for line in log.read_text().splitlines()] == [0, 2, 4, 5, 7]
    for at in range(4):
        iterator = iter(found)
        seen = [int(next(iterator)) for _ in range(at)]
        assert seen + [int(x) for x in found.restore(iterator.state())] == [1, 2, 3]
