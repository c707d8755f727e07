# SPDX-License-Identifier: Apache-2.0
"""Every error of the package is made from one message, and arrives whole wherever it is sent."""

import concurrent.futures
import copy
import multiprocessing
import pickle
import re
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import distinput as di
from distinput import errors
from distinput.arrow.arrow import NullsError
from distinput.columns.column import StackError
from distinput.distribute.seats.seats import SeatLost

PACKAGE = Path(di.__file__).parent
PUBLIC = sorted(
    {kind for name in errors.__all__ if isinstance(kind := getattr(errors, name), type)}, key=lambda kind: kind.__name__
)


_ERROR = re.compile(r"^ *class (\w+)\([^)]*(?:Error|Exception|Warning|Lost)\b", re.MULTILINE)


def error_classes() -> Iterator[type[BaseException]]:
    """All classes of errors in all files, found by the names of their bases."""
    for file in sorted(PACKAGE.rglob("*.py")):
        # Syntax trees of these files would take each process a quarter of a second while it collects tests.
        names = _ERROR.findall(file.read_text(encoding="utf-8"))
        module = ".".join(["distinput", *file.relative_to(PACKAGE).with_suffix("").parts]).removesuffix(".__init__")
        for name in names:
            kind = getattr(import_module(module), name)
            if issubclass(kind, BaseException):
                yield kind


ALL = sorted({*error_classes(), *PUBLIC}, key=lambda kind: f"{kind.__module__}.{kind.__qualname__}")


def told(error: BaseException) -> tuple[Any, ...]:
    """All that an error says."""
    return type(error), str(error), getattr(error, "__notes__", []), {**vars(error), "__notes__": None}


def noted(error: BaseException) -> BaseException:
    error.add_note("record 17")
    return error


SAMPLES = [noted(kind("file a: damaged")) for kind in ALL] + [
    noted(error)
    for error in (
        errors.PeerLost("gone", rank=3),
        errors.Aborted("gave up", rank=2, reason="no disk"),
        errors.CollectiveTimeout("late", ranks=[1, 2]),
        errors.NotFoundError(2, "No such file or directory", "a.txt"),
        SeatLost("worker-1", "killed", started=False),
        StackError.of(2, (3,), (4,), 1),
        NullsError.of("x", 2, 1, "int64"),
    )
]


def test_the_search_finds_public_and_hidden_ones() -> None:
    assert {errors.PeerLost, StackError, SeatLost} <= set(ALL)
    assert len(ALL) > 40


@pytest.mark.parametrize("kind", ALL, ids=lambda kind: kind.__qualname__)
def test_each_is_made_from_one_message(kind: type[BaseException]) -> None:
    assert str(kind("a\nb")) in ("a\nb", "a\nb is lost")
    kind()
    if getattr(kind, "message", None):  # what PyTorch asks before it gives the message by name
        made: Any = kind(message="a\nb")  # type: ignore[call-arg]
        assert str(made) == made.message == "a\nb"
        assert made.args == ("a\nb",)


@pytest.mark.parametrize("kind", [kind for kind in PUBLIC if issubclass(kind, errors.DistinputError)])
def test_the_arguments_of_tensorflow_are_taken(kind: Any) -> None:
    if kind in (errors.PeerLost, errors.Aborted, errors.CollectiveTimeout):  # not of TensorFlow
        return
    made = kind(None, None, "no such user", kind.error_code)
    assert (str(made), made.message, made.args) == ("no such user", "no such user", ("no such user",))


def test_the_arguments_of_python_are_taken() -> None:
    made = errors.NotFoundError(2, "No such file or directory", "a.txt")
    assert (made.errno, made.filename) == (2, "a.txt")
    assert made.message == str(FileNotFoundError(2, "No such file or directory", "a.txt"))


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__qualname__)
def test_copies_and_pickles_say_the_same(error: BaseException) -> None:
    # MPI sends pickles, and nothing else.
    ways: list[Callable[[BaseException], BaseException]] = [copy.copy, copy.deepcopy]
    ways += [lambda e, p=p: pickle.loads(pickle.dumps(e, p)) for p in range(2, pickle.HIGHEST_PROTOCOL + 1)]
    for way in ways:
        assert told(way(error)) == told(error)


def raised(index: int) -> None:
    """Raise one of the samples, in a worker."""
    raise SAMPLES[index]


CARRIED = [index for index, error in enumerate(SAMPLES) if isinstance(error, Exception)]


def test_pools_of_processes_carry_them() -> None:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([__name__])
    with concurrent.futures.ProcessPoolExecutor(1, mp_context=context) as pool:
        futures = [pool.submit(raised, index) for index in CARRIED]
        assert [told(future.exception(60))[:3] for future in futures] == [told(SAMPLES[i])[:3] for i in CARRIED]  # type: ignore[arg-type]
    with context.Pool(1) as old:
        for index in CARRIED:
            with pytest.raises(type(SAMPLES[index])) as caught:
                old.apply_async(raised, (index,)).get(60)
            assert told(caught.value)[:3] == told(SAMPLES[index])[:3]


def test_the_wrapper_of_pytorch_carries_them() -> None:
    wrapper = pytest.importorskip("torch._utils", reason="torch is not installed").ExceptionWrapper
    for index in CARRIED:
        error = SAMPLES[index]
        try:
            raised(index)
        except Exception:  # noqa: BLE001 - that is what is wrapped
            sent = pickle.loads(pickle.dumps(wrapper(where="in DataLoader worker process 0")))
        with pytest.raises(type(error)) as caught:
            sent.reraise()
        assert str(error) in str(caught.value)
        assert "record 17" in str(caught.value)
        assert "DataLoader worker process 0" in str(caught.value)


def test_dask_carries_them() -> None:
    dask = pytest.importorskip("distributed.protocol.pickle", reason="dask is not installed")
    for error in SAMPLES:
        assert told(dask.loads(dask.dumps(error))) == told(error)


@pytest.mark.parametrize("error", SAMPLES, ids=lambda error: type(error).__qualname__)
def test_they_can_be_made_without_init(error: BaseException) -> None:
    """As tblib does, which Dask and pytest-xdist use."""
    made = type(error).__new__(type(error))
    made.args = error.args
    vars(made).update(vars(error))
    assert told(made)[:3:2] == told(error)[:3:2]


def test_ray_carries_them() -> None:
    task_error = pytest.importorskip("ray.exceptions", reason="ray is not installed").RayTaskError
    for index in CARRIED:
        error = SAMPLES[index]
        made = task_error("f", "the traceback", error).as_instanceof_cause()
        assert isinstance(made, type(error))
        assert str(error) in str(made) or "the traceback" in str(made)
