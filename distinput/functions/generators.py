# SPDX-License-Identifier: Apache-2.0
"""Functions that get random numbers of their own for each element."""

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.random.bit_generator import ISpawnableSeedSequence

from distinput.plan.binding import by_name

__all__ = ["KeySeed", "WithGenerator"]


class WithGenerator:
    """A function of (key, element), which calls another one with the element and a generator as its last argument.

    The generator is NumPy's Philox, whose numbers are a function of its key alone.

    Args:
      function: called with the components of a tuple as arguments, with anything else as one argument; then the generator.

    Raises:
      TypeError: the function takes fewer than two arguments.

    >>> draw = WithGenerator(lambda x, rng: x + rng.integers(100))
    >>> bool(draw(np.array([1, 2], np.uint64), 0) == draw(np.array([1, 2], np.uint64), 0))
    True

    Source: Salmon, Moraes, Dror, Shaw: Parallel random numbers: as easy as 1, 2, 3 (SC 2011).
    """

    def __init__(self, function: Callable[..., Any]) -> None:
        _check_takes_generator(function)
        self.function = function
        functools.update_wrapper(self, function, updated=())

    def __reduce__(self) -> tuple[Any, ...]:
        return WithGenerator, (by_name(self.function),)

    def __call__(self, key: Any, element: Any) -> Any:

        rng = np.random.Generator(np.random.Philox(KeySeed(key)))  # type: ignore[arg-type]  # any ISeedSequence
        return self.function(*element, rng) if type(element) is tuple else self.function(element, rng)


def _check_takes_generator(function: Callable[..., Any]) -> None:
    """Refuse a function that is seen to take one argument alone, where an element and a generator are given.

    Raises:
      TypeError: it does.
    """
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # of C, which does not tell
        return
    if any(each.kind is each.VAR_POSITIONAL for each in parameters):
        return
    taken = [each.name for each in parameters if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if len(taken) < 2:
        raise TypeError(
            f"map: with rng=True the function is called with a numpy.random.Generator as its last argument, so it must take "
            f"two or more, got {getattr(function, '__name__', function)}({', '.join(taken)}); write "
            f"lambda {', '.join([*taken, 'rng'])}: ..., or leave out rng=True"
        )


# ----------------------------------------------------------------------------
# A key of Philox in the place of a seed.
# ----------------------------------------------------------------------------


class KeySeed(ISpawnableSeedSequence):
    """What `Philox(key=...)` should be: that asks the operating system for a seed as well.

    Which takes twice as long as all else, and generators that are spawned would follow from that seed.

    Args:
      key: uint64 [2].
    """

    def __init__(self, key: Any) -> None:
        self.key = key
        self._children: np.random.SeedSequence | None = None

    def generate_state(self, n_words: int, dtype: Any = np.uint32) -> Any:
        """The key."""
        return self.key

    def spawn(self, n_children: int) -> Any:
        """Seeds for more generators, others in each call."""
        self._children = self._children or np.random.SeedSequence(np.asarray(self.key).tolist())
        return self._children.spawn(n_children)
