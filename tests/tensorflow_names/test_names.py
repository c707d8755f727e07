# SPDX-License-Identifier: Apache-2.0
"""Every public name of `tf.distribute` is there, with TensorFlow's arguments, or is declined with its reason."""

import ast
import inspect
import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import distinput
from distinput.names import absent, words

FACTS = json.loads((Path(__file__).parent / "tensorflow_2_21.json").read_text(encoding="utf-8"))
NAMES: dict[str, dict[str, str]] = FACTS["names"]
METHODS: dict[str, str] = FACTS["methods"]
MEMBERS = [(name, member) for name, facts in NAMES.items() for member in facts.get("members", "").split()]
ROOT = Path(__file__).parents[2]

OUR_OWN_ARGUMENTS = {
    "distribute.Strategy": "users derive no strategies from it: it takes devices, TensorFlow's takes its other half",
    "distribute.StrategyExtended": "made by its strategy",
}


def reason_of(error: AttributeError) -> str:
    """The reason in the message of an error, which the one table gives; empty if there is none."""
    text = str(error)
    cures = {**absent._TABLE, **absent._MEMBERS}
    reasons = [words.told(cure) for names in cures.values() for cure in names.values()]
    return next((reason for reason in reasons if text.endswith(f": {reason}")), "")


def find(path: str) -> Any:
    """What has this name, or the error that says why nothing has it."""
    value: Any = distinput
    for part in path.removeprefix("v1.").split(".") if not path.startswith("v1.") else ["compat", *path.split(".")]:
        try:
            value = getattr(value, part)
        except AttributeError as error:
            return error
    return value


@cache
def instance(cls: type) -> Any:
    """An object of the class that nobody made: enough to ask for its members."""
    return object.__new__(cls)


def has(cls: type, member: str) -> bool:
    if hasattr(cls, member):
        return True
    if is_dataclass(cls) and member in {field.name for field in fields(cls)}:
        return True
    noted = {name for base in cls.__mro__ for name in getattr(base, "__annotations__", {})}
    return member in noted


@pytest.mark.parametrize("name", NAMES)
def test_every_name_is_there_or_declined(name: str) -> None:
    found = find(name)
    if isinstance(found, AttributeError):
        assert reason_of(found), f"{name} is just missing: {found}"


@pytest.mark.parametrize("name, member", MEMBERS)
def test_every_member_is_there_or_declined(name: str, member: str) -> None:
    found = find(name)
    if isinstance(found, AttributeError):
        assert reason_of(found)
        return
    assert isinstance(found, type), f"{name} is no class"
    if has(found, member):
        return
    with pytest.raises(AttributeError) as error:
        getattr(instance(found), member)
    assert reason_of(error.value), f"{name}.{member} is just missing: {error.value}"


def parameters(text: str) -> Iterator[tuple[str, str | None]]:
    """(name, default) of each argument; None if it must be given, "" if TensorFlow's default is no literal."""
    for argument in text.split():
        name, equals, default = argument.partition("=")
        yield name, default if equals else None


def differs(callable_: Any, text: str) -> str:
    """How the arguments of ours differ from TensorFlow's, so that a call written for those would fail here; or ""."""
    ours = list(inspect.signature(callable_).parameters.values())
    ours = ours[1:] if ours and ours[0].name in ("self", "cls") else ours
    for place, (name, default) in enumerate(parameters(text)):
        if name.startswith("*"):
            kind = inspect.Parameter.VAR_KEYWORD if name.startswith("**") else inspect.Parameter.VAR_POSITIONAL
            if not any(one.kind is kind for one in ours):
                return f"has no {name}"
            continue
        if place >= len(ours) or ours[place].name != name:
            return f"argument {place} is {ours[place].name if place < len(ours) else 'missing'}, in TensorFlow {name}"
        mine = ours[place]
        if mine.kind is not mine.POSITIONAL_OR_KEYWORD:
            return f"{name} cannot be given by position and by name"
        if default is not None and mine.default is mine.empty:
            return f"{name} must be given, in TensorFlow it is {default}"
        if default and mine.default != ast.literal_eval(default):
            return f"{name} is {mine.default!r} by default, in TensorFlow {default}"
    more = ours[len(text.split()) :]
    must = [
        one.name for one in more if one.default is one.empty and one.kind not in (one.VAR_POSITIONAL, one.VAR_KEYWORD)
    ]
    return f"{must} must be given as well" if must else ""


@pytest.mark.parametrize("name", [name for name, facts in NAMES.items() if "arguments" in facts])
def test_calls_are_written_as_for_tensorflow(name: str) -> None:
    found = find(name)
    if name in OUR_OWN_ARGUMENTS or isinstance(found, AttributeError):
        pytest.skip("declined, or not called by users")
    assert differs(found, NAMES[name]["arguments"]) == ""


@pytest.mark.parametrize("name", METHODS)
def test_methods_are_called_as_tensorflows(name: str) -> None:
    owner, _, member = name.rpartition(".")
    cls = find(owner)
    if isinstance(cls, AttributeError) or not hasattr(cls, member):
        pytest.skip("declined")
    method = inspect.getattr_static(cls, member)
    function = method.__func__ if isinstance(method, staticmethod | classmethod) else getattr(cls, member)
    assert differs(function, METHODS[name]) == ""


@pytest.mark.parametrize(
    "given, text, says",
    [
        (lambda a, b=1: 0, "a b=1", ""),
        (lambda a, b=1, *, c=2: 0, "a b=", ""),
        (lambda a: 0, "a b=1", "argument 1 is missing, in TensorFlow b"),
        (lambda b, a: 0, "a b", "argument 0 is b, in TensorFlow a"),
        (lambda a, b: 0, "a b=1", "b must be given"),
        (lambda a=2: 0, "a=1", "a is 2 by default"),
        (lambda *, a=1: 0, "a=1", "a cannot be given by position"),
        (lambda a, c: 0, "a", r"\['c'\] must be given as well"),
        (lambda a: 0, "a **kwargs", r"has no \*\*kwargs"),
    ],
)
def test_a_difference_is_seen(given: Any, text: str, says: str) -> None:
    assert re.match(says or "$", differs(given, text))


def test_the_facts_are_whole() -> None:
    assert len(NAMES) == 93
    assert len(MEMBERS) > 500
    assert {name.rpartition(".")[0] for name in METHODS} <= set(NAMES)
    assert all(name.rpartition(".")[2] in NAMES[name.rpartition(".")[0]]["members"].split() for name in METHODS)


@pytest.mark.parametrize("cls, name", [(cls, name) for cls, names in absent._MEMBERS.items() for name in names])
def test_a_declined_member_says_what_to_write(cls: str, name: str) -> None:
    cure, section = absent._MEMBERS[cls][name]
    assert re.search(f"^## {section}$", (ROOT / words.PAGE).read_text(encoding="utf-8"), re.MULTILINE)
    owner = find("Variable" if cls == "Variable" else f"distribute.{cls}")
    with pytest.raises(AttributeError) as error:
        getattr(instance(owner), name)
    assert str(error.value) == f"'{cls}' object has no attribute '{name}': {cure} (\"{section}\" in {words.PAGE})"
