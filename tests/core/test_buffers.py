# SPDX-License-Identifier: Apache-2.0
"""A batch that anybody keeps is never overwritten, in whatever form it is kept; what nobody keeps is used again."""

import itertools
import os
import platform
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from queue import Queue
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import distinput as di
from distinput.values import buffers
from distinput.values.buffers import ALIGNMENT, FEWEST_BYTES, MOST_BYTES, Buffers, aligned

INT64 = np.dtype(np.int64)
ROWS = FEWEST_BYTES // 8 // 4


class Exported:
    """Keeps a DLPack capsule, of which nothing but the memory is known, and how to look into it again."""

    def __init__(self, array: Any) -> None:
        self.capsule = array.__dlpack__()

    def __dlpack__(self, **_: Any) -> Any:
        return self.capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return (1, 0)


class Thread:
    """A thread that holds an array in a local variable until it is told to hand it back."""

    def __init__(self, array: Any) -> None:
        self.asked: Queue[None] = Queue()
        self.given: Queue[Any] = Queue()
        self.thread = threading.Thread(target=hold, args=([array], self.asked, self.given), daemon=True)
        self.thread.start()

    def array(self) -> Any:
        self.asked.put(None)
        return self.given.get()

    def __del__(self) -> None:
        self.asked.put(None)


def hold(box: list[Any], asked: "Queue[None]", given: "Queue[Any]") -> None:
    array = box.pop()
    asked.get()
    given.put(array)


# How an array is kept, and how to look at what was kept.
WAYS: dict[str, tuple[Callable[[Any], Any], Callable[[Any], Any]]] = {
    "itself": (lambda a: a, lambda kept: kept),
    "a slice": (lambda a: a[1:2], lambda kept: kept),
    "a row of a reshaped view": (lambda a: a.reshape(-1, 2)[0].view(np.uint8), lambda kept: kept.view(INT64)),
    "the last row by iteration": (lambda a: list(a)[-1], lambda kept: kept),
    "a memoryview": (memoryview, np.asarray),
    "a slice of a memoryview": (lambda a: memoryview(a)[2:4], np.asarray),
    "a capsule of DLPack": (Exported, np.from_dlpack),
    "the buffer itself": (lambda a: (a.base, a.nbytes), lambda kept: kept[0][: kept[1]].view(INT64)),
    "an array over its buffer": (lambda a: np.frombuffer(a, INT64), lambda kept: kept),
    "a closure": (lambda a: lambda: a, lambda kept: kept()),
    "another thread": (Thread, lambda kept: kept.array()),
}


@given(
    st.lists(
        st.one_of(
            st.tuples(st.sampled_from(sorted(WAYS)), st.integers(4, 7)),  # a new array, kept
            st.tuples(st.none(), st.integers(4, 7)),  # a new array, dropped
            st.integers(0, 9),  # drop one of those kept
        ),
        max_size=40,
    )
)
def test_what_is_kept_is_never_overwritten(steps: list[Any]) -> None:
    pool = Buffers(most_bytes=FEWEST_BYTES * 24)
    kept: list[tuple[str, Any, int]] = []
    for number, step in enumerate(steps):
        if isinstance(step, int):
            if kept:
                del kept[step % len(kept)]
            continue
        way, rows = step
        array = pool.empty((rows, ROWS), INT64)
        array[...] = number
        if way is not None:
            kept.append((way, WAYS[way][0](array), number))
        del array
    for way, held, number in kept:
        found = WAYS[way][1](held)
        assert (found == number).all(), way


@pytest.mark.parametrize("way", sorted(WAYS))
def test_what_is_not_kept_any_more_is_used_again(way: str) -> None:
    pool = Buffers()
    array = pool.empty((4, ROWS), INT64)
    address = array.__array_interface__["data"][0]
    held = WAYS[way][0](array)
    del array
    other = pool.empty((4, ROWS), INT64)
    assert other.__array_interface__["data"][0] != address
    del other
    thread = held.thread if isinstance(held, Thread) else None
    del held
    if thread is not None:
        thread.join()
    addresses = {pool.empty((4, ROWS), INT64).__array_interface__["data"][0] for _ in range(2)}
    both = [pool.empty((4, ROWS), INT64) for _ in range(2)]
    assert address in addresses | {a.__array_interface__["data"][0] for a in both}
    assert pool.nbytes <= 2 * 5 * ROWS * 8


def test_threads_never_share_a_buffer() -> None:
    pool, wrong = Buffers(), []

    def work(number: int) -> None:
        held = []
        for step in range(300):
            array = pool.empty((4, ROWS), INT64)
            array[...] = number * 1000 + step
            held = [*held[-2:], (array, number * 1000 + step)]
            wrong.extend([each for each, value in held if not (each == value).all()])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert not wrong


