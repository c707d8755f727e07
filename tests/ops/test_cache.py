# SPDX-License-Identifier: Apache-2.0
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError

RANGE = di.data.Dataset.range


def test_the_input_is_read_once() -> None:
    seen = []

    def see(x: int) -> int:
        seen.append(int(x))
        return x

    dataset = RANGE(3).map(see, output_signature=di.TensorSpec([], "int64")).cache()
    assert dataset.to_list() == dataset.to_list() == [0, 1, 2]
    assert seen == [0, 1, 2]


def test_an_incomplete_pass_is_not_kept() -> None:
    dataset = RANGE(5).shuffle(5).cache()
    with iter(dataset) as it:
        next(it)
    assert sorted(dataset.to_list()) == [0, 1, 2, 3, 4]


def test_later_passes_keep_the_first_order() -> None:
    dataset = RANGE(50).shuffle(50, seed=1).cache()
    assert dataset.to_list() == dataset.to_list()


@pytest.mark.parametrize(
    "given, says",
    [
        ({"max_bytes": 10}, "cache: max_bytes bounds a cache on disk; give filename too, or leave it out"),
        ({"filename": "a", "max_bytes": 0}, "cache: max_bytes must be greater than zero, got 0"),
    ],
)
def test_arguments_are_checked(given: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        RANGE(3).cache(**given)


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize(
    "use",
    [
        lambda cached: di.data.Dataset.zip((cached, di.data.Dataset.range(8))),
        lambda cached: di.data.Dataset.zip((di.data.Dataset.range(8), cached)),
        lambda cached: di.data.Dataset.zip((cached, di.data.Dataset.range(100).shuffle(5))),
        lambda cached: cached.take(99),
    ],
)
def test_a_cache_that_was_read_to_its_end_is_whole(use: Any, known: bool) -> None:
    assert _calls(use, known) == 8


def test_a_cache_of_known_size_is_whole_with_its_last_element() -> None:
    assert _calls(lambda cached: cached.take(8), known=True) == 8


def _calls(use: Any, known: bool) -> int:
    """How often a function below a cache is called in three passes."""
    calls: list[int] = []

    def counted(x: Any) -> Any:
        calls.append(1)
        return x

    source = di.data.Dataset.range(8).map(counted, output_signature=di.TensorSpec([], "int64"))
    if not known:
        source = source.filter(lambda _: True)
    dataset = use(source.cache())
    for _ in range(3):
        dataset.to_list()
    return len(calls)
