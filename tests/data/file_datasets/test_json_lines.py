# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import distinput as di


def test_objects_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "a.jsonl"
    path.write_text("".join('{"x": ' + ("no" if i % 3 == 0 else str(i)) + "}\n" for i in range(10)))
    found = di.data.JsonLinesDataset(str(path), {"x": int}, on_error="skip", num_parallel_reads=2)
    assert [row["x"] for row in found] == [1, 2, 4, 5, 7, 8]