def test_no_more_is_remembered_than_was_said() -> None:
    pool = Buffers(most_bytes=16 * FEWEST_BYTES)
    kept = [pool.empty((4, ROWS), INT64) for _ in range(100)]
    assert len({a.__array_interface__["data"][0] for a in kept}) == 100
    assert pool.nbytes <= 16 * FEWEST_BYTES


def test_as_many_large_arrays_as_are_held_at_once_are_all_the_memory_there_is() -> None:
    pool, random, size = Buffers(), np.random.default_rng(1), 3 << 20
    held = [pool.empty((size,), np.dtype(np.uint8)) for _ in range(12)]
    for place in random.integers(0, 12, 500).tolist():
        held[place] = pool.empty((size,), np.dtype(np.uint8))
    assert pool.nbytes <= 13 * size


@pytest.mark.parametrize(
    "shape, dtype", [((3, 4), "i4"), ((300, 400), "f8"), ((0, 5), "f8"), ((9000,), object), ((3, 70_001), "?")]
)
def test_arrays_are_as_numpy_makes_them(shape: Any, dtype: Any) -> None:
    made, plain = Buffers().empty(shape, np.dtype(dtype)), np.empty(shape, dtype)
    assert (made.shape, made.dtype, made.strides) == (plain.shape, plain.dtype, plain.strides)
    assert made.flags.writeable
    assert made.flags.aligned


def test_nothing_is_used_again_where_references_cannot_be_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "_is_gil_enabled", lambda: False, raising=False)
    pool = Buffers()
    array = pool.empty((4, ROWS), INT64)
    assert array.ctypes.data % ALIGNMENT == 0
    assert pool.nbytes == 0


def test_one_power_of_two_serves_sizes_that_are_close() -> None:
    pool, addresses = Buffers(step_bits=0), set()
    for size in range(FEWEST_BYTES + 1, 2 * FEWEST_BYTES, 5000):
        addresses.add(pool.empty((size,), np.dtype(np.uint8)).ctypes.data)
    assert len(addresses) == 1


