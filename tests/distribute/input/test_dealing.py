# SPDX-License-Identifier: Apache-2.0
import dataclasses
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from distinput.distribute.input.dealing import Cutter, Placeholders, balanced_slices, dealer, equal_slices, has_rows
from distinput.errors import InvalidArgumentError
from distinput.plan.batch_sizes import Assignment
from distinput.values.nest import structure_of
from distinput.values.spec import DatasetSpec, Spec, TensorSpec


class Pair(NamedTuple):
    a: Any
    b: Any


@dataclasses.dataclass
class Record:
    x: Any
    y: Any


@given(st.integers(0, 500), st.integers(1, 20))
def test_balanced_slices_take_every_row_once(rows: int, replicas: int) -> None:
    slices = balanced_slices(rows, replicas)
    taken = np.concatenate([np.arange(rows)[s] for s in slices])
    sizes = [s.stop - s.start for s in slices]
    assert taken.tolist() == list(range(rows))
    assert len(slices) == replicas
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


@pytest.mark.parametrize(
    "make",
    [
        lambda i: i,
        lambda i: (i, [i]),
        lambda i: {"b": i, "a": (i, None)},
        lambda i: Pair(i, i),
        lambda i: Record(i, (i,)),
    ],
)
def test_elements_are_dealt_in_their_nest(make: Any) -> None:
    structure = structure_of(make(0), lists=True)
    dealt = dealer(structure, 3)(make(0), make(1), make(2))
    assert [leaf.values for leaf in structure.flatten(dealt)] == [(0, 1, 2)] * structure.num_leaves
    assert type(dealt) is (type(make(0)) if structure.num_leaves > 1 else type(dealt))


def test_a_cut_is_views() -> None:
    batch = {"x": np.arange(10).reshape(5, 2), "s": np.array([b"a"] * 5, object)}
    spec = Spec.of({"x": TensorSpec([5, 2], "int64"), "s": TensorSpec([6], object)})
    cutter = Cutter(spec, Assignment(3, 0, period=3, own=3, balanced=True))
    cut = cutter(batch)
    assert [part.shape for part in cut["x"].values] == [(2, 2), (2, 2), (1, 2)]
    assert all(part.base is not None and np.shares_memory(part, batch["x"]) for part in cut["x"].values)
    assert [leaf.shape for leaf in cutter.spec(spec).tensors("test")] == [(2,), (None, 2)]


@pytest.mark.parametrize("pieces", [1, 3])
@pytest.mark.parametrize("balanced", [False, True])
def test_each_batch_is_cut_by_its_own_rows(balanced: bool, pieces: int) -> None:
    """A cutter keeps how it cut the batch before, which may have had other rows."""
    single, both = TensorSpec([None], "int64"), (TensorSpec([None], "int64"), TensorSpec([None, 2], "int64"))
    assignment = Assignment(pieces, 0, period=pieces, own=pieces, balanced=balanced)
    cutter, cutters = Cutter(Spec.of(single), assignment), Cutter(Spec.of(both), assignment)
    cut = balanced_slices if balanced else equal_slices
    for rows in (7, 7, 2, 0, 7, 9):
        batch = (np.arange(rows), np.arange(2 * rows).reshape(rows, 2))
        parts = [[leaf[piece].tolist() for piece in cut(rows, pieces)] for leaf in batch]
        assert [part.tolist() for part in cutter(batch[0]).values] == parts[0]
        assert [[part.tolist() for part in leaf.values] for leaf in cutters(batch)] == parts
        with pytest.raises(InvalidArgumentError, match="at least one dimension"):
            cutters((batch[0], np.int64(1)))


def test_what_cannot_be_cut() -> None:
    cutter = Cutter(
        Spec.of((TensorSpec(None, "int64"), TensorSpec(None, "int64"))),
        Assignment(2, 0, period=2, own=2, balanced=True),
    )
    with pytest.raises(InvalidArgumentError, match="All components must have at least one dimension"):
        cutter((np.int64(1), np.ones(2)))
    with pytest.raises(InvalidArgumentError, match=r"as many rows, got \[2, 3\]"):
        cutter((np.ones(2), np.ones(3)))


@pytest.mark.parametrize(
    "shape, seen, want",
    [
        ([None], None, (0,)),
        ([4, 3], None, (0, 3)),
        ([None, None], None, (0, 0)),
        ([None, None], [2, 5], (0, 5)),
        ([4, None], [4, 7], (0, 7)),
        ([], None, ()),
        (None, None, ()),
        (None, [2, 3], (0, 3)),
    ],
)
def test_an_empty_part_has_no_rows_and_the_inner_shape(shape: Any, seen: Any, want: tuple[int, ...]) -> None:
    for dtype in ("float32", object):
        stand_in = Placeholders(Spec.of(TensorSpec(shape, dtype)))
        made = stand_in.element(None if seen is None else [seen])
        assert np.shape(made) == want
        assert isinstance(made, bytes) if dtype is object and want == () else made.dtype == np.dtype(dtype)


def test_nothing_stands_for_a_data_set() -> None:
    with pytest.raises(InvalidArgumentError, match="nothing that stands for a dataset"):
        Placeholders(Spec.of(DatasetSpec(TensorSpec([], "int64")))).element(None)


def test_a_replica_without_rows_lacks_a_shape_only_where_the_spec_leaves_it_open() -> None:
    rows, none = np.ones((2, 3)), np.ones((0, 3))
    opened, known = (
        Placeholders(Spec.of(TensorSpec([None, None], "float64"))),
        Placeholders(Spec.of(TensorSpec([None, 3], "float64"))),
    )
    assert not opened.lacks([rows, rows], 2, cut=True)
    assert opened.lacks([rows], 2, cut=False)
    assert opened.lacks([], 1, cut=False)
    assert opened.lacks([rows, none], 2, cut=True)
    assert not opened.lacks([rows, none], 2, cut=False)  # an element of the user's, which is as it is
    assert not known.lacks([], 2, cut=True)


@pytest.mark.parametrize(
    "shapes, expected", [([[0, 3]], False), ([[2, 3]], True), ([[]], True), ([[0], [1]], True), ([], False)]
)
def test_which_shapes_are_those_of_an_element_with_rows(shapes: list[list[int]], expected: bool) -> None:
    assert has_rows(shapes) is expected
