# SPDX-License-Identifier: Apache-2.0
"""Functions that nobody would write: a whole block gives what a call for each element gives, warnings and errors too."""

from random import Random
from typing import Any

import numpy as np
import pytest

from distinput.functions.chain import Chain
from distinput.functions.vectorized import whole_block
from distinput.functions.vectorized.answers import Refused, Unfit, same_bits
from distinput.functions.vectorized.whole_block import WholeBlock
from distinput.values.leaves import as_leaf
from distinput.values.nest import structure_of
from tests.depth import cases, new_seed
from tests.functions.vectorized.blocks import block_of
from tests.functions.vectorized.random_functions import DTYPES, SHAPES, USUAL, Writer, function_of, rows_of

LARGEST = 10_000  # bytes of a result


@pytest.mark.filterwarnings("ignore", "error::RuntimeWarning")
def test_whole_blocks_give_what_single_calls_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(whole_block, "_ELEMENTS_OF_WAY", 1)
    monkeypatch.setattr(whole_block, "_SAMPLES", 1)
    seed, made = new_seed(), 0
    for number in range(seed, seed + cases(30, 20_000)):
        random = Random(number)
        rows = [_argument(random) for _ in range(random.randint(1, 3))]
        if random.random() < 0.5:
            rows.append(rows_of(random, rows[0].dtype.str, rows[0].shape[1:]))
        texts = [_written(random, rows)]
        between = _whole(texts, rows)
        if not isinstance(between, str) and random.random() < 0.3:
            texts.append(_written(random, [column.array for column in between[0].columns]))
        told = _difference(texts, rows)
        assert not told, "\n".join([f"seed {number}, {[(a.dtype.str, a.shape[1:]) for a in rows]}", *texts, told])
        made += not isinstance(between, str)
    assert made > 0


def _argument(random: Random) -> Any:
    (dtype,) = random.choices(list(DTYPES), list(DTYPES.values()))
    return rows_of(random, dtype, random.choice(SHAPES))


def _written(random: Random, rows: list[Any]) -> str:
    """A function that is called for whole blocks of the usual elements."""
    usual = [array[::USUAL] for array in rows]

    def works(text: str) -> bool:
        made = _whole([text], usual)
        return not isinstance(made, str) and made[0].nbytes < LARGEST * len(usual[0])

    return Writer(random, ["x", "y", "z", "w"][: len(rows)]).grow(works)


def _nest(values: list[Any]) -> Any:
    return tuple(values) if len(values) > 1 else values[0]


def _chain(texts: list[str]) -> Chain:
    return Chain([function_of(text) for text in texts])


def _whole(texts: list[str], rows: list[Any]) -> Any:
    """Results for a whole block, a row on each way, and what made them; or in words why there are none."""
    try:
        with np.errstate(divide="raise", over="raise", invalid="raise"):
            whole = WholeBlock(_chain(texts).functions, measured=False)
            return *whole(block_of(_nest(rows))), whole
    except Refused as refusal:
        return f"refused: {refusal}"
    except (Unfit, Exception) as error:  # noqa: BLE001 - whatever a random function raises
        return f"unfit: {error!r}"


def _difference(texts: list[str], rows: list[Any]) -> str:
    """What a call for one element gives that the block does not, in words; a block that has no results is cut in two."""
    given = [array.copy() for array in rows]
    made = _whole(texts, given)
    if any(a.tobytes() != b.tobytes() for a, b in zip(given, rows, strict=True)):
        return "elements were changed"
    if isinstance(made, str):
        rare = np.delete(np.arange(len(rows[0])), np.s_[::USUAL])
        if made.startswith("refused") or len(rare) < 2:
            return ""
        halves = [np.insert(half, range(0, len(half), USUAL - 1), 0) for half in np.array_split(rare, 2)]
        return next(filter(None, [_difference(texts, [array[half] for array in rows]) for half in halves]), "")
    columns, ways, whole = made
    chain, unlike = _chain(texts), ""
    for row in range(len(rows[0])):
        element = [array[row].copy() if array.ndim > 1 else array[row] for array in rows]
        try:
            alone = chain(_nest(element))
        except Exception as error:  # noqa: BLE001 - the same
            unlike = unlike or f"{element} raises {error!r}"
            continue
        alone = tuple(alone) if type(alone) is list else alone
        if structure_of(alone) != columns.structure:
            unlike = unlike or f"{element} has another structure"
            continue
        for leaf, column in zip(columns.structure.flatten(alone), columns.columns, strict=True):
            value, other = np.asarray(as_leaf(leaf)), np.asarray(column.row(row))
            if (value.dtype, value.shape) != (other.dtype, other.shape):
                unlike = unlike or f"{element} gives {value!r}, and in a block {other!r}"
            elif not same_bits(value, other):
                return f"{element} gives {value!r}, and in a block {other!r}"
    if unlike:  # which one element on each way shows, unless it is a rare one
        try:
            with np.errstate(divide="raise", over="raise", invalid="raise"):
                whole.compared(block_of(_nest(rows)), columns, ways, _chain(texts))
        except (Refused, Exception):  # noqa: BLE001 - it does
            return ""
    return unlike