def test_arrays_begin_where_a_cache_line_does() -> None:
    pool = Buffers()
    kept = [pool.empty((FEWEST_BYTES + 4096 * i,), np.dtype(np.uint8)) for i in range(20)]
    kept.append(pool.empty((MOST_BYTES // 4 + 8,), np.dtype(np.uint8)))  # too large for the pool
    assert {array.ctypes.data % ALIGNMENT for array in kept} == {0}
    assert pool.nbytes < MOST_BYTES // 4


@pytest.mark.parametrize("begin", [0, 8, 64, 100])
@pytest.mark.parametrize("rows", [slice(None), slice(0, None, 2), slice(1, 3)])
def test_an_array_is_copied_only_if_it_begins_elsewhere(begin: int, rows: slice) -> None:
    memory = Buffers().empty((5 * FEWEST_BYTES + begin,), np.dtype(np.uint8))[begin:]
    array = memory.reshape(5, FEWEST_BYTES)[rows]
    array[:] = np.arange(len(array))[:, None]
    array.flags.writeable = False
    made = aligned(array)
    assert (made is array) == (array.ctypes.data % ALIGNMENT == 0 and array.flags.c_contiguous)
    assert made.ctypes.data % ALIGNMENT == 0
    assert made.flags.c_contiguous
    np.testing.assert_array_equal(made, array)


@pytest.mark.parametrize("size", [FEWEST_BYTES - 1, MOST_BYTES // 4 + 1])
def test_where_an_array_begins_that_is_not_pooled_does_not_matter(size: int) -> None:
    array = np.zeros(size + 1, np.uint8)[1:]
    assert aligned(array) is array


def test_a_pool_knows_its_buffers() -> None:
    pool = Buffers()
    array = pool.empty((FEWEST_BYTES,), np.dtype(np.uint8))
    assert pool.remembers(array.base)
    assert not pool.remembers(array)
    assert not pool.remembers(np.zeros(array.base.nbytes, np.uint8))  # type: ignore[union-attr]
    assert not Buffers().remembers(array.base)


def test_arrays_too_large_for_one_pool_have_memory_of_the_larger_one_until_it_is_forgotten() -> None:
    larger = Buffers(most_bytes=64 * FEWEST_BYTES)
    pool = Buffers(most_bytes=2 * FEWEST_BYTES, larger=larger)

    def address() -> int:
        found: int = pool.empty((4, ROWS), INT64).__array_interface__["data"][0]
        return found

    first, kept = address(), pool.empty((4, ROWS), INT64)
    assert kept.__array_interface__["data"][0] == first
    assert (pool.nbytes, larger.nbytes > 0) == (0, True)
    assert pool.remembers(kept.base)
    larger.forget()
    kept[...] = 7
    assert larger.nbytes == 0
    assert not pool.remembers(kept.base)
    assert address() != first
    assert (kept == 7).all()


def test_large_batches_are_given_back_when_an_iteration_ends_but_those_with_which_the_next_one_begins() -> None:
    rows = np.zeros((32, 1 << 17))
    batches = di.data.Dataset.from_tensor_slices(rows).shuffle(32).repeat().batch(24)  # 24 MiB
    passes = []
    for _ in range(3):
        with iter(batches) as it:
            passes.append({element.__array_interface__["data"][0] for element in itertools.islice(it, 8)})
    assert len(set.union(*passes)) <= 3
    with iter(batches) as it:
        held = list(itertools.islice(it, 4))
        assert buffers._LARGE.nbytes > MOST_BYTES
    assert 0 < buffers._LARGE.nbytes <= MOST_BYTES
    for batch in held:
        batch[:] = 7
    with iter(batches) as it:
        assert not any(batch.any() for batch in itertools.islice(it, 4))
    assert all((batch == 7).all() for batch in held)


def test_a_pool_keeps_what_was_given_out_last() -> None:
    pool = Buffers()
    early, late = ([pool.empty((1 << shift,), np.dtype(np.uint8)) for _ in range(3)] for shift in (17, 18))
    pool.keep(5 << 17)
    assert [pool.remembers(array.base) for array in early] == [False, False, True]
    assert [pool.remembers(array.base) for array in late] == [False, True, True]
    assert pool.nbytes == 5 << 17
    pool.keep(0)
    assert pool.nbytes == 0


@pytest.mark.fresh_process
@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators decide otherwise")
def test_memory_of_large_strings_is_used_again(tmp_path: Path) -> None:
    """Rather than given back to the system with each batch, and cleared page by page for the next one."""
    program = """
import resource, sys
import distinput as di

with di.io.TFRecordWriter(sys.argv[1]) as writer:
    for _ in range(1_000):
        writer.write(bytes(114_000))
batches = di.data.TFRecordDataset(sys.argv[1]).batch(20)
faults = []
for _ in range(3):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for batch in batches:
        del batch
    faults.append(resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
print(min(faults))
"""
    command = [sys.executable, "-c", program, str(tmp_path / "a")]
    # Dask's nanny leaves MALLOC_TRIM_THRESHOLD_ behind, with which memory is given back at once. In one arena, since a busy
    # machine reads on threads, which have memory of their own.
    environment = {name: value for name, value in os.environ.items() if not name.startswith("MALLOC_")}
    environment["MALLOC_ARENA_MAX"] = "1"
    told = subprocess.run(command, capture_output=True, text=True, check=True, env=environment)
    assert int(told.stdout) < 5_000


_HUGE = 2**50  # values of eight bytes: more than any machine has addresses for


@pytest.mark.parametrize(
    "who, made",
    [
        ("parse_example", lambda: di.io.parse_single_example(_example(), {"a": di.io.FixedLenFeature([_HUGE], "int64")})),
        ("parse_example", lambda: di.io.parse_example([_example()], {"a": di.io.FixedLenFeature([_HUGE], "string")})),
        ("SparseTensor.to_dense", lambda: _sparse([_HUGE]).to_dense()),
        ("SparseTensor.to_dense", lambda: _sparse([_HUGE, _HUGE]).to_dense()),
        ("decode_raw", lambda: di.io.decode_raw([b"a"], "uint8", fixed_length=_HUGE)),
        ("", lambda: di.RaggedTensor.from_list([[1, 2], [3]]).to_padded(0, [None, _HUGE])),
        ("", lambda: next(iter(_arrays().padded_batch(2, padded_shapes=[_HUGE])))),
    ],
)  # fmt: skip
def test_a_shape_without_memory_for_it_is_told(who: str, made: Callable[[], Any]) -> None:
    with pytest.raises(
        di.errors.ResourceExhaustedError, match=rf"^{who}.*there is no memory for an array of the shape .*\d bytes"
    ):
        made()


def _example() -> bytes:
    return di.io.encode_example({"a": [1, 2]})


def _sparse(shape: list[int]) -> Any:
    return di.SparseTensor(np.zeros((1, len(shape)), np.int64), np.array([1]), np.array(shape))


def _arrays() -> Any:
    return di.data.Dataset.range(3).map(lambda x: np.array([x]))


def test_a_default_that_is_no_value_is_no_lack_of_memory() -> None:
    with pytest.raises(ValueError, match="invalid literal"):
        _sparse([3]).to_dense("x")


@pytest.mark.parametrize("text, most", [("16384K\n", 8 << 20), ("a lot", sys.maxsize), (None, sys.maxsize)])
def test_half_of_the_last_cache_is_for_a_batch(tmp_path: Path, text: str | None, most: int) -> None:
    if text is not None:
        (tmp_path / "size").write_text(text)
    assert buffers.most_in_caches(str(tmp_path / "size")) == most
