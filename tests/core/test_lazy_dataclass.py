# SPDX-License-Identifier: Apache-2.0
"""Our `dataclass` gives what Python's gives, and makes a method when it is first used."""

import copy
import dataclasses
import inspect
import itertools
import pickle
import pydoc
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar

import pytest

from distinput.names.lazy import dataclass

OPTIONS = [
    dict(zip(("frozen", "eq", "repr", "kw_only"), values, strict=True))
    for values in itertools.product([False, True], repeat=4)
]


def family(decorator: Callable[..., Any], options: dict[str, bool]) -> list[type]:
    """Classes of every kind, made by a decorator."""

    @decorator(**options)
    class Above:
        """Fields with defaults of each kind."""

        kind: ClassVar[int] = 1
        a: int
        b: "list[int]" = field(default_factory=list, repr=False)
        c: str = field(default="c", compare=False)
        d: int = field(default=4, kw_only=True)
        e: int = field(init=False, default=5)
        g: int = field(default=7, hash=False)

        def __post_init__(self) -> None:
            object.__setattr__(self, "e", self.a + 1)

    @decorator(**options)
    class Below(Above):
        """Another default, and one more field."""

        a: int = 10
        f: float = 0.5

    @decorator(**options)
    class Same(Above):
        """Methods of its own."""

        def __repr__(self) -> str:
            return "same"

        def __eq__(self, other: object) -> bool:
            return type(other) is Same

    class Plain(Below):
        """No dataclass itself."""

    @dataclasses.dataclass(**options)
    class Users(Below):
        """Below a class of ours, by Python's own."""

        h: int = 8

    return [Above, Below, Same, Plain, Users]


def seen(kind: Any, frozen: bool) -> list[Any]:
    """All that can be asked of a class."""
    made = (
        [kind(1), kind(2), kind(1, c="other")] if not _by_name(kind) else [kind(a=1), kind(a=2), kind(a=1, c="other")]
    )
    one = made[0]
    answers = [
        list(map(repr, made)) if not repr(one).startswith("<") else "",
        [[x == y for x in made] for y in made],
        _hashes(made),
        str(inspect.signature(kind)),
        [(f.name, f.type, f.default, f.init, f.repr, f.compare, f.hash, f.kw_only) for f in dataclasses.fields(kind)],
        [dataclasses.asdict(each) for each in (one, dataclasses.replace(one, a=9), copy.copy(one))],
        kind.__match_args__,
        kind.__init__.__qualname__,
        kind.__init__.__annotations__,
        [getattr(kind, name, "none") for name in "abcdefg"],
        {name: getattr(kind.__dataclass_params__, name) for name in ("init", "repr", "eq", "order", "frozen")},
        kind.__doc__,
    ]
    for name in ("a", "other"):
        for change in (lambda name: setattr(one, name, 3), lambda name: delattr(one, name)):
            try:
                change(name)
                answers.append(vars(one).copy())
            except (FrozenInstanceError, AttributeError) as error:
                answers.append((type(error), str(error)))
    assert frozen == kind.__dataclass_params__.frozen
    return answers


def _by_name(kind: type) -> bool:
    return all(each.kw_only for each in dataclasses.fields(kind))  # type: ignore[arg-type]


def _hashes(made: list[Any]) -> Any:
    try:
        return [hash(each) == hash(made[0]) for each in made]
    except TypeError as error:
        return str(error)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_it_gives_what_that_of_python_gives(options: dict[str, bool]) -> None:
    ours, theirs = family(dataclass, options), family(dataclasses.dataclass, options)
    for one, other in zip(ours, theirs, strict=True):
        assert seen(one, options["frozen"]) == seen(other, options["frozen"]), one


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_each_method_may_be_the_first_one_that_is_used(options: dict[str, bool]) -> None:
    for name in ("__init__", "__repr__", "__eq__", "__hash__", "__match_args__"):
        for one, other in zip(family(dataclass, options), family(dataclasses.dataclass, options), strict=True):
            assert str(getattr(one, name)).partition(" at ")[0] == str(getattr(other, name)).partition(" at ")[0]


