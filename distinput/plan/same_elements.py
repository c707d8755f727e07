# SPDX-License-Identifier: Apache-2.0
"""Steps that hand on elements as they are."""

from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from distinput.core.spec import Spec
from distinput.plan.node import Node

__all__ = ["SameElements"]


@dataclass(frozen=True, eq=False)
class SameElements(Node):
    """A step whose elements are those of its input: all or some of them, once or again, in any order.

    How many there are, each step says on its own.
    """

    keeps_batches: ClassVar[bool] = True
    delays: ClassVar[bool] = False
    """True: it hands on every element, but makes or keeps many of them before the first."""
    input: Node

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec
