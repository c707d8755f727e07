# SPDX-License-Identifier: Apache-2.0
"""A cache on disk: for later programs and other processes, whole or not at all, and only of the same pipeline."""

import errno
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import fsspec
import numpy as np
import pytest

import distinput as di
from distinput.errors import FailedPreconditionError, InputWarning, InvalidArgumentError, StateError
from distinput.files.sink import Sink
from distinput.testing import check_positions
from distinput.testing.elements import exact
from distinput.writers import open_file
from distinput.writers.manifest import MANIFEST, read_written
from distinput.writers.stage import Stage

RANGE = di.data.Dataset.range
SPEC = di.TensorSpec([], "int64")


def counted(calls: list[int], size: int = 5) -> Any:
    def see(x: int) -> int:
        calls.append(int(x))
        return x

    return RANGE(size).map(see, output_signature=SPEC)


def test_the_input_is_read_once_by_all(tmp_path: Path) -> None:
    calls: list[int] = []
    first = counted(calls).cache(tmp_path / "c")
    assert first.to_list() == first.to_list() == counted(calls).cache(str(tmp_path / "c")).to_list() == [0, 1, 2, 3, 4]
    assert calls == [0, 1, 2, 3, 4]
    names = sorted(os.listdir(tmp_path / "c"))
    assert names[0] == MANIFEST
    assert len(names) == 2
    di.io.verify_files(str(tmp_path / "c"))


