# SPDX-License-Identifier: Apache-2.0
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.functions.vectorized.blocks import EYE, IMAGES, LABELS, SCALARS, VECTORS, judged

PLACES: list[Callable[..., Any]] = [
    lambda x: x[1:4, ::-1],
    lambda x: x[..., 0],
    lambda x: x[0],
    lambda x: x[None, :, -1],
    lambda x: x[[2, 0]],
    lambda x: x[:, [0, 1]],
    lambda x: x.T,
    lambda x: np.transpose(x, (2, 0, 1)),
    lambda x: x.transpose(1, 0, 2).reshape(-1, 3),
    lambda x: x.reshape((4, -1)),
    lambda x: np.reshape(x, -1),
    lambda x: x.ravel()[:7],
    lambda x: np.ravel(x.flatten()),
    lambda x: np.swapaxes(x, 0, -1),
    lambda x: np.moveaxis(x, -1, 0),
    lambda x: np.squeeze(x[:1]),
    lambda x: x[:, :1].squeeze(1),
    lambda x: np.expand_dims(x, -1),
    lambda x: np.flip(x),
    lambda x: np.flip(x, 1),
    lambda x: (np.fliplr(x), np.flipud(x)),
    lambda x: np.rot90(x),
    lambda x: np.roll(x, 2, 0),
    lambda x: np.roll(x, 5),
    lambda x: np.repeat(x, 2, 1),
    lambda x: np.tile(x, (2, 1, 1, 2)),
    lambda x: np.pad(x, ((2, 2), (1, 0), (0, 0))),
    lambda x: np.pad(x, 1, "reflect"),
    lambda x: np.diff(x, axis=0),
    lambda x: np.broadcast_to(x, (2, 5, 4, 3)),
    lambda x: np.stack([x, x + 1], -1),
    lambda x: np.concatenate([x, np.zeros((5, 4, 1), np.uint8)], -1),
    lambda x: np.take(x, [0, 2], axis=1),
    lambda x: x.take([5, 1]),
    lambda x: (np.zeros_like(x), np.ones_like(x, dtype=np.float32), np.full_like(x, 3)),
    lambda x: np.array([x[0, 0, 0], x[1, 0, 0], 3]),
    lambda x: np.asarray(x, np.float64),
    lambda x: x.swapaxes(0, 1).copy(),
    lambda x: np.squeeze(x[0, 0, 0]),
]


@pytest.mark.parametrize("function", PLACES)
def test_values_are_moved_as_in_one_element(function: Callable[..., Any]) -> None:
    assert judged(function, IMAGES) == "whole blocks"


@pytest.mark.parametrize(
    "function", [lambda y: EYE[y], lambda y: np.eye(10)[y], lambda y: EYE[y, 0], lambda y: EYE[0, y]]
)
def test_a_constant_is_indexed_by_the_element(function: Callable[..., Any]) -> None:
    assert judged(function, LABELS) == "whole blocks"


def test_an_element_is_indexed_by_another() -> None:
    assert judged(lambda x, i: (x[i], EYE[np.stack([i, i + 1])]), (VECTORS, LABELS % 6)) == "whole blocks"
    assert judged(lambda i: np.take(EYE, i, axis=0), LABELS) == "whole blocks"


def test_an_index_that_is_too_large_is_an_error_of_its_element() -> None:
    table = np.arange(4)
    assert judged(lambda y: table[y], np.array([0, 1])) == "whole blocks"
    with pytest.raises(IndexError):
        table[LABELS.max()]
    assert judged(lambda y: table[y], LABELS[LABELS > 3]) == "whole blocks are tried"


@pytest.mark.parametrize(
    "function, nest, reason",
    [
        (lambda x: x[x > 0], VECTORS, "depends on a value"),
        (lambda x: x[0, [1, 2]], IMAGES, "several lists or arrays"),
        (lambda x: x[True], VECTORS, "indexed by something"),
        (lambda x: np.nonzero(x), VECTORS, "nonzero, which has no rule"),
        (lambda x: np.where(x > 0), VECTORS, "shape of what it returns depends"),
        (lambda x: np.pad(x, 1, "mean"), VECTORS, "no rule for mode='mean'"),
        (lambda y: EYE[y > 3], LABELS, "indexed by something"),
        (lambda x: np.array([x, x[0]]), VECTORS, "several shapes"),
        (lambda x: np.array(x), SCALARS, "array of a number"),
        (lambda x: np.full_like(x, x[0]), VECTORS, "constant value"),
    ],
)
def test_what_depends_on_values_is_refused(function: Callable[..., Any], nest: Any, reason: str) -> None:
    assert reason in judged(function, nest)
