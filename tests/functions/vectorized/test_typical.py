# SPDX-License-Identifier: Apache-2.0
"""Twenty functions as people write them: which are called for whole blocks, and with the same bits."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.functions.vectorized.blocks import EYE, IMAGES, LABELS, MEAN, RNG, VECTORS, judged

TABLE = RNG.integers(0, 1000, 100)
GRAY = np.float32([0.3, 0.6, 0.1])
RECORDS = {"image": IMAGES, "label": LABELS}


def softmax(x: Any) -> Any:
    e = np.exp(x - x.max())
    return e / e.sum()


EXACT: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: x.astype(np.float32) / 255 - MEAN, IMAGES),
    (lambda r: {**r, "image": r["image"] / np.float32(255)}, RECORDS),
    (lambda y: EYE[y], LABELS),
    (lambda y: (np.arange(10) == y % 10).astype(np.float32), LABELS),
    (lambda x: x[1:4, 1:3][:, ::-1], IMAGES),
    (lambda x: np.transpose(x, (2, 0, 1)), IMAGES),
    (lambda x: np.pad(np.clip(x, 0, 1), (0, 8)), VECTORS),
    (lambda i: TABLE[i % 100], LABELS),
    (lambda x: {"input": x[:-1], "target": x[1:]}, VECTORS),
    (lambda x: np.argsort(x)[-3:], VECTORS),
    (lambda x: np.outer(x, x), VECTORS),
    (lambda x: np.round(np.nan_to_num(x) * 127).astype(np.int8), VECTORS / 9),
    (lambda x: np.median(x), VECTORS),
    (lambda x: x * 2 if x % 2 == 0 else x + 1, np.tile(LABELS, 13)),
]
MEASURED: list[tuple[Callable[..., Any], Any]] = [
    (softmax, VECTORS),
    (lambda x: (x - x.mean()) / (x.std() + 1e-6), VECTORS),
    (lambda x: x / np.linalg.norm(x), VECTORS),
    (lambda x: np.log1p(np.abs(x)), VECTORS),
    (lambda x: x @ GRAY, IMAGES),
]
ALONE: list[tuple[Callable[..., Any], Any]] = [
    (lambda x: (math.sin(x), math.cos(x)), LABELS),
]


def test_fourteen_of_the_twenty_are_exact() -> None:
    every = [*EXACT, *MEASURED, *ALONE]
    assert ([judged(*one) for one in every].count("whole blocks"), len(every)) == (14, 20)


@pytest.mark.parametrize("function, nest", EXACT)
def test_most_are_called_for_whole_blocks(function: Callable[..., Any], nest: Any) -> None:
    assert judged(function, nest) == "whole blocks"


@pytest.mark.parametrize("function, nest", MEASURED)
def test_some_if_they_are_measured(function: Callable[..., Any], nest: Any) -> None:
    told = judged(function, nest, measured=True)
    assert told == "whole blocks" or "other last digits" in told


@pytest.mark.parametrize("function, nest", ALONE)
def test_few_are_never(function: Callable[..., Any], nest: Any) -> None:
    assert "element by element" in judged(function, nest, measured=True)
