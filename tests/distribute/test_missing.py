# SPDX-License-Identifier: Apache-2.0
"""What an object says when it is asked for a member that it does not have."""

from typing import Any

import pytest

import distinput as di
from distinput.distribute.core.strategy import missing


class Strategy:
    """Of the name that the table has."""

    @property
    def broken(self) -> Any:
        return self.nothing_there

    def __getattr__(self, name: str) -> Any:
        return missing(self, name)


def test_a_declined_member_says_what_to_write() -> None:
    with pytest.raises(
        AttributeError, match=r"^'Strategy' object has no attribute 'unwrap': use strategy\.exp"
    ) as error:
        Strategy().unwrap  # noqa: B018 - what is looked up is what is tested
    assert error.value.name == "unwrap"


def test_any_other_member_is_just_not_there() -> None:
    with pytest.raises(AttributeError, match=r"^'Strategy' object has no attribute 'zzz'$"):
        Strategy().zzz  # noqa: B018 - as above


def test_the_error_of_a_property_is_its_own() -> None:
    with pytest.raises(AttributeError, match="has no attribute 'nothing_there'"):
        Strategy().broken  # noqa: B018 - as above


def test_strategies_and_their_other_half_say_it() -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    assert not hasattr(strategy, "unwrap")
    with pytest.raises(AttributeError, match=r"'MirroredStrategy' object has no attribute 'unwrap': use strategy\.exp"):
        strategy.unwrap(1)
    with pytest.raises(
        AttributeError, match=r"'StrategyExtended' object has no attribute 'read_var': use variable\.read"
    ):
        strategy.extended.read_var(1)
