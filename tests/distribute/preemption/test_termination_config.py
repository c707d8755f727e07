# SPDX-License-Identifier: Apache-2.0
"""The configuration refuses what cannot be meant."""

from typing import Any

import pytest

from distinput.distribute.experimental import TerminationConfig


def test_wrong_values_are_refused() -> None:
    with pytest.raises(ValueError, match="grace_period must not be negative, got -1"):
        TerminationConfig(grace_period=-1)
    for name in ("termination_watcher_fn", "exit_fn", "save_fn"):
        given: Any = {name: 3}
        with pytest.raises(TypeError, match=f"{name} must be a function or None, got a int"):
            TerminationConfig(**given)


def test_it_holds_what_it_was_given() -> None:
    config = TerminationConfig(lambda: True, print, 3.5, len)
    assert config.termination_watcher_fn is not None
    assert (config.exit_fn, config.grace_period, config.save_fn) == (print, 3.5, len)
    assert TerminationConfig() == TerminationConfig(None, None, None, None)
