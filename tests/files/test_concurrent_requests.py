# SPDX-License-Identifier: Apache-2.0
"""Answers come in order; remote files are asked at the same time, local ones one by one when the answer is wanted."""

import threading

import pytest

from distinput.files.paths import ask_each


def test_local_files_are_asked_when_the_answer_is_wanted() -> None:
    asked: list[str] = []

    def ask(path: str) -> str:
        asked.append(path)
        return path.upper()

    answers = ask_each(ask, ["a", "file:///b", "c"])
    assert next(answers) == "A"
    assert asked == ["a"]
    assert list(answers) == ["FILE:///B", "C"]


def test_remote_files_are_asked_at_the_same_time_and_answer_in_order() -> None:
    together = threading.Barrier(3, timeout=60)

    def ask(path: str) -> str:
        together.wait()
        return path[-1]

    assert list(ask_each(ask, ["memory://a", "b", "memory://c"])) == ["a", "b", "c"]


def test_an_error_is_raised_as_it_is() -> None:
    def ask(path: str) -> str:
        raise KeyError(path)

    for paths in (["memory://a", "memory://b"], ["a", "b"], ["memory://a"]):
        with pytest.raises(KeyError, match=paths[0]):
            list(ask_each(ask, paths))
