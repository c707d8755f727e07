# SPDX-License-Identifier: Apache-2.0
"""Steps that pass on elements unchanged."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from distinput.core.spec import Spec
from distinput.plan.node import Node

__all__ = ["SameElements"]


@dataclass(frozen=True, eq=False)
class SameElements(Node):
    """A step whose elements are those of its input: all or some of them, once or again, in any order.

    Each step states how many there are.
    """

    keeps_batches: ClassVar[bool] = True
    delays: ClassVar[bool] = False
    """True: it passes on every element, but makes or keeps many of them before the first."""
    input: Node

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    @property
    def _asks(self) -> bool:
        return False  # its functions decide which elements come, and not what they look like
