# SPDX-License-Identifier: Apache-2.0
from pathlib import Path

import pytest

import distinput as di
from distinput.errors import NotFoundError


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    made = di.data.ArrayRecordDataset(str(tmp_path / "nowhere"), name="records")
    assert made.element_spec == di.TensorSpec([], "string")
    with pytest.raises(NotFoundError, match="nowhere"):
        made.to_list()
