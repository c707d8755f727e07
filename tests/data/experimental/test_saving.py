# SPDX-License-Identifier: Apache-2.0
"""`save`, `load` and `snapshot` under their older names."""

from pathlib import Path

import distinput as di

experimental = di.data.experimental


def test_older_names(tmp_path: Path) -> None:
    numbers = di.data.Dataset.range(4)
    experimental.save(numbers, tmp_path / "a", None, lambda x: x % 2)
    assert experimental.load(tmp_path / "a", numbers.element_spec).to_list() == [0, 2, 1, 3]
    kept = numbers.apply(experimental.snapshot(tmp_path / "b", "GZIP"))
    assert kept.to_list() == kept.to_list() == [0, 1, 2, 3]
