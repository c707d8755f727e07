# SPDX-License-Identifier: Apache-2.0
"""`balance_replicas`: the rows of each global batch in another order, so that the parts of replicas cost equally much."""

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from distinput.columns.block import Block, Failure, concat_blocks, failed
from distinput.columns.column import Ints
from distinput.columns.rows import Stream, passing_over
from distinput.columns.state import State
from distinput.errors import InvalidArgumentError
from distinput.functions.chain import calling
from distinput.kernels.dealing import EXCHANGES, deal_evenly
from distinput.names.lazy import dataclass
from distinput.plan.batch_sizes import BatchSizes
from distinput.plan.families import OneForOne
from distinput.plan.node import Needs, walk
from distinput.run.run import Run, called_once, note_element
from distinput.values.nullable import Nullable
from distinput.values.spec import Spec

_UNITS = 1 << 40
"""What the costs of a batch sum to where they are no whole numbers."""


@dataclass(frozen=True, eq=False)
class BalanceRows(OneForOne):
    """Reorder the rows of each batch, so that consecutive pieces of it cost equally much.

    Pieces have as many rows as a balanced cut gives them, and keep the order of their rows.

    Shapes, batches: unchanged. State: where the next batch stands in the input.

    Args:
      cost: batch -> a number for each row, or several, one for each module; the components of a tuple are its arguments. Or
        names of components that hold the numbers, one for each module.
      pieces: how many there are. A state does not depend on it.

    Raises:
      InvalidArgumentError: at iteration, `cost` does not return numbers for each row, or one is negative or not finite.

    Source: the longest first, each to the replica with the least (Graham: Bounds on multiprocessing timing anomalies, 1969),
    with room for equally many; then rows of the costliest and the cheapest piece are exchanged while that helps.
    """

    needs: ClassVar[Needs] = Needs.EACH
    keeps_batches = by_element = tolerant = True
    indifferent: ClassVar[frozenset[str]] = OneForOne.indifferent | {"pieces"}
    op: ClassVar[str] = "balance_replicas"
    spec_given: ClassVar[bool] = True  # by the input
    cost: Callable[..., Any] | str | Sequence[str]
    pieces: int

    @cached_property
    def spec(self) -> Spec:
        return self.input.spec

    def batch_sizes(self) -> BatchSizes | None:
        return self.input.batch_sizes()

    def stream(self, state: State, run: Run) -> Stream:
        for block, mark_at in passing_over(self.input.open(state["input"], run), state):
            if type(block) is Failure:
                yield block, mark_at(0)
                continue
            for place in range(block.size):
                try:
                    made: Block = self._balanced(block.rows(place, place + 1))
                except Exception as error:  # noqa: BLE001 - `failed` raises it, unless the run is tolerant
                    made = failed(error, tolerant=run.tolerant)
                yield made, mark_at(place + 1)

    def fetch(self, rows: Ints, epoch: int) -> Block:
        block = self.input.fetch(rows, epoch)
        return concat_blocks([self._balanced(block.rows(i, i + 1)) for i in range(block.size)]) if block.size else block

    def _balanced(self, one: Block) -> Block:
        batch = one.materialize()
        return self.ordered(batch, batch)

    def ordered(self, one: Block, batch: Block) -> Block:
        """Something of each row of a batch, in the order in which the rows come; both are blocks of one element.

        Raises:
          InvalidArgumentError: there are more rows of something than of something else; the message names the steps to look at.
        """
        rows = one.columnar().unstack()
        own = rows if one is batch else batch.columnar().unstack()
        sizes = sorted({len(column) for column in (*rows.columns, *own.columns)})
        if len(sizes) > 1:
            raise InvalidArgumentError(
                f"InputOptions(balance_replicas): {self._changed_by} must leave the rows of a batch as they are, and parts of "
                f"a batch, or its records, have {sizes[0]} and {sizes[-1]} rows; leave rows out before they are batched"
            )
        costs = self._costs(batch.row(0), rows.size)
        return one if self.pieces < 2 or rows.size < 2 else rows.take(self._order(costs)).stack(rows.size)

    @property
    def _changed_by(self) -> str:
        """The steps that may change how many rows a batch has, in words."""
        steps = [step for step in walk(self.input) if isinstance(step, OneForOne) and not step.keeps_batches]
        some = [step.where() for step in steps if any(leaf.shape != () for leaf in step.input.spec.leaves)]
        return " or ".join(some or [self.input.where()])

    def _order(self, costs: Ints) -> Ints:
        """The order in which the rows of a batch come."""
        owners = np.empty(len(costs), np.int64)
        deal_evenly(costs if costs.ndim == 1 else costs.sum(1), np.zeros(self.pieces, np.int64), owners)
        if costs.ndim > 1:
            _even_out(costs, owners, self.pieces)
        return np.argsort(owners, kind="stable")

    def _costs(self, batch: Any, count: int) -> Ints:
        """The costs of a batch as whole numbers; those of several modules sum to the same."""
        try:
            given = called_once(calling(self.cost), batch) if callable(self.cost) else _named(self.cost, batch)
            costs = np.asarray(given)
            of_rows = costs.shape[:1] == (count,) and costs.ndim <= 2 and (costs.size or not count)
            if costs.dtype.kind not in "iuf" or not of_rows:
                raise InvalidArgumentError(
                    f"InputOptions(balance_replicas): cost must return one number for each of the {count} rows of a batch, or "
                    f"[{count}, modules], got {costs.dtype} of shape {list(costs.shape)}"
                )
            if not (np.isfinite(costs).all() and (costs >= 0).all()):
                raise InvalidArgumentError(
                    f"InputOptions(balance_replicas): costs must be finite and not negative, got {costs.min()} to {costs.max()}"
                )
        except Exception as error:
            note_element(error, batch)
            raise
        if costs.ndim > 1:
            sums = costs.sum(0, dtype=np.float64)
            return (costs / np.where(sums, sums, 1.0) * _UNITS).astype(np.int64)
        total = float(costs.sum(dtype=np.float64))
        if costs.dtype.kind != "f" and total < _UNITS:
            return costs.astype(np.int64)
        return (costs.astype(np.float64) / (total or 1.0) * _UNITS).astype(np.int64)


