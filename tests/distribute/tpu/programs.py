# SPDX-License-Identifier: Apache-2.0
"""Replica functions, written for NumPy and for JAX alike, and how to compare what strategies make of them."""

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

import distinput as di

context = di.distribute.get_replica_context
REPLICAS = 8


def xp(x: Any) -> Any:
    """The library that an array belongs to."""
    return jnp if isinstance(x, jax.Array) else np


def each_row(x: Any) -> Any:
    return xp(x).tanh(x) * 2 + 1


def own_sum(x: Any) -> Any:
    return x.sum()


def own_mean(x: Any) -> Any:
    return x.mean()


def divided_by_its_rows(x: Any) -> Any:
    return (x * context().row_mask[:, None]).sum() / x.shape[0]


def masked_sum(x: Any) -> Any:
    return (x * context().row_mask[:, None]).sum()


def masked_mean(x: Any) -> Any:
    mask = context().row_mask
    return xp(x).where(mask[:, None], x, 0).sum(0) / xp(x).maximum(mask.sum(), 1)


def forgotten_mask(x: Any) -> Any:
    mask = context().row_mask
    return (x * mask[:, None]).sum(), (x + 1).sum()


def rows_in_a_nest(x: Any) -> Any:
    return {"rows": x + 1, "total": (x * context().row_mask[:, None]).sum(0), "text": "same", "number": 3}


def less_its_mean(x: Any) -> Any:
    return x - x.mean(0)


def reversed_rows(x: Any) -> Any:
    return x[::-1]


def twice_as_many_rows(x: Any) -> Any:
    return xp(x).concatenate([x, x])


def counted(x: Any) -> Any:
    return xp(x).arange(x.shape[0]).sum()


def ones_counted(x: Any) -> Any:
    return xp(x).ones(x.shape[0]).sum()


def features(x: Any) -> Any:
    return x @ xp(x).arange(6, dtype=np.float32).reshape(3, 2) + 1


def products(x: Any) -> Any:
    return x.T @ x


def masked_products(x: Any) -> Any:
    return x.T @ (x * context().row_mask[:, None])


def sum_of_all(x: Any) -> Any:
    mask = context().row_mask[:, None]
    return context().all_reduce("SUM", xp(x).asarray((x * mask).sum(0)))


def number(x: Any) -> Any:
    return x.sum() * 0 + context().replica_id_in_sync_group


def rows_that_differ_by_number(x: Any) -> Any:
    return x + context().replica_id_in_sync_group


ALL: list[Callable[[Any], Any]] = [
    each_row,
    own_sum,
    own_mean,
    divided_by_its_rows,
    masked_sum,
    masked_mean,
    forgotten_mask,
    rows_in_a_nest,
    less_its_mean,
    reversed_rows,
    twice_as_many_rows,
    counted,
    ones_counted,
    features,
    products,
    masked_products,
    sum_of_all,
    number,
    rows_that_differ_by_number,
]
PADDED = {each_row, masked_sum, masked_mean, rows_in_a_nest, features, masked_products, sum_of_all,
          rows_that_differ_by_number}  # fmt: skip
"""Those that may run with added rows."""


def parts_of(rows: list[int], dtype: Any = np.float32) -> Any:
    """A value with as many rows for each replica."""
    values = np.random.default_rng(sum(rows)).integers(-50, 50, (sum(rows), 3)).astype(dtype)
    if np.dtype(dtype).kind == "f":
        values = values / dtype(8)
    return di.distribute.PerReplica(np.split(values, np.cumsum(rows)[:-1]))


def plain(strategy: Any, value: Any) -> list[Any]:
    """The components of a nest, as NumPy arrays in nests."""
    return [
        jax.tree.map(lambda x: x if isinstance(x, str | int) else np.asarray(x), part)
        for part in strategy.experimental_local_results(value)
    ]


def same(found: Any, expected: Any) -> None:
    """Check that two nests hold the same numbers, integers exactly."""
    assert jax.tree.structure(found) == jax.tree.structure(expected)
    for a, b in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        assert np.shape(a) == np.shape(b)
        if np.asarray(b).dtype.kind == "f":
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=2e-5)
        else:
            np.testing.assert_array_equal(a, b)
