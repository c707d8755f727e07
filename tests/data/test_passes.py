# SPDX-License-Identifier: Apache-2.0
"""Passes are counted from 0, for a dataset and for what is made of it."""

import os

import pytest

import distinput as di
from distinput.data.iterator import Passes

Dataset = di.data.Dataset
NODE = Dataset.range(3).node


def test_passes_are_numbered_from_zero() -> None:
    passes = Passes()
    assert [passes.begin(NODE) for _ in range(3)] == [0, 1, 2]


def test_the_pass_after_a_given_one_is_the_next() -> None:
    passes = Passes()
    assert [passes.begin(NODE, 5), passes.begin(NODE), passes.begin(NODE, 0), passes.begin(NODE)] == [5, 6, 0, 1]


def test_the_pass_after_one_that_goes_on_is_the_next() -> None:
    passes = Passes()
    passes.goes_on(7)
    assert passes.begin(NODE) == 8


def test_another_process_goes_on_counting_outside_of_a_data_loader(monkeypatch: pytest.MonkeyPatch) -> None:
    passes = Passes()
    passes.begin(NODE)
    monkeypatch.setattr(os, "getpid", lambda: passes.process + 1)
    assert passes.begin(NODE) == 1


def test_a_dataset_and_what_is_made_of_it_are_counted_together() -> None:
    shuffled = Dataset.range(5).shuffle(5, seed=1)
    batched = shuffled.batch(5)
    orders = [list(shuffled), next(iter(batched)).tolist(), list(shuffled)]
    assert orders == [list(shuffled.iter_pass(number)) for number in range(3)]


def test_a_step_that_reshuffles_counts_its_own_passes() -> None:
    source = Dataset.range(5)
    list(source)
    first = source.shuffle(5, seed=1)
    assert list(first) == list(Dataset.range(5).shuffle(5, seed=1))
