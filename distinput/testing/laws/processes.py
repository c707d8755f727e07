# SPDX-License-Identifier: Apache-2.0
"""An equal pipeline in another process gives the same elements, and goes on from a state of this one."""

import json
import pickle
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from itertools import islice
from multiprocessing import get_context

from distinput.core.state import State
from distinput.data.dataset import Dataset
from distinput.testing.elements import difference, exact
from distinput.testing.laws.trace import MOST

__all__ = ["check_processes"]


def check_processes(fresh: Callable[[], Dataset], *, most: int = MOST) -> bool:
    """Another process, started anew, gives the same elements and goes on from a state saved in this one.

    Args:
      fresh: makes the pipeline; where it cannot be pickled, as a function inside a function cannot, the law is not checked.
      most: elements looked at when the pipeline is endless.

    Returns:
      Whether it was checked.

    Raises:
      AssertionError: the other process gives other elements.

    >>> check_processes(lambda: None)
    False
    """
    try:
        pickle.dumps(fresh)
    except Exception:  # noqa: BLE001 - whatever keeps it here
        return False
    dataset = fresh()
    with iter(dataset) as elements:
        here = [repr(exact(element)) for element in islice(elements, most)]
    middle = len(here) // 2
    with iter(fresh()) as elements:
        for _ in islice(elements, middle):
            pass
        state = json.loads(json.dumps(elements.state()))
        rest = [repr(exact(element)) for element in islice(elements, most - middle)]
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        there, resumed = pool.submit(_elsewhere, fresh, state, most, middle).result()
    wrong = difference(resumed, rest)
    if wrong is not None:
        raise AssertionError(f"another process: from the state at {middle}: {wrong}")
    if here[middle:] == rest:  # without a seed, each pass over a pipeline made anew has an order of its own
        wrong = difference(there, here)
        if wrong is not None:
            raise AssertionError(f"another process: {wrong}")
    return True


def _elsewhere(fresh: Callable[[], Dataset], state: State, most: int, middle: int) -> tuple[list[str], list[str]]:
    with iter(fresh()) as elements:
        whole = [repr(exact(element)) for element in islice(elements, most)]
    with fresh().restore(state) as elements:
        rest = [repr(exact(element)) for element in islice(elements, most - middle)]
    return whole, rest
