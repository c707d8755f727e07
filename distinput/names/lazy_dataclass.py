# SPDX-License-Identifier: Apache-2.0
"""`dataclass`: Python's own, except that a method of a class is made when it is first used.

Python compiles up to six methods for each class at once, and a job uses few of those that it loads.
"""

import dataclasses
from functools import partial
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(kind: type | None = None, /, **options: bool) -> Any:
        """As `dataclasses.dataclass`, which it is with other options than `frozen`, `eq`, `repr` and `kw_only`.

        >>> @dataclass(frozen=True)
        ... class Point:
        ...     "A place."
        ...
        ...     x: int
        ...     y: int = 0
        >>> Point(1), Point(1) == Point(1, 0), dataclasses.replace(Point(1), y=2)
        (Point(x=1, y=0), True, Point(x=1, y=2))
        """
        if kind is None:
            return partial(dataclass, **options)
        lazily = options.keys() <= {"frozen", "eq", "repr", "kw_only"}
        return _with_lazy_methods(kind, **options) if lazily else dataclasses.dataclass(**options)(kind)


def _with_lazy_methods(
    kind: Any, frozen: bool = False, eq: bool = True, repr: bool = True, kw_only: bool = False
) -> Any:
    own, apart = dict(vars(kind)), {"__abstractmethods__", "__dict__", "__weakref__"}
    inherited: dict[str, Any] = {}
    for base in reversed(kind.__mro__[1:]):
        inherited |= getattr(base, "__dataclass_fields__", {})
    # Python collects the fields, in another class with the same names.
    same = {key: value for key, value in own.items() if key not in apart}
    described = _standard(same, kind, inherited, init=False, repr=False, eq=False, kw_only=kw_only)
    for name in described.keys() - own.keys() - apart:
        setattr(kind, name, described[name])
    for name in [name for name in kind.__dataclass_fields__ if isinstance(own.get(name), dataclasses.Field)]:
        setattr(kind, name, described[name]) if name in described else delattr(kind, name)
    settings = kind.__dataclass_params__
    settings.init, settings.repr, settings.eq, settings.frozen = True, repr, eq, frozen
    for name, wanted in (("__init__", True), ("__repr__", repr), ("__eq__", eq)):
        if wanted and name not in own:
            setattr(kind, name, _Method(kind, name))
    if eq and own.get("__hash__") is None and ("__eq__" in own or "__hash__" not in own):
        kind.__hash__ = _Method(kind, "__hash__") if frozen else None
    if frozen:
        kind.__setattr__, kind.__delattr__ = _refusal(kind, "__setattr__"), _refusal(kind, "__delattr__")
    return kind


def _standard(names: dict[str, Any], kind: type, fields: dict[str, Any], **options: bool) -> dict[str, Any]:
    """What is in a class with these names, once Python has made it a dataclass that has these fields as well."""
    settings = SimpleNamespace(frozen=options.get("frozen", False))
    base = type("Fields", (), {"__dataclass_fields__": fields, "__dataclass_params__": settings})
    named = type(kind.__name__, (base,), names | {"__doc__": "The same."})  # without a text Python would make one
    return dict(vars(dataclasses.dataclass(**options)(named)))


class _Method:
    """Stands in a class for a method until that is asked for."""

    def __init__(self, kind: Any, name: str) -> None:
        self._kind, self._name = kind, name

    def __get__(self, instance: object, owner: type | None = None) -> Any:
        kind, name = self._kind, self._name
        names = {
            key: getattr(kind, key) for key in ("__module__", "__qualname__", "__post_init__") if hasattr(kind, key)
        }
        parts = {part: f"__{part}__" == name for part in ("init", "repr")}
        parts |= {"eq": name in ("__eq__", "__hash__"), "frozen": kind.__dataclass_params__.frozen}
        setattr(kind, name, _standard(names, kind, kind.__dataclass_fields__, **parts)[name])
        return vars(kind)[name].__get__(instance, owner)


def _refusal(kind: type, name: str) -> Any:
    """What objects whose fields do not change do instead of `__setattr__` or `__delattr__`."""
    doing = "assign to" if name == "__setattr__" else "delete"

    def refuse(self: object, field: str, *value: object) -> None:
        if type(self) is kind or field in kind.__dataclass_fields__:  # type: ignore[attr-defined]
            raise dataclasses.FrozenInstanceError(f"cannot {doing} field {field!r}")
        getattr(super(kind, self), name)(field, *value)

    return refuse
