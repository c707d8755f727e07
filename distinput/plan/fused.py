# SPDX-License-Identifier: Apache-2.0
"""Neighbouring steps of one kind run as one."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from distinput.core.spec import Spec
from distinput.plan.describe import describe
from distinput.plan.one_for_one import OneForOne

__all__ = ["Fused", "Neighbours"]


class _Step(Protocol):
    @property
    def map_func(self) -> Any: ...

    @property
    def spec(self) -> Spec: ...


S = TypeVar("S", bound=_Step)


@dataclass(frozen=True)
class Neighbours(Generic[S]):
    """Steps that were neighbours, in order; they are no longer nodes of the tree, since no block passes between them."""

    steps: tuple[S, ...]

    def __str__(self) -> str:
        return ", ".join([describe(step.map_func) for step in self.steps])


@dataclass(frozen=True, eq=False)
class Fused(OneForOne, Generic[S]):
    """Neighbouring steps that run as one.

    Args:
      functions: the steps.
    """

    tolerant: ClassVar[bool] = True
    functions: Neighbours[S]

    @cached_property
    def spec(self) -> Spec:
        return self.functions.steps[-1].spec