def _named(given: str | Sequence[str], batch: Any) -> Any:
    """The numbers that components of a batch hold; [rows, names] where there are several names."""
    found = [_component(batch, name, name) for name in ([given] if isinstance(given, str) else given)]
    return found[0] if len(found) == 1 else np.stack(found, 1)


def _component(part: Any, rest: str, name: str) -> Any:
    """What is at a name, with dots in it for parts of inner dicts."""
    who = "InputOptions(balance_replicas)"
    keys = list(part) if isinstance(part, dict) else []
    key = rest if rest in keys else next((key for key in keys if rest.startswith(f"{key}.")), None)
    if key is None:
        has = f"it has {', '.join(map(repr, keys))}" if isinstance(part, dict) else "elements are no dicts"
        raise InvalidArgumentError(f"{who}: there is no component {name!r}; {has}")
    if key != rest:
        return _component(part[key], rest[len(key) + 1 :], name)
    if isinstance(part[key], Nullable):
        raise InvalidArgumentError(
            f"{who}: component {name!r} may be null; name '{name}.value', which is 0 for nulls of tables"
        )
    return part[key]


def _even_out(costs: Ints, owners: Ints, pieces: int) -> None:
    """Exchange rows so that the costliest piece in any module has less, while one exchange helps, `EXCHANGES` times at most.

    Args:
      costs: [n, modules].
      owners: [n], the piece of each row; changed.
      pieces: how many there are.
    """
    loads = np.zeros((pieces, costs.shape[1]), np.int64)
    np.add.at(loads, owners, costs)
    for _ in range(EXCHANGES):
        high = int(loads.max(1).argmax())
        givers, takers = np.flatnonzero(owners == high), np.flatnonzero(owners != high)
        if not len(givers) or not len(takers):
            return
        gains = costs[givers][:, None] - costs[takers][None]  # [givers, takers, modules]
        after = np.maximum(loads[high] - gains, loads[owners[takers]] + gains).max(2)
        i, j = np.unravel_index(after.argmin(), after.shape)
        if after[i, j] >= loads[high].max():
            return
        other = owners[takers[j]]
        loads[high] -= gains[i, j]
        loads[other] += gains[i, j]
        owners[givers[i]], owners[takers[j]] = other, high
