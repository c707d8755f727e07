# SPDX-License-Identifier: Apache-2.0
import copy
import pickle
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing.block_sizes import small_blocks

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


LEFT: list[Any] = [
    lambda cached: cached.take(9),
    lambda cached: cached.prefetch(1).take(9),
    lambda cached: cached.batch(4).take(2).unbatch(),
    lambda cached: RANGE(2).concatenate(cached.take(9)),
    lambda cached: di.data.Dataset.zip((cached, RANGE(9))).map(lambda x, _: x),
]


@pytest.mark.parametrize("behind", LEFT)
@pytest.mark.parametrize("size", [22, 30_000])
def test_a_pass_that_is_left_gives_later_ones_its_order(behind: Any, size: int) -> None:
    """However far ahead steps behind the cache read, which blocks and threads decide."""
    dataset = behind(RANGE(size).filter(lambda x: x >= 0).shuffle(100, seed=1).cache())
    first = [int(x) for x in dataset]
    assert [[int(x) for x in dataset] for _ in range(2)] == [first, first]
    again = [int(x) for x in dataset.repeat(2)]
    assert again == [*first, *first]


def test_a_pass_beside_one_that_is_not_over_has_its_order() -> None:
    dataset = RANGE(60_000).filter(lambda x: x >= 0).shuffle(100, seed=1).batch(2).cache()
    with iter(dataset) as one:
        begun = next(one).tolist()
        every = [batch.tolist() for batch in dataset]
        assert [begun, *[batch.tolist() for batch in one]] == every


@pytest.mark.parametrize("behind", LEFT)
@pytest.mark.parametrize("twice", [False, True])
def test_states_of_passes_behind_one_that_was_left_are_exact(behind: Any, twice: bool) -> None:
    def make() -> Any:
        dataset = behind(RANGE(22).filter(lambda x: x >= 0).shuffle(100, seed=1).cache())
        return dataset.repeat(2) if twice else dataset

    dataset = make()
    for _ in range(3):
        elements, states = [], []
        with iter(dataset) as iterator:
            states.append(iterator.state())
            for element in iterator:
                elements.append(int(element))
                states.append(iterator.state())
        for place in range(0, len(states), 3):  # as another process does
            assert [int(x) for x in make().restore(states[place])] == elements[place:]


