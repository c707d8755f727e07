# SPDX-License-Identifier: Apache-2.0
"""An error names the very record: the file, and the record in it, wherever steps give one element for one."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import distinput as di
from tests.depth import cases
from tests.lineage.carried import ID, corpora, corpus

STEPS: dict[str, Callable[[Any], Any]] = {
    "map": lambda ds: ds.map(lambda x: x),
    "parallel map": lambda ds: ds.map(lambda x: x, num_parallel_calls=2),
    "rng": lambda ds: ds.map(lambda x, rng: x, rng=True, seed=1),
    "skip": lambda ds: ds.skip(2),
    "take": lambda ds: ds.take(17),
    "shard": lambda ds: ds.shard(2, 1),
    "prefetch": lambda ds: ds.prefetch(1),
    "repeat": lambda ds: ds.repeat(2),
    "enumerate": lambda ds: ds.enumerate().map(lambda i, x: x),
    "shuffle": lambda ds: ds.shuffle(4, seed=3),
    "global": lambda ds: ds.global_shuffle(seed=3),
    "concatenate": lambda ds: ds.take(3).concatenate(ds),
}

FAILING: dict[str, Callable[[Any, int], Any]] = {
    "map": lambda ds, bad: ds.map(lambda x: _fail(x, bad)),
    "parallel map": lambda ds, bad: ds.map(lambda x: _fail(x, bad), num_parallel_calls=2),
    "not vectorized": lambda ds, bad: ds.map(lambda x: _fail(x, bad), vectorize=False),
    "result": lambda ds, bad: ds.map(lambda x: x if x != bad else np.zeros(2)),
    "signature": lambda ds, bad: ds.map(
        lambda x: x if x != bad else "text", output_signature=di.TensorSpec((), np.int64)
    ),
    "nothing": lambda ds, bad: ds.map(lambda x: {"a": x, "b": x if x != bad else {1}}),
    "filter": lambda ds, bad: ds.filter(lambda x: _fail(x, bad) > -1),
    "flat_map": lambda ds, bad: ds.flat_map(lambda x: di.data.Dataset.from_tensors(_fail(x, bad))),
    "batch": lambda ds, bad: ds.map(lambda x: np.zeros(1 if x != bad else 2)).batch(1 << 10),
}


def _fail(x: Any, bad: int) -> Any:
    if x == bad:
        raise ValueError("bad")
    return x


def named(error: Exception) -> list[tuple[str, int]]:
    """The records in the notes of an error."""
    found = [re.fullmatch(r"record ([\d,]+) of (.*)", note) for note in error.__notes__]
    return [(match[2], int(match[1].replace(",", ""))) for match in found if match]


def error_of(dataset: Any) -> Exception | None:
    try:
        for _ in dataset:
            pass
    except Exception as error:  # noqa: BLE001 - looked at by the test
        return error
    return None


@settings(max_examples=cases(25, 3000))
@given(
    corpora,
    st.lists(st.sampled_from(sorted(STEPS)), max_size=3),
    st.sampled_from(sorted(FAILING)),
    st.integers(0, 40),
    st.data(),
)
def test_no_error_names_another_record(found: Any, names: list[str], failing: str, place: int, data: Any) -> None:
    ds = found.dataset()
    for name in names:
        if name == "global" and found.read:
            continue  # its records cannot be counted
        try:
            ds = STEPS[name](ds)
        except di.errors.InvalidArgumentError:
            return  # no global shuffle over these
    there = [int(x) for x in ds.iter_pass(0)]
    if not there:
        return
    bad = there[place % len(there)]
    if failing in ("result", "nothing", "batch") and there.index(bad) == 0:
        return  # the first result decides what the others are held to
    error = error_of(FAILING[failing](ds, bad).iter_pass(0))
    assert error is not None
    records = named(error)
    assert records in ([], [(found.files[bad // ID], bad % ID)]), (records, error.__notes__)
    surely = not {"repeat", "concatenate", "shuffle", "global"} & set(names)
    assert records or not surely or (failing == "batch" and len(there) > 1 << 10), error.__notes__


@pytest.mark.parametrize("failing", sorted(FAILING))
def test_the_record_in_the_middle_of_a_block(failing: str) -> None:
    found = corpus("text", (400, 900))
    error = error_of(FAILING[failing](found.dataset(), ID + 233))
    assert error is not None
    assert named(error) == [(found.files[1], 233)]


def test_a_map_over_batches_names_the_records_of_the_batch() -> None:
    found = corpus("text", (400, 900))
    error = error_of(found.dataset().batch(8).map(lambda x: _fail(x[3], ID + 227)))
    assert error is not None
    assert error.__notes__[-1] == f"record 224 of {found.files[1]} and the 7 after it"


def test_how_far_was_read_is_said_where_the_record_is_not_known() -> None:
    found = corpus("text", (400, 900))
    error = error_of(found.dataset().filter(lambda x: x % 2 > 0).map(lambda x: _fail(x, ID + 233)))
    assert error is not None
    assert error.__notes__[-1].startswith(f"last read: {found.files[1]} at ")
    assert "the error is somewhere before" in error.__notes__[-1]


def test_the_component_is_named() -> None:
    ds = di.data.Dataset.range(9)
    error = error_of(ds.map(lambda x: {"a": x, "b": [[1], [1, 2]] if x == 5 else [[1], [2]]}))
    assert str(error).startswith("component ['b']: a list becomes an array")
    error = error_of(ds.map(lambda x: {"a": x, "b": np.zeros(1 + int(x == 5))}).batch(4))
    assert str(error).startswith(
        "Cannot batch tensors with different shapes in component ['b']: first element had shape [1]"
    )
    error = error_of(ds.map(lambda x: {"a": x, "b": x if x < 5 else {2}}))
    assert str(error).startswith("component ['b']: cannot make an array of a set")
