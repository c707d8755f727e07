# SPDX-License-Identifier: Apache-2.0
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.plan.fingerprint import layout

Dataset: Any = di.data.Dataset


@pytest.mark.parametrize(
    "dataset, text",
    [
        (Dataset.range(4).batch(np.int64(2)), "batch(batch_size=2, drop_remainder=0; range(first=0, stop=4, step=1))"),
        (
            Dataset.range(4).scan(np.timedelta64(7, "ms"), lambda s, x: (s, x)),
            "scan(initial_state=7; range(first=0, stop=4, step=1))",
        ),
        (Dataset.range(4).map(abs).prefetch(2), "map(processes=0; range(first=0, stop=4, step=1))"),
        (Dataset.range(4).batch(3).rebatch([1, 2]), None),
        (Dataset.zip(Dataset.range(1), Dataset.range(2)), None),
    ],
)
def test_steps_are_shown_with_their_whole_numbers(dataset: Any, text: str | None) -> None:
    shown = layout(dataset.node)
    assert text is None or shown == text
    assert "prefetch" not in shown


def test_trees_of_the_same_steps_in_another_shape_differ() -> None:
    a, b, c = [Dataset.range(n) for n in (1, 2, 3)]
    nested, flat = Dataset.zip(Dataset.zip(a, b), c), Dataset.zip(a, b, c)
    assert len({layout(nested.node), layout(flat.node), layout(Dataset.zip(a, Dataset.zip(b, c)).node)}) == 3


def test_sizes_of_a_list_count() -> None:
    assert layout(Dataset.range(9).batch(3).rebatch([1, 2]).node) != layout(
        Dataset.range(9).batch(3).rebatch([2, 1]).node
    )


def test_how_many_maps_were_joined_counts() -> None:
    def joined(count: int) -> Any:
        made = Dataset.range(9)
        for _ in range(count):
            made = made.map(lambda x: x + 1)
        return made._runs().node

    assert layout(joined(2)) != layout(joined(3))


def test_functions_arrays_and_threads_do_not_count() -> None:
    def made(array: Any, function: Any, calls: int | None) -> str:
        return layout(Dataset.from_tensor_slices(array).map(function, num_parallel_calls=calls).node)

    assert made(np.arange(3), abs, None) == made(np.arange(5), lambda x: x + 1, 4)