@pytest.mark.parametrize(
    "given, says",
    [
        ({"max_bytes": 10}, "cache: max_bytes bounds a cache on disk; give filename or shared too, or leave it out"),
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


KEPT: dict[str, Callable[[Any, Path], Any]] = {
    "in memory": lambda ds, _: ds.cache(),
    "on disk": lambda ds, folder: ds.cache(folder),
    "snapshot": lambda ds, folder: ds.snapshot(folder),
}


@pytest.mark.parametrize("kept", list(KEPT))
@pytest.mark.parametrize("bad", [0, 3, 5])
def test_what_others_leave_out_is_an_error_where_it_is_not_left_out(kept: str, bad: int, tmp_path: Path) -> None:
    fails = {bad}

    def checked(x: Any) -> Any:
        if int(x) in fails:
            raise ValueError(f"element {x}")
        return x

    spec = di.TensorSpec((), "int64")
    dataset = KEPT[kept](di.data.Dataset.range(6).map(checked, output_signature=spec), tmp_path / "kept")
    others = [x for x in range(6) if x != bad]
    for _ in range(2):
        assert dataset.ignore_errors().to_list() == others
        with pytest.raises(ValueError, match=f"element {bad}"):
            dataset.to_list()
    fails.clear()
    assert dataset.to_list() == list(range(6))


def test_an_iterator_that_went_on_after_an_error_keeps_nothing_for_others() -> None:
    def checked(x: Any) -> Any:
        if x == 2:
            raise ValueError("element 2")
        return x

    dataset = di.data.Dataset.range(5).map(checked).cache()
    for _ in range(2):
        elements, seen = iter(dataset), []
        with pytest.raises(ValueError, match="element 2"):
            seen.extend(int(x) for x in elements)
        assert [int(x) for x in elements] == [3, 4]


def test_options_that_leave_out_elements_are_of_their_pipeline() -> None:
    def checked(x: Any) -> Any:
        if x == 2:
            raise ValueError("element 2")
        return x

    dataset = di.data.Dataset.range(5).map(checked).cache()
    options = di.data.Options()
    options.on_error = "skip"
    assert [dataset.with_options(options).to_list() for _ in range(2)] == [[0, 1, 3, 4]] * 2
    with pytest.raises(ValueError, match="element 2"):
        dataset.to_list()


@pytest.mark.parametrize("kept", list(KEPT))
@pytest.mark.parametrize("bad", [(0, 3), (1, 2), (2, 5)])
def test_a_loop_that_goes_on_meets_every_error_that_others_left_out(
    kept: str, bad: tuple[int, int], tmp_path: Path
) -> None:
    def checked(x: Any) -> Any:
        if x in bad:
            raise ValueError(f"element {x}")
        return x

    def seen() -> list[int | str]:
        found: list[int | str] = []
        elements = iter(dataset)
        while True:
            try:
                found.append(int(next(elements)))
            except ValueError as error:
                found.append(str(error))
            except StopIteration:
                return found

    spec = di.TensorSpec((), "int64")
    dataset = KEPT[kept](di.data.Dataset.range(6).map(checked, output_signature=spec), tmp_path / "kept")
    every = [f"element {x}" if x in bad else x for x in range(6)]
    for _ in range(2):
        assert dataset.ignore_errors().to_list() == [x for x in range(6) if x not in bad]
        assert seen() == every


@pytest.mark.parametrize("kept", list(KEPT))
def test_a_loop_that_met_the_errors_of_what_it_kept_goes_on_without_them(kept: str, tmp_path: Path) -> None:
    def checked(x: Any) -> Any:
        if x == 2:
            raise ValueError("element 2")
        return x

    dataset = KEPT[kept](di.data.Dataset.range(5).map(checked), tmp_path / "kept")
    elements, seen = iter(dataset.repeat(4)), []
    for _ in range(3):
        try:
            seen.extend(int(x) for x in elements)
        except ValueError:
            seen.append(-1)
    assert seen[-8:] == [0, 1, 3, 4] * 2
    with pytest.raises(ValueError, match="element 2"):
        dataset.to_list()


@pytest.mark.parametrize("send", [lambda dataset: pickle.loads(pickle.dumps(dataset)), copy.deepcopy])
@pytest.mark.parametrize("passes", [0, 1])
def test_a_copy_makes_the_same_elements_itself(send: Any, passes: int) -> None:
    """Before the first pass and after it, whose order all later ones have; nothing that is kept is sent."""
    dataset = RANGE(500).shuffle(500).cache().batch(7)
    before = [dataset.to_list() for _ in range(passes)]
    sent = send(dataset)
    assert sent.to_list() == sent.to_list() == dataset.to_list() == (before or [dataset.to_list()])[0]
    assert len(pickle.dumps(dataset)) == len(pickle.dumps(send(dataset)))


def test_a_state_of_a_cache_goes_on_in_a_copy() -> None:
    dataset = RANGE(50).shuffle(50).cache().repeat(2)
    with iter(dataset) as iterator:
        for _ in range(70):
            next(iterator)
        sent, state = pickle.loads(pickle.dumps(dataset)), iterator.state()
        assert list(sent.restore(state)) == list(iterator)


def test_the_worker_of_a_loader_has_a_cache_of_its_own() -> None:
    data = pytest.importorskip("torch.utils.data")
    view = di.interop.torch.IterableView(RANGE(20).cache())
    loader = data.DataLoader(view, batch_size=None, num_workers=1, multiprocessing_context="spawn")
    assert list(map(int, loader)) == list(range(20))


@pytest.mark.parametrize("then", [lambda ds: ds, lambda ds: ds.concatenate(RANGE(100, 122)).take(6)])
@pytest.mark.parametrize("kept", list(KEPT))
def test_a_pass_that_is_closed_while_threads_make_its_elements_is_not_kept_as_a_whole_one(
    kept: str, then: Any, tmp_path: Path
) -> None:
    """The thread that reads the cache waits for the one below it, and is told of an end, behind which others may go on."""
    released = threading.Event()

    def held(x: Any) -> Any:
        if x == 5:
            assert released.wait(300)
        return x

    with small_blocks(1):
        made = RANGE(22).map(held, output_signature=di.TensorSpec([], "int64")).prefetch(1)
        dataset = KEPT[kept](then(made), tmp_path / "kept").prefetch(1)
        elements = iter(dataset)
        assert [int(next(elements)) for _ in range(5)] == list(range(5))
        elements._run.cancel()  # as `close` does, which waits for both threads
        released.set()
        elements.close()
        every = [int(x) for x in dataset]
        assert every == list(range(len(every)))
        assert len(every) == dataset.cardinality()


def test_a_state_of_a_pass_within_passes_of_a_later_epoch_goes_on() -> None:
    source = di.data.Dataset.range(3)
    dataset = source.cache().repeat(2).repeat(2)
    for _ in range(2):
        source.to_list()  # datasets made of one dataset count their passes together
    with iter(dataset) as iterator:
        next(iterator)
        state = iterator.state()
    assert max(state["kept"]) >= 1 << 63
    assert list(dataset.restore(state)) == [1, 2, *range(3), *range(3), *range(3)]