def test_another_process_reads_it(tmp_path: Path) -> None:
    program = """
import sys, distinput as di
print(di.data.Dataset.range(50).shuffle(50).batch(7).cache(sys.argv[1]).to_list())
"""
    found = [
        subprocess.run([sys.executable, "-c", program, str(tmp_path / "c")], capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    assert found[0].stdout == found[1].stdout  # though each draws its own seed


def test_only_a_whole_pass_is_kept(tmp_path: Path) -> None:
    calls: list[int] = []
    dataset = counted(calls, 100).batch(10).cache(tmp_path / "c")
    with iter(dataset) as elements:
        next(elements)
    assert os.listdir(tmp_path / "c") == []
    made = in_blocks([]).cache(tmp_path / "d")
    with pytest.warns(InputWarning, match=r"wants no more after \d+ elements.*dataset\.take\(n\)\.cache\("):
        assert len(made.take(2).to_list()) == 2
    assert os.listdir(tmp_path / "d") == []
    assert len(made.take(2).to_list()) == 2  # it is said once
    assert len(dataset.to_list()) == 10
    calls.clear()
    assert len(dataset.to_list()) == 10
    assert calls == []


@pytest.mark.filterwarnings("ignore:.*wants no more after")
def test_a_pass_that_is_left_gives_later_ones_its_order(tmp_path: Path) -> None:
    shuffled = RANGE(22).filter(lambda x: x >= 0).shuffle(100, seed=1)
    for kept in (shuffled.cache(tmp_path / "c"), shuffled.snapshot(tmp_path / "s")):
        first = [int(x) for x in kept.take(9)]
        assert [int(x) for x in kept.take(9)] == first
        assert [int(x) for x in kept][:9] == first


def test_what_another_process_has_completed_takes_the_place_of_a_pass_that_was_left(tmp_path: Path) -> None:
    kept = RANGE(22_000).shuffle(100, seed=1).batch(2).cache(tmp_path / "c")
    with iter(kept) as left:
        next(left)
    other = RANGE(22_000).shuffle(100, seed=1).batch(2).cache(tmp_path / "c")
    made = [batch.tolist() for batch in other.iter_pass(3)]
    assert [batch.tolist() for batch in kept] == made
    state = iter(kept).state()
    assert [batch.tolist() for batch in kept.restore(state)] == made


@pytest.mark.filterwarnings("error")  # as it is for all tests; what is said while a stream is closed is found too
def test_nobody_is_told_of_a_look_at_the_first_elements(tmp_path: Path) -> None:
    """Which tells what a function makes of them."""
    words = in_blocks([]).map(str, output_signature=di.TensorSpec([], "string"))
    dataset = words.cache(tmp_path / "c").map(len)
    assert dataset.element_spec.shape == ()
    assert len(dataset.to_list()) == 20
    assert MANIFEST in os.listdir(tmp_path / "c")


@pytest.mark.parametrize("behind", [lambda ds: ds.take(100), lambda ds: di.data.Dataset.zip((ds, RANGE(100)))])
def test_a_pass_that_nobody_asks_for_its_end_is_kept(tmp_path: Path, behind: Any) -> None:
    """As `take` of all elements does not, and whoever counts its steps."""
    calls: list[int] = []
    dataset = behind(counted(calls, 100).cache(tmp_path / "c"))
    assert len(dataset.to_list()) == 100
    calls.clear()
    assert len(dataset.to_list()) == 100
    assert calls == []


def test_passes_at_the_same_time_do_not_disturb_each_other(tmp_path: Path) -> None:
    dataset = RANGE(100).batch(10).unbatch().batch(1).cache(tmp_path / "c")
    pairs = list(zip(dataset, dataset, strict=True))  # the second pass begins while the first one writes
    assert [int(a[0]) for a, _ in pairs] == [int(b[0]) for _, b in pairs] == list(range(100))
    assert dataset.to_list() == [[i] for i in range(100)]
    both = di.data.Dataset.zip(dataset, dataset).to_list()
    assert both == [([i], [i]) for i in range(100)]


@pytest.mark.parametrize(
    "other, says",
    [
        (RANGE(6), r"step 1 \(range\) has other arguments than when the cache was written"),
        (RANGE(5).take(3), "it has 2 steps here and had 1"),
        (RANGE(5).map(lambda x: x + 1).map(lambda x: x), "it has 3 steps here and had 1"),
    ],
)
def test_a_cache_of_another_pipeline_is_refused(tmp_path: Path, other: Any, says: str) -> None:
    RANGE(5).cache(tmp_path).to_list()
    with pytest.raises(
        FailedPreconditionError, match=rf"cache: .* was written by another pipeline: {says}.*; give this one"
    ):
        other.cache(tmp_path).to_list()


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    RANGE(5).save(tmp_path / "a")
    with pytest.raises(
        FailedPreconditionError, match="holds a dataset that write or save made; give cache a folder of its"
    ):
        RANGE(5).cache(tmp_path / "a").to_list()
    (tmp_path / "b").write_text("mine")
    with pytest.raises(InvalidArgumentError, match=r"cache: .*b is a file, or below one; name a folder"):
        RANGE(5).cache(tmp_path / "b").to_list()
    assert (tmp_path / "b").read_text() == "mine"


def test_files_of_others_stay(tmp_path: Path) -> None:
    (tmp_path / "mine.arrow").write_text("mine")
    (tmp_path / "elements-01234567-00000.arrow").write_text("of a writer that was killed while it published")
    assert RANGE(3).cache(tmp_path).to_list() == [0, 1, 2]
    assert len(os.listdir(tmp_path)) == 3
    assert (tmp_path / "mine.arrow").read_text() == "mine"


def killed_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any, count: int) -> list[int]:
    """A pass that ends after some elements as a killed one does: nothing is tidied up but the lock."""
    monkeypatch.setattr(open_file, "SHARD_BYTES", 1)
    with monkeypatch.context() as patched:
        patched.setattr(Stage, "discard", Stage.release)
        with iter(make().cache(tmp_path)) as elements:
            return [int(next(elements)) for _ in range(count)]


def in_blocks(calls: list[int], seed: int | None = None) -> Any:
    made = RANGE(4)
    for begin in range(4, 20, 4):
        made = made.concatenate(RANGE(begin, begin + 4))
    made = made.map(lambda x: (calls.append(int(x)), x)[1], output_signature=SPEC)
    return made if seed is None else made.shuffle(3, seed=seed)


@pytest.mark.parametrize("seed", [None, 5])
@pytest.mark.parametrize("skip", [0, 3, 11])
def test_a_pass_that_was_killed_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int | None, skip: int
) -> None:
    calls: list[int] = []
    expected = in_blocks([], seed).to_list()
    assert killed_at(tmp_path, monkeypatch, lambda: in_blocks(calls, seed), 10) == expected[:10]
    assert [name for name in os.listdir(tmp_path) if not name.startswith(".")] == []
    calls.clear()
    dataset = in_blocks(calls, seed).cache(tmp_path)
    assert [int(x) for x in dataset.skip(skip)] == expected[skip:]
    assert len(calls) < 20
    di.io.verify_files(str(tmp_path))
    assert [name for name in os.listdir(tmp_path) if name.startswith(".")] == []
    assert [int(x) for x in dataset] == expected
    check_positions(dataset)


