# SPDX-License-Identifier: Apache-2.0
"""Operations of PyTorch's process groups as handles of a channel."""

import re
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

from distinput.distribute.collectives.channel import ChannelLost

__all__ = ["FOREVER", "TorchWorks", "first_line", "started"]

FOREVER = timedelta(days=365)


def first_line(error: BaseException) -> str:
    """The first line of torch's text, without the place in its source and without its advice."""
    text = (str(error).strip() or type(error).__name__).splitlines()[0]
    return re.sub(r"^\[[^]]*/[^]]*\]\s*", "", text).split(". This is typically")[0]


class TorchWorks:
    """Operations of a gloo group that complete together.

    Args:
      works: the `Work` objects of torch.
      under_way: all of the channel; those that complete are removed.
      value: the result.
    """

    def __init__(self, works: list[Any], under_way: set[Any], value: Callable[[], Any]) -> None:
        self._works, self._under_way, self._value = works, under_way, value

    def wait(self, seconds: float) -> bool:
        end = time.monotonic() + seconds
        while self._works:
            if not self._ended(self._works[-1], end - time.monotonic()):
                return False
            self._under_way.discard(self._works.pop())
        return True

    def _ended(self, work: Any, seconds: float) -> bool:
        try:
            if seconds < 0.001:  # gloo takes a limit below a millisecond for no limit at all
                return bool(work.is_completed() and work.wait(FOREVER))
            return bool(work.wait(timedelta(seconds=seconds)))
        except RuntimeError as error:
            if not work.is_completed():  # only the wait has ended, not the operation
                return False
            text = first_line(error)
        try:
            return bool(work.wait(FOREVER))  # completed in between
        except RuntimeError:
            raise ChannelLost(text) from None

    def value(self) -> Any:
        return self._value()


def started(under_way: set[Any], begin: Callable[..., Any], *args: Any) -> Any:
    """The `Work` of an operation that has begun, which is now under way.

    Raises:
      ChannelLost: it could not begin.
    """
    try:
        work = begin(*args)
    except RuntimeError as error:
        raise ChannelLost(first_line(error)) from error
    under_way.add(work)
    return work
