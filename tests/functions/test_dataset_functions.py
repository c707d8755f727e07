# SPDX-License-Identifier: Apache-2.0
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.functions.dataset_functions import Making, check_first, hash_of, node_of, spec_of_elements
from distinput.plan.families import drawn_seeds
from distinput.plan.node import Node

RANGE = di.data.Dataset.range
SHUFFLED = RANGE(9).shuffle(9)


def shuffled(element: Any) -> di.data.Dataset:
    return SHUFFLED


def order(node: Node) -> list[int]:
    return [int(x) for x in di.data.Dataset(node)]


def test_a_dataset_or_its_node_is_taken_and_nothing_else() -> None:
    dataset = RANGE(3)
    assert node_of("flat_map", dataset) is dataset.node
    assert node_of("flat_map", dataset.node) is dataset.node
    with pytest.raises(TypeError, match=r"must return a dataset, got list; Dataset\.from_tensor_slices makes one"):
        node_of("flat_map", [1, 2])


def test_a_function_that_returns_no_dataset_is_refused_where_the_first_element_is_known() -> None:
    with pytest.raises(TypeError, match="interleave: the function must return a dataset, got int64"):
        check_first("interleave", lambda x: x, RANGE(3).node)
    check_first("interleave", lambda x: x, RANGE(0).node)  # there is no first element
    check_first("interleave", lambda x: x, RANGE(3).map(lambda x: x).node)  # it would take a call to know it
    check_first("interleave", lambda x: 1 // 0, RANGE(3).node)  # an error of the function belongs to the iteration


def test_seeds_follow_from_the_seed_of_the_step_and_the_element() -> None:
    make = Making("flat_map", shuffled, 5)
    assert drawn_seeds(SHUFFLED.node)
    assert order(make(np.int64(1))) == order(make(np.int64(1)))
    orders = {tuple(order(Making("flat_map", shuffled, seed)(np.int64(x)))) for seed in (5, 6) for x in range(5)}
    assert len(orders) == 10


def test_a_seed_that_the_user_gave_stays() -> None:
    dataset = RANGE(9).shuffle(9, seed=3)
    assert Making("flat_map", lambda _: dataset, 5)(np.int64(1)) is dataset.node


@pytest.mark.parametrize(
    "a, b",
    [
        (np.int64(1), np.int64(2)),
        (np.int64(1), np.int32(1)),
        (np.zeros(2), np.zeros((2, 1))),
        (b"a", b"b"),
        (di.RaggedTensor.from_list([[1], [2]]), di.RaggedTensor.from_list([[1, 2], []])),
        (di.RaggedTensor.from_list([[1], [2]]), di.RaggedTensor.from_list([[1], [3]])),
        ({"a": np.int64(1), "b": np.int64(2)}, {"a": np.int64(2), "b": np.int64(1)}),
    ],
)
def test_other_elements_have_other_hashes(a: Any, b: Any) -> None:
    assert hash_of(a) == hash_of(a)
    assert hash_of(a) != hash_of(b)


def test_a_hash_is_the_same_in_every_process() -> None:
    program = "import numpy, distinput.functions.dataset_functions as f; print(f.hash_of((numpy.int64(1), b'x')))"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, timeout=300)
    assert int(run.stdout) == hash_of((np.int64(1), b"x"))


def test_the_spec_is_that_of_the_elements_of_the_datasets() -> None:
    def function(x: Any) -> di.data.Dataset:
        return RANGE(x).map(lambda y: np.float32(y))

    call = Making("flat_map", function, 0)
    spec = spec_of_elements("flat_map", call, RANGE(3).node, function)
    assert spec.nest == di.TensorSpec([], "float32")
