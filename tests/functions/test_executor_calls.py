# SPDX-License-Identifier: Apache-2.0
import os
import pickle
import threading
import time
from collections.abc import Iterator
from concurrent.futures import BrokenExecutor, Executor, Future, ProcessPoolExecutor, ThreadPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError, UnavailableError
from distinput.functions.workers import workers_of
from distinput.run.threads import cores
from distinput.testing import check_restart
from tests.ops.iterating import until_error
from tests.patience import Beside

RANGE = di.data.Dataset.range
INT64 = di.TensorSpec([], "int64")


def double(x: Any) -> Any:
    return x * 2


def inverse(x: Any) -> Any:
    return np.int64(12 // int(5 - x))


def processes() -> ProcessPoolExecutor:
    return ProcessPoolExecutor(2, get_context("spawn"))


class Losing(Executor):
    """Runs calls at once, and loses every third one."""

    def __init__(self, every: int = 3, error: type[Exception] = ConnectionError) -> None:
        self.every, self.calls, self.error = every, 0, error

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.calls += 1
        made: Future[Any] = Future()
        if self.calls % self.every == 0:
            made.set_exception(self.error("the worker is gone"))
        else:
            made.set_result(fn(*args, **kwargs))
        return made


class Remembering(Executor):
    """Calls at once what went through pickle, and answers equal calls with one result, as Dask does; `shutdown` is Dask's."""

    def __init__(self) -> None:
        self.answers: dict[bytes, bytes] = {}
        self.calls, self.open = 0, True

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        self.calls += 1
        call = pickle.dumps((fn, args, kwargs))
        if call not in self.answers:
            there, given, named = pickle.loads(call)
            self.answers[call] = pickle.dumps(there(*given, **named))
        made: Future[Any] = Future()
        made.set_result(pickle.loads(self.answers[call]))
        return made

    def shutdown(self, wait: bool = True) -> None:  # type: ignore[override]
        self.open = False


class Elsewhere(Executor):
    """Calls on two threads what went through pickle, as a worker of Dask with two threads does."""

    _max_workers = 2

    def __init__(self) -> None:
        self.threads = ThreadPoolExecutor(2)

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        call = pickle.dumps((fn, args, kwargs))

        def there() -> Any:
            function, given, named = pickle.loads(call)
            return pickle.loads(pickle.dumps(function(*given, **named)))

        return self.threads.submit(there)


buffer = np.zeros(2, np.int64)


def filled(x: Any) -> Any:
    buffer[:] = x
    time.sleep(0.002)
    return buffer


ANOTHER = Beside()


def filled_beside(x: Any) -> Any:
    buffer[:] = x
    ANOTHER.wait()
    return buffer


def filled_alone(x: Any) -> Any:
    own = vars(OWN).setdefault("buffer", np.zeros(2, np.int64))
    own[:] = x
    time.sleep(0.002)
    return own


OWN = threading.local()


def identity(x: Any) -> Any:
    return x


def drawn(x: Any) -> Any:
    return np.float64(np.random.default_rng().random())


@pytest.fixture(scope="module")
def pool() -> Iterator[ThreadPoolExecutor]:
    with ThreadPoolExecutor(3) as made:
        yield made


def test_results_come_in_order_from_threads(pool: ThreadPoolExecutor) -> None:
    assert RANGE(500).map(double, executor=pool, output_signature=INT64).to_list() == list(range(0, 1000, 2))


def test_neighbouring_maps_go_there_together(pool: ThreadPoolExecutor) -> None:
    dataset = RANGE(50).map(double, executor=pool).map(np.negative, executor=pool)
    assert "map_of_map" in dataset.explain()
    assert dataset.to_list() == [-2 * i for i in range(50)]
    assert "map_of_map" not in RANGE(50).map(double, executor=pool).map(np.negative).explain()


def test_a_state_is_exact_and_does_not_name_the_executor(pool: ThreadPoolExecutor) -> None:
    check_restart(RANGE(30).map(double, executor=pool, output_signature=INT64).batch(4))
    plain, there = RANGE(30).map(double), RANGE(30).map(double, executor=pool)
    with iter(there) as elements:
        assert [next(elements) for _ in range(7)][-1] == 12
        state = elements.state()
    assert next(plain.restore(state)) == 14


def test_processes_call_functions_and_carry_their_errors() -> None:
    with processes() as there:
        assert RANGE(40).map(double, executor=there, output_signature=INT64).to_list() == list(range(0, 80, 2))
        before, error = until_error(RANGE(9).map(inverse, executor=there, output_signature=INT64))
    assert before == [2, 3, 4, 6, 12]
    assert isinstance(error, ZeroDivisionError)
    notes = "\n".join(error.__notes__)
    assert "on element np.int64(5)" in notes
    assert "in a worker of the executor" in notes


@pytest.mark.parametrize("error", [ConnectionError, TypeError, AttributeError, pickle.PicklingError])
def test_a_lost_part_is_sent_again(error: type[Exception]) -> None:
    """Dask tells of a worker that is lost just when its result is there by a TypeError of its own."""
    executor = Losing(error=error)
    assert RANGE(200).map(double, executor=executor, output_signature=INT64).to_list() == list(range(0, 400, 2))
    assert executor.calls > 3


def test_a_part_that_is_lost_every_time_is_an_error() -> None:
    _, error = until_error(RANGE(5).map(double, executor=Losing(1), output_signature=INT64))
    assert isinstance(error, UnavailableError)
    assert "lost 1 elements 4 times, the last time with ConnectionError: the worker is gone" in str(error)


def die_once(x: Any, mark: str = "") -> Any:
    if int(x) == 3 and not Path(mark).exists():
        Path(mark).touch()
        os._exit(1)
    return x * 2


def test_a_broken_pool_is_made_anew(tmp_path: Path) -> None:
    import functools

    dying = functools.partial(die_once, mark=str(tmp_path / "mark"))
    assert RANGE(9).map(dying, executor=processes, output_signature=INT64).to_list() == list(range(0, 18, 2))


def test_a_broken_pool_that_was_given_is_replaced_by_one_like_it(tmp_path: Path) -> None:
    """The program has no other way to go on with the dataset, which holds the pool."""
    import functools

    dying = functools.partial(die_once, mark=str(tmp_path / "mark"))
    with ProcessPoolExecutor(2, get_context("spawn"), initializer=begin, initargs=(tmp_path,)) as there:
        dataset = RANGE(9).map(dying, executor=there, output_signature=INT64)
        assert dataset.to_list() == list(range(0, 18, 2))
        begun = len(list(tmp_path.iterdir()))
        assert dataset.to_list() == list(range(0, 18, 2))
        assert len(list(tmp_path.iterdir())) > begun >= 3  # each new pool begins its workers as the first did
        with pytest.raises(BrokenExecutor):
            there.submit(int)


def begin(folder: Path) -> None:
    (folder / f"begun-{os.getpid()}").touch()


class Broken(Executor):
    """Takes no work."""

    def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
        raise BrokenExecutor("a worker has died")


def test_a_broken_executor_of_another_kind_says_the_cure() -> None:
    _, error = until_error(RANGE(9).map(double, executor=Broken(), output_signature=INT64))
    assert isinstance(error, UnavailableError)
    assert "accepts no more work (BrokenExecutor: a worker has died)" in str(error)
    assert "executor=lambda: ProcessPoolExecutor(4)" in str(error)


def test_a_pool_that_was_shut_down_is_not_replaced() -> None:
    there = processes()
    there.shutdown()
    _, error = until_error(RANGE(9).map(double, executor=there, output_signature=INT64))
    assert isinstance(error, UnavailableError)
    assert "cannot schedule new futures after shutdown" in str(error)


def test_only_so_many_parts_are_under_way() -> None:
    started = threading.Semaphore(0)
    go_on = threading.Event()

    def waiting(x: Any) -> Any:
        started.release()
        go_on.wait(60)
        return x

    class Counting(ThreadPoolExecutor):
        submitted = 0

        def submit(self, fn: Any, /, *args: Any, **kwargs: Any) -> "Future[Any]":
            type(self).submitted += 1
            return super().submit(fn, *args, **kwargs)

    with Counting(4) as there:
        dataset = RANGE(100).map(waiting, num_parallel_calls=3, executor=lambda: there, output_signature=INT64)
        first: list[Any] = []
        with iter(dataset) as elements:
            asking = threading.Thread(target=lambda: first.append(next(elements)))
            asking.start()
            assert started.acquire(timeout=60)
            assert Counting.submitted <= 3
            go_on.set()
            asking.join(60)
            assert first == [0]


def test_what_is_no_executor_is_refused(pool: ThreadPoolExecutor) -> None:
    with pytest.raises(TypeError, match=r"executor must be a concurrent.futures.Executor.*client.get_executor"):
        RANGE(3).map(double, executor=5)
    with pytest.raises(InvalidArgumentError, match="executor goes neither with processes"):
        RANGE(3).map(double, executor=pool, processes=True)
    _, error = until_error(RANGE(3).map(double, executor=lambda: 5, output_signature=INT64))
    assert "must make a concurrent.futures.Executor, got 5" in str(error)


def test_errors_that_are_skipped_keep_their_places(pool: ThreadPoolExecutor) -> None:
    made = RANGE(9).map(inverse, executor=pool, output_signature=INT64).ignore_errors().to_list()
    assert made == [2, 3, 4, 6, 12, -12, -6, -4]


def test_a_class_of_executors_is_refused() -> None:
    with pytest.raises(TypeError, match=r"got the class ThreadPoolExecutor; give ThreadPoolExecutor\(4\), or lambda:"):
        RANGE(3).map(double, executor=ThreadPoolExecutor)


def test_every_element_is_a_call_of_its_own() -> None:
    """An executor may take a call with equal arguments for the same call."""
    there = Remembering()
    numbers = RANGE(1).repeat(300).map(drawn, executor=there, output_signature=di.TensorSpec([], "float64"))
    assert len(set(numbers.to_list())) == 300
    assert there.calls == len(there.answers)


def test_a_worker_keeps_nothing_of_another_dataset_with_the_same_functions() -> None:
    """What the first function returned for one dataset is no claim about another one."""
    there = Remembering()
    for rows in (np.arange(5), np.arange(5) / 2, np.ones((3, 2))):
        mapped = di.data.Dataset.from_tensor_slices(rows).map(identity, executor=there).map(identity, executor=there)
        assert mapped.to_list() == di.data.Dataset.from_tensor_slices(rows).to_list()


def test_an_executor_is_shut_down_by_what_all_of_them_understand() -> None:
    made: list[Remembering] = []

    def fresh() -> Remembering:
        made.append(Remembering())
        return made[-1]

    assert RANGE(9).map(double, executor=fresh, output_signature=INT64).to_list() == list(range(0, 18, 2))
    assert [each.open for each in made] == [False]


def test_what_several_threads_of_a_worker_fill_is_an_error() -> None:
    there, signature = Elsewhere(), di.TensorSpec([2], "int64")
    with there.threads:
        for tolerant in ("raise", "skip"):
            options = {"executor": there, "output_signature": signature, "on_error": tolerant}
            # Calls of the pass before may still be under way, and fill it too.
            message = "map: calls (of filled_beside, )?on several threads,? fill one array"
            with pytest.raises(InvalidArgumentError, match=message) as caught:
                RANGE(200).map(filled_beside, **options).to_list()
            assert "buffer" in str(caught.value)
            assert "in a worker of the executor" in caught.value.__notes__
            alone = RANGE(200).map(filled_alone, **options)
            assert [element.tolist() for element in alone] == [[i, i] for i in range(200)]
    with ThreadPoolExecutor(1) as one:  # the threads have ended that still filled the same array
        taken = RANGE(40).map(filled, executor=one, output_signature=signature)
        assert [element.tolist() for element in taken] == [[i, i] for i in range(40)]


def test_the_workers_of_an_executor_are_counted() -> None:
    """By what pools of Python, of loky and of mpi4py say, and by the client of Dask's."""

    class Client:
        def nthreads(self) -> dict[str, int]:
            return {"tcp://10.0.0.1:40000": 6, "tcp://10.0.0.2:40000": 2}

    there = Remembering()
    there._client = Client()  # type: ignore[attr-defined]
    assert workers_of(there) == 8
    assert workers_of(ThreadPoolExecutor(3)) == 3
    assert workers_of(Remembering()) == cores()


@pytest.mark.needs("cloudpickle")
def test_what_cannot_be_sent_is_not_taken_for_a_broken_executor() -> None:
    lock, made = threading.Lock(), list[Executor]()

    def fresh() -> Executor:
        made.append(Remembering())
        return made[-1]

    _, error = until_error(RANGE(4).map(lambda x: (lock, x)[1], executor=fresh, output_signature=INT64))
    assert isinstance(error, TypeError)
    assert "cannot be sent to worker processes: TypeError: cannot pickle '_thread.lock'" in str(error)
    assert str(error).endswith("or install cloudpickle, or leave out executor=")
    _, error = until_error(RANGE(4).window(2).map(identity, executor=fresh, output_signature=INT64))
    assert isinstance(error, TypeError)
    assert str(error) == "map: elements that hold datasets cannot be sent to worker processes; leave out executor="
    assert len(made) == 2
