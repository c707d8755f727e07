# SPDX-License-Identifier: Apache-2.0
import functools
import itertools
import math
import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from distinput.functions.vectorized.answers import Refused, Rules
from distinput.functions.vectorized.whole_block import Transplant
from tests.functions.vectorized.blocks import EYE, SCALARS, VECTORS, judged

SEEN: list[Any] = []
SCALE = 3.0
RECORD = np.zeros(1, [("n", int)])[0]
NUMBERS = itertools.count()
GENERATOR = np.random.default_rng(1)
LARGE = np.zeros(200_000)


class Settings:
    scale = 2.0


def helper(x: Any) -> Any:
    return x * SCALE


def printing(x: Any) -> Any:
    print(x)
    return x


def noting(x: Any) -> Any:
    SEEN.append(x)
    return x


class Stateful:
    def __init__(self) -> None:
        self.count = 0

    def __call__(self, x: Any) -> Any:
        self.count += 1
        return x + self.count


@pytest.mark.parametrize(
    "function, reason",
    [
        (printing, "it uses print"),
        (noting, "reads `SEEN`, a list"),
        (lambda x: x + len(SEEN), "reads `SEEN`, a list"),
        (lambda x: x + next(NUMBERS), "it reads `NUMBERS`|it uses next"),
        (lambda x: x * random.random(), r"module random|\.random"),
        (lambda x: x * np.random.rand(), r"\.random"),  # noqa: NPY002 - what is refused
        (lambda x: x * GENERATOR.normal(), r"`GENERATOR`|\.normal"),
        (lambda x: x + time.time(), r"module time|\.time"),
        (lambda x: math.sqrt(x), r"math\.sqrt"),
        (lambda x: x * Settings.scale, r"class Settings|\.scale"),
        (lambda x: LARGE[:1] + x, "read-only"),
        (lambda x: isinstance(x, float), "it uses isinstance"),
        (lambda x: [0, 1][int(x)], "depends on a value"),
        (lambda x: missing + x, "it uses missing"),  # type: ignore[name-defined]  # noqa: F821
        (Stateful(), "no function of Python or NumPy"),
        (Stateful().__call__, "no function of Python or NumPy"),
        (functools.partial(noting), "reads `SEEN`"),
        (lambda x: x + RECORD["n"], "reads `RECORD`, a void"),
    ],
)
def test_side_effects_and_changing_values_keep_single_calls(function: Callable[..., Any], reason: str) -> None:
    told = judged(function, SCALARS) if not isinstance(function, Stateful) else _why(function)
    assert told.startswith("element by element") or isinstance(function, Stateful)
    assert any(part in told.replace("\\", "") for part in reason.replace("\\", "").split("|")), told


def _why(function: Callable[..., Any]) -> str:
    with pytest.raises(Refused) as found:
        Transplant(function, Rules(measured=False))
    return str(found.value)


def test_functions_numbers_arrays_and_numpy_may_be_read() -> None:
    scale, shift = 2, (1, 2.5)

    def reading(x: Any, more: float = 0.5) -> Any:
        parts = [helper(x) * scale + part for part in shift]
        return parts[0] + parts[1] + math.pi + EYE[0, :6].sum() + more

    assert judged(reading, VECTORS) == "whole blocks"
    assert judged(functools.partial(reading, more=3.0), VECTORS) == "whole blocks"
    assert judged(np.negative, VECTORS) == "whole blocks"
    assert judged(abs, VECTORS) == "whole blocks"


def test_a_value_that_changes_is_noticed() -> None:
    table, factor = np.ones(3), 2

    def reading(x: Any) -> Any:
        return table * x * factor

    made = Transplant(reading, Rules(measured=False))
    made.check()
    table[1] = 5
    with pytest.raises(Refused, match="the array `table`, which it reads, has changed"):
        made.check()
    table[1] = 1
    made.check()
    factor = 3
    with pytest.raises(Refused, match="`factor`, which it reads, has changed"):
        made.check()


def named(x: Any, *, factor: float = 2.0) -> Any:
    return x * factor


def test_a_named_argument_that_changes_is_noticed() -> None:
    partly = functools.partial(named, factor=3.0)
    pairs: list[Any] = [(partly, partly.keywords), (named, named.__kwdefaults__)]
    for function, arguments in pairs:
        made = Transplant(function, Rules(measured=False))
        made.check()
        arguments["factor"] += 1
        with pytest.raises(Refused, match="`factor`, which it reads, has changed"):
            made.check()
        arguments["factor"] = 2.0


def test_a_large_array_may_be_read_if_it_is_read_only() -> None:
    large = np.zeros(200_000)
    large.flags.writeable = False
    assert judged(lambda x: large[x], np.arange(5)) == "whole blocks"


def test_an_array_from_outside_is_not_written_to() -> None:
    buffer = np.zeros(6, np.float32)

    def filling(x: Any) -> Any:
        buffer[0] = 1
        return x + buffer

    assert judged(filling, VECTORS) == "whole blocks are tried"  # the block failed, and single calls are made
    assert buffer[0] == 0
