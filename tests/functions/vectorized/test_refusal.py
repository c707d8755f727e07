# SPDX-License-Identifier: Apache-2.0
import pytest

from distinput.functions.vectorized.answers import Parted, Refused, Unfit


@pytest.mark.parametrize("kind", [Parted, Refused, Unfit])
def test_a_handler_of_the_users_does_not_swallow_a_refusal(kind: type[BaseException]) -> None:
    assert not issubclass(kind, Exception)
