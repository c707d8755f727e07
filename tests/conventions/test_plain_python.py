# SPDX-License-Identifier: Apache-2.0
"""What Python programs expect of datasets and iterators; docs/conventions.md lists the lines."""

import copy
import gc
import logging
import operator
import pickle
import random
import subprocess
import sys
import threading
import warnings
from importlib.resources import files
from pathlib import Path
from typing import Any, get_type_hints

import numpy as np
import pytest

import distinput as di
from tests.patience import threads_since, wait_until

Dataset = di.data.Dataset


def distributed(dataset: Any) -> Any:
    return di.distribute.MirroredStrategy(["CPU:0", "CPU:1"]).experimental_distribute_dataset(dataset)


@pytest.mark.parametrize(
    "made", [Dataset.range(5).batch(2), distributed(Dataset.range(5).batch(2))], ids=["data", "dist"]
)
def test_a_dataset_is_iterated_again_and_its_iterator_is_another_object(made: Any) -> None:
    one, other = iter(made), iter(made)
    assert one is not other
    assert one is not made
    assert iter(one) is one
    next(one)
    assert len(list(one)) == 2
    assert len(list(other)) == len(list(made)) == 3


def test_len_is_known_or_a_type_error_and_iterators_hint_at_it() -> None:
    known, unknown = Dataset.range(5).batch(2), Dataset.range(5).filter(lambda x: x > 1)
    assert len(known) == len(distributed(known)) == 3
    for dataset in (unknown, known.repeat()):
        with pytest.raises(TypeError):
            len(dataset)
        with pytest.raises(TypeError):
            len(distributed(dataset.batch(2)))
        assert operator.length_hint(iter(dataset), -1) == -1
        assert bool(dataset) is True
    assert bool(distributed(known.take(0))) is True
    for iterator in (iter(known), iter(distributed(known))):
        left = []
        for _ in range(3):
            left.append(operator.length_hint(iterator, -1))
            next(iterator)
        assert left == [3, 2, 1]
        assert operator.length_hint(iterator, -1) == 0
        assert list(iterator) == []


def test_an_iterator_is_a_context_manager_that_closes_twice_and_is_dropped_in_silence() -> None:
    before = threading.enumerate()
    for dataset in (Dataset.range(50).map(lambda x: x, num_parallel_calls=2).prefetch(2),) * 2:
        with iter(dataset) as iterator:
            next(iterator)
        iterator.close()
        iterator.close()
        assert list(iterator) == []
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        left = iter(dataset)
        next(left)
        del left
        gc.collect()
    wait_until(lambda: not threads_since(before))  # one that is just being started cannot be joined
    run = subprocess.run(
        [sys.executable, "-c", "import distinput as di; it = iter(di.data.Dataset.range(9).prefetch(2)); next(it)"],
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert (run.returncode, run.stderr) == (0, "")


def test_a_dataset_is_pickled_and_copied_and_an_iterator_is_not() -> None:
    dataset = Dataset.from_tensor_slices(np.arange(1000)).shuffle(10, seed=1).batch(3)
    assert pickle.loads(pickle.dumps(dataset)).to_list() == dataset.to_list()
    assert copy.copy(dataset).node is dataset.node  # nothing but a handle is copied
    for iterator in (iter(dataset), iter(distributed(dataset))):
        for make in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=r"cannot be copied or sent to another process.*state\(\)"):
                make(iterator)


def test_repr_reads_nothing(tmp_path: Path) -> None:
    missing = di.data.TextLineDataset(str(tmp_path / "nobody.txt"))
    assert (
        repr(missing) == "<TextLineDataset text(TextLines(compression_type=None)): elements of string, not counted yet>"
    )
    never = Dataset.from_generator(lambda: 1 / 0, output_signature=di.TensorSpec([], "int64"))
    assert "generator" in repr(never)
    assert "DistributedDataset" in repr(distributed(never.batch(2)))


def test_no_global_generator_is_touched() -> None:
    random.seed(1)
    np.random.seed(1)  # noqa: NPY002 - the generator that must stay as it is
    before = random.getstate(), np.random.get_state()  # noqa: NPY002
    Dataset.range(20).shuffle(7).repeat(2).batch(3).to_list()
    Dataset.range(20).global_shuffle(seed=3).to_list()
    after = random.getstate(), np.random.get_state()  # noqa: NPY002
    assert before[0] == after[0]
    assert repr(before[1]) == repr(after[1])


def test_types_are_hinted_and_shipped() -> None:
    assert files("distinput").joinpath("py.typed").is_file()
    assert get_type_hints(Dataset.batch)
    assert get_type_hints(di.distribute.MirroredStrategy.experimental_distribute_dataset)


def test_warnings_have_a_category_and_log_lines_a_logger(caplog: pytest.LogCaptureFixture) -> None:
    assert issubclass(di.errors.InputWarning, UserWarning)
    damaged = Dataset.range(3).map(lambda x: 1 // int(x)).ignore_errors(log_warning=True)
    with caplog.at_level(logging.WARNING):
        damaged.to_list()
    here = [record for record in caplog.records if record.thread == threading.get_ident()]
    assert {record.name.partition(".")[0] for record in here} == {"distinput"}
