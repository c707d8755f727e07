# SPDX-License-Identifier: Apache-2.0
"""A pipeline as text shows every step once with its place, its elements and how many there are."""

import numpy as np

import distinput as di
from distinput.plan.text import render

DATASET = di.data.Dataset


def test_inputs_are_indented_below_their_step() -> None:
    assert render(DATASET.zip(DATASET.range(2), DATASET.range(3).repeat()).take(1).node).splitlines() == [
        "take(count=1)  (int64, int64)  x1",
        "  zip(structure='(., .)')  (int64, int64)  x2",
        "    range(first=0, stop=2)  int64  x2",
        "    repeat()  int64  endless",
        "      range(first=0, stop=3)  int64  x3",
    ]


def words(dataset: DATASET) -> list[str]:
    """What the first line says of the elements and their number."""
    return render(dataset.node).splitlines()[0].split("  ")[1:]


def test_leaves_are_named_by_dtype_and_shape() -> None:
    element = {"a": np.zeros((2, 3), np.float32), "b": b"text", "c": (np.int8(1),)}
    assert words(DATASET.from_tensors(element)) == ["{'a': float32[2, 3], 'b': string, 'c': (int8,)}", "x1"]
    assert words(DATASET.range(5).batch(2)) == ["int64[?]", "x3"]
    assert words(DATASET.range(5).window(2)) == ["dataset", "x3"]
    assert words(DATASET.range(5).filter(lambda x: x > 2)) == ["int64", "x?"]


def test_an_unknown_rank_is_shown_as_such() -> None:
    spec = di.TensorSpec(None, np.int32)
    assert words(DATASET.from_generator(lambda: iter(()), output_signature=spec)) == ["int32[...]", "x?"]


def test_a_step_whose_spec_cannot_be_told_is_shown_all_the_same() -> None:
    def broken(x: int) -> int:
        raise KeyError(x)

    dataset = DATASET.range(2).map(broken)
    first, second = render(dataset.node).splitlines()
    assert "while inferring the spec>" in first
    assert second == "  range(first=0, stop=2)  int64  x2"