def test_methods_are_made_when_they_are_first_used(monkeypatch: pytest.MonkeyPatch) -> None:
    texts: list[str] = []

    def compiled(text: str, *names: Any) -> None:
        texts.append(text)
        exec(text, *names)

    monkeypatch.setattr(dataclasses, "exec", compiled, raising=False)

    @dataclass
    class Point:
        """A place."""

        x: int

    points = [Point(x) for x in range(20)]
    assert texts == []
    points += [Point(x) for x in range(20, 40)]
    assert len(texts) == 1
    assert "__init__" in texts[0]
    assert [point.x for point in points] == [*range(40)]
    assert Point(1) == Point(1)
    assert len(texts) == 2
    assert "__eq__" in texts[1]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize(
    "values, named",
    [
        ((), {}),
        ((1, [2], "c", 7, 9), {}),
        ((1,), {"a": 2}),
        ((1,), {"unknown": 2}),
        ((), {"a": 1, "e": 5}),
        ((), {"b": [2]}),
        ((), {"a": 1, "b": [2], "g": 3}),
    ],
)
def test_the_first_objects_are_those_that_come_later(
    options: dict[str, bool], values: tuple[Any, ...], named: dict[str, Any]
) -> None:
    def made(kind: Any) -> Any:
        try:
            return vars(kind(*values, **named))
        except TypeError as error:
            return str(error)

    for one, other in zip(family(dataclass, options), family(dataclasses.dataclass, options), strict=True):
        assert [made(one) for _ in range(25)] == [made(other)] * 25


@dataclass(frozen=True)
class Kept:
    """At the top of a module, so that it can be pickled."""

    x: int
    y: list[int] = field(default_factory=list)


def test_an_object_is_pickled_and_taken_apart() -> None:
    assert pickle.loads(pickle.dumps(Kept(1, [2]))) == Kept(1, [2])
    match Kept(1, [2]):
        case Kept(x, [y]):
            assert (x, y) == (1, 2)
    assert "Kept(x: int, y: list[int] = <factory>)" in pydoc.plain(pydoc.render_doc(Kept))
    assert dataclasses.is_dataclass(Kept)


@dataclass(frozen=True, slots=True)
class Slim:
    """Without a dict, and at the top of a module."""

    x: int
    y: int = 2


@pytest.mark.parametrize("frozen", [False, True])
@pytest.mark.parametrize("init", [False, True])
def test_slots_and_no_init_are_those_of_python(init: bool, frozen: bool) -> None:
    def two(decorator: Callable[..., Any]) -> list[Any]:
        @decorator(init=init, frozen=frozen, slots=True)
        class Narrow:
            """Slots."""

            x: int = 1
            y: list[int] = field(default_factory=list)
            z: int = field(init=False, default=3)

        @decorator(init=init, frozen=frozen)
        class Wide:
            """A dict."""

            x: int = 1

        return [Narrow, Wide]

    def answers(kind: Any) -> list[Any]:
        seen: list[Any] = [str(inspect.signature(kind)), vars(kind).get("__slots__"), str(kind.__dataclass_params__)]
        seen += [[f.name for f in dataclasses.fields(kind)], kind.__match_args__, kind.__hash__ is None]
        if init:
            one, other = kind(5), kind(x=5)
            seen += [repr(one), one == other, hash(kind.__name__), one.__class__ is kind]
            seen += [hash(one) == hash(other)] if kind.__name__ == "Wide" and frozen else []
        try:
            kind().x = 4
        except FrozenInstanceError as error:
            seen.append(str(error))
        return seen

    for ours, theirs in zip(two(dataclass), two(dataclasses.dataclass), strict=True):
        assert answers(ours) == answers(theirs)


def test_a_class_with_slots_is_whole() -> None:
    assert Slim.__slots__ == ("x", "y")  # type: ignore[attr-defined]
    assert repr(Slim(1)) == "Slim(x=1, y=2)"
    assert pickle.loads(pickle.dumps(Slim(1, 4))) == copy.copy(Slim(1, 4)) == Slim(1, 4)
    assert not hasattr(Slim(1), "__dict__")
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'x'"):
        Slim(1).x = 3  # type: ignore[misc]


def test_other_options_are_those_of_python() -> None:
    @dataclass(order=True)
    class Ordered:
        """With a method that ours does not make."""

        x: int

    assert Ordered(1) < Ordered(2)  # type: ignore[operator,unused-ignore]