def test_states_of_a_pass_that_goes_on_are_exact(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = list(range(20))
    for taken in (1, 5, 9, 14):
        folder = tmp_path / str(taken)
        killed_at(folder, monkeypatch, lambda: in_blocks([]), 10)
        with iter(in_blocks([]).cache(folder)) as elements:
            assert [int(next(elements)) for _ in range(taken)] == expected[:taken]
            state = elements.state()
        assert [int(x) for x in in_blocks([]).cache(folder).restore(state)] == expected[taken:]


def test_what_another_pass_left_is_not_gone_on_with(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[int] = []
    killed_at(tmp_path / "a", monkeypatch, lambda: in_blocks([], 5), 10)
    assert in_blocks(calls, 6).cache(tmp_path / "a").to_list() == in_blocks([], 6).to_list()
    assert len(calls) == 20
    calls.clear()
    killed_at(tmp_path / "b", monkeypatch, lambda: in_blocks([]).cache(), 10)  # states hold nothing of the memory below
    assert in_blocks(calls).cache().cache(tmp_path / "b").to_list() == list(range(20))
    assert len(calls) == 20


def test_what_takes_too_much_is_not_kept(tmp_path: Path) -> None:
    calls: list[int] = []
    dataset = counted(calls, 1000).cache(tmp_path, max_bytes=1000)
    with pytest.warns(
        InputWarning, match=r"the elements take more than max_bytes=1000, so they are not kept and every pass"
    ):
        assert len(dataset.to_list()) == 1000
    assert (os.listdir(tmp_path), len(dataset.to_list()), len(calls)) == ([], 1000, 2000)
    assert len(counted(calls, 1000).cache(tmp_path, max_bytes=1 << 20).to_list()) == 1000
    assert read_written(str(tmp_path)) is not None


def test_a_full_disk_is_an_error_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patched:

        def full(*_: Any) -> None:
            raise OSError(errno.ENOSPC, "No space left on device")

        patched.setattr(Sink, "_put", full)
        with pytest.raises(OSError, match="No space left on device") as caught:
            RANGE(5).cache(tmp_path / "c").to_list()
    assert any("while cache kept elements in" in note for note in caught.value.__notes__)
    assert os.listdir(tmp_path / "c") == []
    assert RANGE(5).cache(tmp_path / "c").to_list() == [0, 1, 2, 3, 4]


def test_elements_that_fail_are_left_out_of_what_is_kept(tmp_path: Path) -> None:
    fails = [2]

    def checked(x: int) -> int:
        if int(x) in fails:
            raise ValueError(f"element {x}")
        return x

    dataset = RANGE(5).map(checked, output_signature=SPEC).cache(tmp_path).ignore_errors()
    assert dataset.to_list() == dataset.to_list() == [0, 1, 3, 4]


def failing_now(x: int) -> int:
    """An element that fails while a file says so: what a store that is not reached for a while does."""
    if (Path("failing") / str(int(x))).exists():
        raise ValueError(f"element {x}")
    return x


@pytest.mark.parametrize("kind", ["cache", "snapshot"])
def test_a_whole_pass_takes_the_place_of_one_that_lacks_elements(
    kind: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dataset() -> Any:
        return getattr(RANGE(5).map(failing_now, output_signature=SPEC), kind)("kept")

    monkeypatch.chdir(tmp_path)
    Path("failing").mkdir()
    Path("failing/2").touch()
    with iter(dataset().ignore_errors()) as elements:
        assert [int(x) for x in elements] == [0, 1, 3, 4]
    with pytest.raises(ValueError, match="element 2"):
        dataset().to_list()
    assert dataset().ignore_errors().to_list() == [0, 1, 3, 4]  # what failed again has changed nothing

    Path("failing/2").unlink()
    assert dataset().to_list() == [0, 1, 2, 3, 4]
    Path("failing/4").touch()
    assert dataset().to_list() == dataset().ignore_errors().to_list() == [0, 1, 2, 3, 4]
    assert len(list(Path("kept").rglob("*.arrow"))) == 1


def test_a_state_goes_on_from_the_files_or_without_them(tmp_path: Path) -> None:
    def dataset(name: str) -> Any:
        return RANGE(40).shuffle(40).batch(3).cache(tmp_path / name)

    kept = dataset("a")
    first = list(map(exact, kept))
    for _ in range(2):  # made, and then served
        with iter(kept) as elements:
            for _ in range(5):
                next(elements)
            state = elements.state()
        assert list(map(exact, dataset("a").restore(state))) == first[5:]
    assert list(map(exact, dataset("b").restore(state))) == first[5:]  # made again, from the seeds in the state


def test_a_state_of_elements_that_are_gone_is_refused(tmp_path: Path) -> None:
    def dataset() -> Any:
        return RANGE(40).shuffle(40).cache(tmp_path / "a")

    dataset().to_list()
    served = dataset()  # with another seed than that of the files
    with iter(served) as elements:
        next(elements)
        state = elements.state()
    assert len(list(served.restore(state))) == 39
    for path in (tmp_path / "a").iterdir():
        path.unlink()
    with pytest.raises(StateError, match=r"the state is of elements that were in .*a and are not there any more"):
        list(dataset().restore(state))


def test_rows_are_reached_by_position(tmp_path: Path) -> None:
    dataset = RANGE(20).filter(lambda x: x % 2 == 0).cache(tmp_path / "a")
    assert [int(dataset[i]) for i in (3, -1, 0)] == [6, 18, 0]
    assert sorted(dataset.global_shuffle(seed=1).to_list() if dataset.cardinality() >= 0 else dataset[:]) == list(
        range(0, 20, 2)
    )


def test_elements_are_read_only_whether_made_or_served(tmp_path: Path) -> None:
    dataset = di.data.Dataset.from_tensor_slices(np.zeros((3, 2))).map(lambda x: x + 1).cache(tmp_path)
    for _ in range(2):
        with pytest.raises(ValueError, match="read-only"):
            next(iter(dataset))[0] = 5
        assert dataset.to_list() == [[1, 1]] * 3


def test_all_workers_share_one_cache(tmp_path: Path) -> None:
    dataset = RANGE(10).batch(2).cache(tmp_path)
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    rows = [
        int(row)
        for step in strategy.experimental_distribute_dataset(dataset)
        for part in strategy.experimental_local_results(step)
        for row in part
    ]
    assert sorted(rows) == list(range(10))
    shards = [di.data.experimental.auto_shard_dataset(RANGE(10).cache(tmp_path / "b"), 2, i).to_list() for i in (0, 1)]
    assert sorted(shards[0] + shards[1]) == list(range(10))


def test_a_cache_in_a_store_of_objects() -> None:
    system = fsspec.filesystem("memory")
    try:
        calls: list[int] = []
        assert counted(calls).cache("memory://cached/a").to_list() == [0, 1, 2, 3, 4]
        assert counted(calls).cache("memory://cached/a").to_list() == [0, 1, 2, 3, 4]
        assert len(calls) == 5
    finally:
        system.rm("/cached", recursive=True)
