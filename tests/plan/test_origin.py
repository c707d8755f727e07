# SPDX-License-Identifier: Apache-2.0
"""The line that made a step is the user's, however far inside distinput the step was made."""

import inspect
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.pool import ThreadPool

import distinput as di
from distinput.plan import node
from distinput.plan.node import Origin, caller


def line() -> int:
    frame = inspect.currentframe()
    assert frame is not None
    assert frame.f_back is not None
    return frame.f_back.f_lineno


def test_the_caller_is_the_line_that_asks() -> None:
    found, wanted = caller(), line()
    assert (found.file, found.line, found.process) == (__file__, wanted, os.getpid())


def test_every_step_has_the_line_of_its_own_call() -> None:
    dataset = di.data.Dataset.range(4)
    first = line() - 1
    dataset = dataset.batch(2).map(lambda x: x)
    second = line() - 1
    step = dataset.node
    lines = []
    while True:
        lines.append((step.origin.file, step.origin.line))
        if not step.inputs:
            break
        (step,) = step.inputs
    assert lines == [(__file__, second), (__file__, second), (__file__, first)]


def test_a_step_that_a_thread_makes_itself_names_the_thread() -> None:
    made: list[di.data.Dataset] = []
    thread = threading.Thread(target=lambda: made.append(di.data.Dataset.range(3)), name="own")
    wanted = line() - 1
    thread.start()
    thread.join()
    assert (made[0].node.origin.file, made[0].node.origin.line) == (__file__, wanted)
    with ThreadPoolExecutor(1, thread_name_prefix="pool") as pool, ThreadPool(1) as others:
        first = pool.submit(di.data.Dataset.range, 3).result()
        second = others.apply(di.data.Dataset.range, (3,))
    assert str(first.node.origin) == "thread 'pool_0'"
    assert str(second.node.origin).startswith("thread 'Thread-")
    assert "made at thread 'pool_0'" in first.node.where()


def test_a_function_that_builds_a_dataset_is_the_users_line() -> None:
    def inner(n: int) -> di.data.Dataset:
        return di.data.Dataset.range(n)

    made = next(iter(di.data.Dataset.range(3).window(2)))
    assert str(made.node.origin).startswith(f"{__file__}:")
    assert inner(2).node.origin.line == inner.__code__.co_firstlineno + 1


def test_without_a_line_of_the_user_the_outermost_one_is_named(monkeypatch) -> None:
    monkeypatch.setattr(node, "_PACKAGE", os.sep)
    assert caller().line > 0
    assert caller().file != __file__


def test_the_process_is_no_part_of_a_line() -> None:
    assert Origin("a.py", 3, process=1) == Origin("a.py", 3, process=2)
    assert hash(Origin("a.py", 3, process=1)) == hash(Origin("a.py", 3, process=2))
    assert Origin("a.py", 3) != Origin("a.py", 4)
    assert str(Origin("a.py", 3)) == "a.py:3"
