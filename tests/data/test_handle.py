# SPDX-License-Identifier: Apache-2.0
"""What a dataset can be asked for, whatever it is made of."""

import operator
import pickle
from functools import partial

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

Dataset = di.data.Dataset
RANGE = Dataset.range


def test_the_length_is_told_where_it_is_known() -> None:
    assert len(RANGE(7).batch(2)) == 4
    with pytest.raises(TypeError, match=r"^The dataset is infinite\.$"):
        len(RANGE(7).repeat())
    with pytest.raises(TypeError, match=r"^The dataset length is unknown\.$"):
        len(RANGE(7).filter(lambda x: x > 3))
    for thinned in (RANGE(7).ignore_errors(), RANGE(7).map(abs, on_error="skip").batch(2)):
        with pytest.raises(TypeError, match=r"^The dataset length is unknown: \w+_errors? leaves out what fails; `car"):
            len(thinned)
    assert RANGE(0)  # an empty dataset is one, too


def test_an_explanation_says_what_fired_and_what_each_worker_reads() -> None:
    told = RANGE(9).repeat(2).take(5).take(3).explain(num_workers=2)
    assert "rules: take_of_take\nruns:\n  take(count=3)" in told
    assert "shards: 2 workers" in told
    assert "rules: none" in RANGE(9).explain()
    assert "runs:" not in RANGE(9).explain()


def test_a_dataset_shows_its_last_step() -> None:
    assert repr(RANGE(4).batch(2)) == "<Dataset batch(2): 2 elements of int64[?]>"
    assert repr(di.data.TextLineDataset("a.txt")).startswith("<TextLineDataset ")


def test_a_pass_has_no_negative_number() -> None:
    with pytest.raises(InvalidArgumentError, match=r"^iter_pass: number must be at least 0, got -1$"):
        RANGE(4).iter_pass(-1)


def test_a_dataset_that_was_used_is_sent_to_another_process() -> None:
    dataset = di.data.Dataset.range(5).map(partial(operator.mul, 2)).shuffle(5, seed=1).batch(2)
    found = dataset.to_list()
    _ = dataset.element_spec, dataset[1], dataset.explain(), dataset.stats()
    again = pickle.loads(pickle.dumps(dataset))
    assert again.element_spec == dataset.element_spec
    assert [x.tolist() for x in again.iter_pass(0)] == found
