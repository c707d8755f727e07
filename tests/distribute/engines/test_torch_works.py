# SPDX-License-Identifier: Apache-2.0
"""Operations of PyTorch that complete together, fail, or are not complete yet."""

from typing import Any

import pytest

from distinput.distribute.collectives.channel import ChannelLost
from distinput.distribute.engines.torch import TorchWorks, first_line, started


class Work:
    """Stands for a `Work` of torch: not complete for some looks, then complete or failed."""

    def __init__(self, looks: int = 0, error: str = "") -> None:
        self.looks, self.error = looks, error

    def is_completed(self) -> bool:
        self.looks -= 1
        return self.looks < 0

    def wait(self, limit: Any) -> bool:
        if self.error:
            self.looks = 0
            raise RuntimeError(self.error)
        return True


def test_a_value_comes_when_all_are_complete() -> None:
    works = [Work(looks=1), Work()]
    under_way: set[Any] = set(works)
    handle = TorchWorks(list(works), under_way, lambda: "value")
    assert not handle.wait(0)
    assert under_way == {works[0]}
    assert handle.wait(0)
    assert handle.wait(0)
    assert (under_way, handle.value()) == (set(), "value")


def test_a_failed_operation_is_a_lost_channel() -> None:
    handle = TorchWorks([Work(error="[/src/gloo/x.cc:1] Connection closed by peer\nmore")], set(), lambda: None)
    with pytest.raises(ChannelLost, match=r"^Connection closed by peer$"):
        handle.wait(1.0)


def test_an_operation_that_cannot_begin_is_not_under_way() -> None:
    def begin() -> Any:
        raise RuntimeError("no")

    under_way: set[Any] = set()
    with pytest.raises(ChannelLost, match="no"):
        started(under_way, begin)
    work = Work()
    assert started(under_way, lambda: work) is work
    assert under_way == {work}


def test_messages_are_told_without_places_and_advice() -> None:
    assert first_line(RuntimeError("[/a/b.cc:3] it broke. This is typically caused by x\nsecond")) == "it broke"
    assert first_line(RuntimeError()) == "RuntimeError"
