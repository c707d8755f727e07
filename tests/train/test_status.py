# SPDX-License-Identifier: Apache-2.0
"""What a restore says of the rest."""

import pytest

from distinput.errors import InputWarning
from distinput.train.tracked import InitializationStatus, RestoreStatus


def test_a_difference_that_nobody_asked_about_is_a_warning() -> None:
    with pytest.warns(InputWarning, match="ckpt-1: restored 2 values; the checkpoint has nothing for 'a'"):
        RestoreStatus("ckpt-1", 2, ["a"], [])
    RestoreStatus("ckpt-1", 2, [], [])
    RestoreStatus("ckpt-1", 2, ["a"], []).expect_partial()


def test_many_names_are_not_all_told() -> None:
    status = RestoreStatus("ckpt-1", 0, [str(i) for i in range(99)], [])
    with pytest.raises(AssertionError, match="'8', '9' and 89 more"):
        status.assert_consumed()
    with pytest.raises(AssertionError, match="restored 0 values"):
        status.assert_nontrivial_match()


def test_a_checkpoint_may_have_more() -> None:
    status = RestoreStatus("ckpt-1", 1, [], ["b"])
    assert status.assert_existing_objects_matched() is status
    with pytest.raises(AssertionError, match="the program has nothing for 'b'"):
        status.assert_consumed()


def test_the_names_of_programs_that_were_written_for_graphs() -> None:
    status = RestoreStatus("ckpt-1", 2, [], [])
    status.run_restore_ops()
    status.initialize_or_restore(session=None)
    InitializationStatus().initialize_or_restore()
    with pytest.raises(AssertionError, match="No checkpoint specified"):
        InitializationStatus().run_restore_ops()
