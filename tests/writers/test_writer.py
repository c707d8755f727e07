# SPDX-License-Identifier: Apache-2.0
"""What writers say of the files they write."""

import pytest

from distinput.errors import InvalidArgumentError
from distinput.values.nest import structure_of
from distinput.writers.csv import CsvWriter, column_names


def test_names_end_in_what_the_file_is() -> None:
    assert CsvWriter().ending == ".csv"
    assert CsvWriter(compression="GZIP").ending == ".csv.gz"


def test_columns_of_flat_elements() -> None:
    assert column_names(structure_of(1)) == ["value"]
    assert column_names(structure_of((1, 2))) == ["0", "1"]
    assert column_names(structure_of({"b": 1, "a": 2})) == ["a", "b"]
    with pytest.raises(
        InvalidArgumentError, match=r"csv takes elements of one level, and component \['a'\] has more below"
    ):
        column_names(structure_of({"a": (1, 2)}))
