# SPDX-License-Identifier: Apache-2.0
"""Steps whose random numbers follow from a seed."""

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

from distinput.core.random import fresh_seed, key_of, unrelated
from distinput.core.state import State
from distinput.plan.check import integer
from distinput.plan.node import Node

__all__ = ["Seeded"]


@dataclass(frozen=True, eq=False)
class Seeded(Node):
    """A step with a seed: the user's, or one that it draws, which states remember.

    Subclasses have `seed` among their fields, where TensorFlow's arguments have it, and put `seeded` into their states. The
    random numbers of a pass follow from `key_of_pass` and a position. A step whose seed does not decide which element comes
    next overrides `chooses`; one whose passes differ, `reshuffles`.
    """

    drawn_seed: int = field(default_factory=fresh_seed, kw_only=True, repr=False)
    mark: int = field(default_factory=unrelated, kw_only=True, repr=False)
    """A number that copies of the step have, and no other step."""
    place: int = field(default=0, kw_only=True, repr=False)
    """Which of the places of this step in its tree it stands at; the first one is 0 (`plan.places`)."""

    @property
    @abstractmethod
    def seed(self) -> int | None:
        """Any integer; None: `drawn_seed` takes its place."""

    @property
    def draws(self) -> bool:
        return self.seed is None

    @property
    def chooses(self) -> bool:
        return True

    def seeded(self, epoch: int, row: int = 0) -> State:
        """What a state holds of the seed, the pass and the position."""
        seed = self.drawn_seed if self.seed is None else int(self.seed)
        return {"seed": key_of(seed, self.place) if self.place else seed, "epoch": epoch, "row": row}

    @property
    def differs_by_place(self) -> bool:
        return self.reshuffles

    def at_place(self, place: int) -> Self:
        """The same step at another place."""
        return replace(self, place=place).same_as(self)

    def key_of_pass(self, state: State) -> int:
        """The key of the random numbers of the pass that a state is of."""
        return key_of(state["seed"], state["epoch"] if self.reshuffles else 0)

    def check_seed(self, op: str) -> None:
        """Refuse a seed that is no integer.

        Raises:
          TypeError: it is none.
        """
        if self.seed is not None:
            integer(op, "seed", self.seed)
