# SPDX-License-Identifier: Apache-2.0
"""A function that raises StopIteration ends no pass, and no loop around it: it is an error in every place."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.data.dataset import Dataset

NUMBERS = Dataset.range(6)
SPEC = di.data.TensorSpec((), "int64")


def stop(*args: Any) -> Any:
    raise StopIteration


def stop_at_three(*args: Any) -> Any:
    if int(args[-1]) == 3:
        raise StopIteration
    return args[-1]


def ones(*args: Any) -> Any:
    return 1


def reducer(name: str) -> di.data.experimental.Reducer:
    functions: dict[str, Any] = {"init_func": ones, "reduce_func": ones, "finalize_func": ones, name: stop}
    return di.data.experimental.Reducer(*functions.values())


class Source:
    """Rows of which one cannot be read."""

    def __len__(self) -> int:
        return 6

    def __getitem__(self, index: int) -> Any:
        return np.int64(stop_at_three(index))


class Endless(Source):
    """Rows that have no number."""

    def __len__(self) -> int:
        return stop()  # type: ignore[no-any-return]


def saved(folder: Path) -> str:
    NUMBERS.save(str(folder / "saved"))
    return str(folder / "saved")


def grouped(name: str) -> list[Any]:
    functions: dict[str, Any] = {"key_func": ones, "reduce_func": lambda _, window: window, name: stop}
    sizes = {} if "window_size_func" in functions else {"window_size": 2}
    return NUMBERS.group_by_window(**functions, **sizes).to_list()


Called = Callable[[Path], object]

PLACES: dict[str, Called] = {
    "apply": lambda _: NUMBERS.apply(stop),
    "batch_by_tokens": lambda _: NUMBERS.batch_by_tokens(3, length_func=stop_at_three).to_list(),
    "element_spec": lambda _: NUMBERS.map(stop).element_spec,
    "element_spec of scan": lambda _: NUMBERS.scan(np.int64(0), stop).element_spec,
    "filter": lambda _: NUMBERS.filter(stop).to_list(),
    "flat_map": lambda _: NUMBERS.flat_map(stop).to_list(),
    "from_generator": lambda _: Dataset.from_generator(stop, output_signature=SPEC).to_list(),
    "from_source": lambda _: Dataset.from_source(Source()).to_list(),
    "from_source, by position": lambda _: Dataset.from_source(Source())[3],
    "from_source, shuffled": lambda _: Dataset.from_source(Source()).global_shuffle(seed=1).to_list(),
    "length of a source": lambda _: Dataset.from_source(Endless()),
    "interleave": lambda _: NUMBERS.interleave(stop).to_list(),
    "load": lambda folder: Dataset.load(saved(folder), reader_func=stop),
    "map": lambda _: NUMBERS.map(stop_at_three).to_list(),
    "map, a slice": lambda _: NUMBERS.map(stop_at_three)[1:5].to_list(),
    "map, by position": lambda _: NUMBERS.map(stop_at_three)[3],
    "map, several positions": lambda _: NUMBERS.map(stop_at_three).__getitems__([1, 2, 3, 4]),
    "map, shuffled": lambda _: NUMBERS.map(stop_at_three).shuffle(4).to_list(),
    "map, shuffled as a whole": lambda _: NUMBERS.map(stop_at_three).global_shuffle(seed=1).to_list(),
    "map, threads": lambda _: NUMBERS.map(stop_at_three, num_parallel_calls=2).to_list(),
    "map, threads, shuffled": lambda _: NUMBERS.map(stop_at_three, num_parallel_calls=2).shuffle(4).to_list(),
    "map_rows": lambda _: NUMBERS.batch(2).map_rows(stop).to_list(),
    "reduce": lambda _: NUMBERS.reduce(np.int64(0), stop),
    "rejection_resample": lambda _: NUMBERS.rejection_resample(stop, [0.5, 0.5]).to_list(),
    "save": lambda folder: NUMBERS.save(str(folder / "made"), shard_func=stop_at_three),
    "scan": lambda _: NUMBERS.scan(np.int64(0), stop).to_list(),
    "snapshot": lambda folder: NUMBERS.snapshot(str(folder / "made"), shard_func=stop_at_three).to_list(),
    "take_while": lambda _: NUMBERS.take_while(stop).to_list(),
}
for name in ("key_func", "reduce_func", "window_size_func"):
    PLACES[f"group_by_window, {name}"] = lambda _, name=name: grouped(name)  # type: ignore[misc]
for name in ("init_func", "reduce_func", "finalize_func"):
    PLACES[f"group_by_reducer, {name}"] = lambda _, name=name: NUMBERS.apply(  # type: ignore[misc]
        di.data.experimental.group_by_reducer(ones, reducer(name))
    ).to_list()
PLACES["group_by_reducer, key_func"] = lambda _: NUMBERS.apply(
    di.data.experimental.group_by_reducer(stop, di.data.experimental.Reducer(ones, ones, ones))
).to_list()


@pytest.mark.parametrize("name", PLACES)
def test_it_is_an_error_that_no_loop_takes_for_its_end(name: str, tmp_path: Path) -> None:
    def results() -> Iterator[object]:
        yield from map(PLACES[name], [tmp_path])  # which ends at a StopIteration

    with pytest.raises(RuntimeError, match="the function raised StopIteration, which ends no dataset"):
        list(results())
