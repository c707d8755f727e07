# SPDX-License-Identifier: Apache-2.0
"""All theorems, by name, and the changes to the code that they must find."""

from tests.proofs import cut, deal, line, order
from tests.proofs.prover import Theorem
from tests.proofs.source import Change

__all__ = ["MUTANTS", "THEOREMS"]

THEOREMS: dict[str, Theorem] = {theorem.name: theorem for room in (cut, deal, line, order) for theorem in room.THEOREMS}

_ASSIGNMENT = "distinput.plan.batch_sizes"
_SHUFFLE = "distinput.kernels.random_orders"

MUTANTS: list[tuple[Change, str]] = [
    (
        (
            _ASSIGNMENT,
            "begin + piece * low + np.minimum(piece, more), begin",
            "begin + piece * low + np.minimum(piece + 1, more), begin",
        ),
        "a piece ends where the next one begins, balanced cut",
    ),
    (
        (_ASSIGNMENT, "low, more = np.divmod(size, pieces)", "low, more = size // pieces + 1, 0"),
        "piece N - 1 ends where its batch ends, balanced cut",
    ),
    (
        (_ASSIGNMENT, "else np.minimum(self.batch_size, self.rows - begin)", "else self.batch_size"),
        "piece N - 1 ends where its batch ends, equal cut",
    ),
    (
        (
            _ASSIGNMENT,
            "each = -(-(self.batch_size if self.assignment.fixed else size) // pieces)",
            "each = size // pieces",
        ),
        "piece N - 1 ends where its batch ends, equal cut",
    ),
    (
        (_ASSIGNMENT, "self.batch_size if self.assignment.fixed else size", "self.batch_size"),
        "cutting in memory and reading own rows are the same, equal cut",
    ),
    (
        (_ASSIGNMENT, "np.minimum((piece + 1) * each, size)", "(piece + 1) * each"),
        "a piece is a range of rows of its batch, fixed cut",
    ),
    (
        (_ASSIGNMENT, "min(max(rest - self.first, 0), self.own)", "min(max(rest - self.first - 1, 0), self.own)"),
        "a worker's pieces are counted exactly",
    ),
    (
        (_ASSIGNMENT, "min(max(rest - self.first, 0), self.own)", "max(rest - self.first, 0)"),
        "a worker's pieces are counted exactly",
    ),
    (
        (_ASSIGNMENT, "return turns * self.own + ", "return turns + "),
        "all workers have equally many steps, one for each batch, balanced cut",
    ),
    (
        (_ASSIGNMENT, "self.first + turn * self.period + place", "self.first + turn * self.own + place"),
        "no piece belongs to two workers, equal cut",
    ),
    (
        (_ASSIGNMENT, "else -(-self.rows // self.batch_size)", "else self.rows // self.batch_size"),
        "batches are counted exactly",
    ),
    (
        (
            "distinput.distribute.input.distribution",
            "replicas.rank, period=replicas.workers",
            "replicas.rank, period=replicas.total",
        ),
        "every piece belongs to a worker, equal cut",
    ),
    (
        (
            "distinput.distribute.input.distribution",
            "replicas.total, replicas.first, period",
            "replicas.total, replicas.rank, period",
        ),
        "no piece belongs to two workers, balanced cut",
    ),
    (
        (
            "distinput.sharding.own_rows",
            "index * parts + node.index, period=count * parts",
            "index * parts + node.index, period=parts",
        ),
        "a share of every W-th batch is a piece of each",
    ),
    (
        ("distinput.columns.block", "min(index + 1, more))", "min(index, more))"),
        "cutting in memory and reading own rows are the same, balanced cut",
    ),
    (
        ("distinput.distribute.input.dealing", "min((i + 1) * size, rows)) for", "(i + 1) * size - 1) for"),
        "cutting in memory and reading own rows are the same, equal cut",
    ),
    (
        ("distinput.plan.batch_sizes", "each = -(-sizes // pieces)[:, None]", "each = (sizes // pieces + 1)[:, None]"),
        "the sizes of a plan are those of the pieces",
    ),
    (
        (
            "distinput.sharding.policies.balanced",
            "total * (worker + 1) // num_workers",
            "total // num_workers * (worker + 1)",
        ),
        "the first stretch begins at 0, the last one ends at T",
    ),
    (
        ("distinput.sharding.own_rows", "return sizes[shift:] + sizes[:shift]", "return sizes"),
        "the sizes of the row stream are those of a balanced cut",
    ),
    (
        ("distinput.sharding.own_rows", "[low] * (replicas - more)", "[low] * replicas"),
        "the row stream has a size for each replica",
    ),
    (
        (_SHUFFLE, "_drawn_reference(right, even) * a >> _32)) % a", "_drawn_reference(right, even) * a >> _32))"),
        "a pair of rounds stays below a * b",
    ),
    (
        (_SHUFFLE, "right = (right + _drawn_reference(left, odd)) % b", "right = _drawn_reference(left, odd) % b"),
        "a pair of rounds keeps different rows apart",
    ),
    (
        (_SHUFFLE, "left = min(left, left - a)", "left = min(left, a)"),
        "the kernel's pair of rounds is the reference's",
    ),
    (
        (_SHUFFLE, "(right + _drawn(left, odd)) & low", "(right + _drawn(right, odd)) & low"),
        "the kernel's pair of rounds is the reference's",
    ),
    (
        (_SHUFFLE, "a = (np.uint64(n - 1) >> bits) + np.uint64(1)", "a = (np.uint64(n) >> bits) + np.uint64(1)"),
        "halves fit into 32 bits, n from 257 to 67108864",
    ),
    (
        (_SHUFFLE, "middle = high * n_low + (low * n_low >> _32)", "middle = high * n_low"),
        "a slot that is drawn is the upper half of a product, below n",
    ),
]
"""Each change, made in the library's source, and the theorem that does not survive it."""
