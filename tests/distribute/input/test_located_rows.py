# SPDX-License-Identifier: Apache-2.0
"""Which rows of a global batch a replica gets."""

import numpy as np
import pytest

from distinput.lineage.step_records import replica_rows


def test_the_rows_of_all_replicas_are_those_of_each() -> None:
    for rows, total, workers, balanced in [(7, 4, 2, False), (7, 4, 1, True), (2, 3, 1, False), (0, 2, 2, True)]:
        whole = replica_rows(rows, None, total, workers, balanced)
        parts = [replica_rows(rows, replica, total, workers, balanced) for replica in range(total)]
        for all_of_them, each in zip(whole, zip(*parts, strict=True), strict=True):
            assert all_of_them.tolist() == np.concatenate(each).tolist()
        assert sorted(whole[0].tolist()) == list(range(rows))


def test_a_worker_has_every_other_piece() -> None:
    at, replica, row = replica_rows(8, None, 4, 2, balanced=False)
    assert at.tolist() == [0, 1, 4, 5, 2, 3, 6, 7]
    assert replica.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert row.tolist() == [0, 1] * 4


def test_what_is_kept_cannot_be_written_to() -> None:
    with pytest.raises(ValueError, match="read-only"):
        replica_rows(8, 0, 4, 2, balanced=False)[0][0] = 3
