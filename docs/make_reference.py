# SPDX-License-Identifier: Apache-2.0
"""Writes build/reference/*.md from the docstrings: a page for each public module and each class with members.

A name is public when it is in the `__all__` of `distinput` or of a public module reached from there. The pages are made when
they are wanted, here or by docs/make_site.py, and never committed.
"""

import enum
import importlib
import inspect
import os
import re
import shutil
from collections import deque
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

from distinput.errors import EngineMissing

REFERENCE = Path(__file__).parents[1] / "build" / "reference"
ROOT = "distinput"
MADE = "<!-- written by docs/make_reference.py from the docstrings -->"

# Public modules that must be there whether or not the one above names them.
MODULES = (
    "distinput",
    "distinput.data",
    "distinput.data.experimental",
    "distinput.distribute",
    "distinput.distribute.experimental",
    "distinput.extend",
    "distinput.inspect",
    "distinput.io",
    "distinput.reports",
    "distinput.testing",
)
WIDE = 84  # letters of a signature in one line
# Modules that import the package of a neighbour. Where one is not installed, the module has no page.
NEIGHBOURS = tuple([f"distinput.interop.{name}" for name in ("grain", "huggingface", "jax", "keras", "ray", "torch")])
os.environ.setdefault("KERAS_BACKEND", "jax")  # read when Keras is imported


def public_modules(names: tuple[str, ...] = (*MODULES, *NEIGHBOURS)) -> dict[str, ModuleType]:
    """The public modules by their public names, breadth first: those listed, and what their `__all__` reaches."""
    found: dict[str, ModuleType] = {}
    waiting = deque(names)
    while waiting:
        name = waiting.popleft()
        if name in found:
            continue
        try:
            module = _module(name)
        except EngineMissing:
            if name not in NEIGHBOURS:
                raise
            continue
        found[name] = module
        for child in public_names(module):
            if inspect.ismodule(getattr(module, child)):
                waiting.append(f"{name}.{child}")
    return found


def _module(name: str) -> ModuleType:
    """The module a user reaches by this path, whatever file it is in."""
    top, *path = name.split(".")
    value: object = importlib.import_module(top)
    for index, part in enumerate(path):
        try:
            value = getattr(value, part)
        except AttributeError:
            value = importlib.import_module(".".join([top, *path[: index + 1]]))
    if not isinstance(value, ModuleType):
        raise TypeError(f"make_reference: {name} is not a module but {value!r}")
    return value


def public_names(module: ModuleType) -> list[str]:
    """The names in `__all__`, sorted; a module without one is an error."""
    if not hasattr(module, "__all__"):
        raise AttributeError(f"make_reference: {module.__name__} has no __all__; it must say what is public")
    return sorted(module.__all__)


def public_classes() -> dict[type, str]:
    """The public classes, each by the name under which it is described."""
    found: dict[type, str] = {}
    for module_name, module in public_modules().items():
        for name in public_names(module):
            value = getattr(module, name)
            if inspect.isclass(value):
                found.setdefault(value, f"{module_name}.{name}")
    return found


def members(cls: type, public: dict[type, str]) -> Iterator[tuple[str, object]]:
    """Public methods, properties and enum members of a class, without those that a public class above it has already."""
    if issubclass(cls, enum.Enum):
        yield from cls.__members__.items()
    ours = [base for base in cls.__mro__ if base.__module__.split(".")[0] == ROOT]
    above = [base for base in ours if base is not cls and base in public]
    for name in sorted({name for base in ours for name in vars(base)}):
        owner = next(base for base in ours if name in vars(base))
        if owner is not cls and any(issubclass(base, owner) for base in above):
            continue
        getattr(cls, name, None)  # the method of an op is made when it is first named
        raw = inspect.getattr_static(cls, name)
        is_member = (
            callable(raw) or isinstance(raw, property | classmethod | staticmethod) or inspect.isdatadescriptor(raw)
        )
        if not name.startswith("_") and is_member and not isinstance(raw, enum.Enum | type):
            yield name, raw


def entries() -> Iterator[tuple[str, str, object]]:
    """(module, dotted public name, object) of everything that has a heading."""
    public = public_classes()
    for module_name, module in public_modules().items():
        for name in public_names(module):
            value = getattr(module, name)
            yield module_name, f"{module_name}.{name}", value
            if inspect.isclass(value):
                for member, raw in members(value, public):
                    yield module_name, f"{module_name}.{name}.{member}", raw


def signature(value: object, bound: bool, name: str = "") -> str:
    """How it is called: parameters with their defaults, without types, whose spelling depends on Python's version."""
    function = value.__func__ if isinstance(value, classmethod | staticmethod) else value
    if not callable(function) or (inspect.isclass(function) and not _is_made_by_us(function)):
        return ""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return f"{name}(...)"
    drop_first = bound and not isinstance(value, staticmethod)
    shown = []
    marks = {"/": False, "*": False}
    for parameter in parameters[1:] if drop_first else parameters:
        if parameter.kind is parameter.KEYWORD_ONLY and not marks["*"]:
            shown.append("*")
            marks["*"] = True
        if parameter.kind is parameter.VAR_POSITIONAL:
            marks["*"] = True
        if marks["/"] and parameter.kind is not parameter.POSITIONAL_ONLY:
            shown.append("/")
            marks["/"] = False
        elif parameter.kind is parameter.POSITIONAL_ONLY:
            marks["/"] = True
        star = "*" * (parameter.kind is parameter.VAR_POSITIONAL) + "**" * (parameter.kind is parameter.VAR_KEYWORD)
        default = "" if parameter.default is parameter.empty else f"={_default(parameter.default)}"
        shown.append(f"{star}{parameter.name}{default}")
    if marks["/"]:
        shown.append("/")
    return _wrapped(name, shown)


def _wrapped(name: str, parameters: list[str]) -> str:
    """A call in one line, or with its parameters in lines below where it is too long to be read without scrolling."""
    call = f"{name}({', '.join(parameters)})"
    if len(call) <= WIDE:
        return call
    lines = [""]
    for text in (*(f"{parameter}," for parameter in parameters[:-1]), parameters[-1]):
        if len(lines[-1]) + len(text) > WIDE - 5:
            lines.append("")
        lines[-1] += f"{' ' * bool(lines[-1])}{text}"
    return "\n    ".join([f"{name}(", *lines]) + "\n)"


def _is_made_by_us(cls: type) -> bool:
    """Whether a class of ours says how it is called; enums and plain exceptions do not."""
    ours = [base for base in cls.__mro__ if base.__module__.split(".")[0] == ROOT]
    return not issubclass(cls, enum.Enum) and any("__init__" in vars(base) or "__new__" in vars(base) for base in ours)


def _default(value: object) -> str:
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if inspect.isclass(value) or inspect.isroutine(value):
        return str(value.__name__)
    text = repr(value)
    return "..." if re.search(r" at 0x|^<", text) else text


def _body(value: object) -> str:
    """The docstring of an entry, or the value of a constant."""
    if isinstance(value, enum.Enum):
        return f"`{value.value!r}`"
    if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value) or not _is_plain(value):
        target = value.__func__ if isinstance(value, classmethod | staticmethod) else value
        text = inspect.cleandoc(inspect.getdoc(target) or "")
        return _fenced(text)
    return f"`{value!r}`"


def _is_plain(value: object) -> bool:
    return isinstance(value, int | float | str | bytes | tuple | None)


def _fenced(text: str) -> str:
    """The text with its examples as code blocks, and headings of its own made bold."""
    lines: list[str] = []
    inside = False
    for line in text.splitlines():
        starts = line.lstrip().startswith(">>>")
        if starts and not inside:
            if lines and lines[-1]:
                lines.append("")
            lines.append("```python")
            inside = True
        if inside and not line.strip():
            lines.append("```")
            inside = False
        section = re.fullmatch(r"(Args|Returns|Raises|Warns|Yields|Attributes|Example|Examples|Note|Source):", line)
        item = re.fullmatch(r" {2,4}(\**[\w.]+(?:, \**[\w.]+)*): (.*)", line)
        if not inside and section:
            lines += [f"**{section.group(1)}**", ""]
        elif not inside and item:
            lines.append(f"* `{item.group(1)}`: {item.group(2)}")
        else:
            lines.append(line)
    if inside:
        lines.append("```")
    return "\n".join(lines).replace("\n#", "\n\\#")


def pages() -> dict[str, str]:
    """The text of every page by file name; those of classes are named by `class_pages`."""
    modules = public_modules()
    public = public_classes()
    first: dict[int, str] = {}
    written: dict[str, list[str]] = {}
    for name, module in modules.items():
        written[name] = [f"# `{name}`", "", MADE, "", _fenced(inspect.getdoc(module) or ""), ""]
    for module_name, name, value in entries():
        is_member = name.count(".") > module_name.count(".") + 1
        owner = name.rsplit(".", 1)[0]
        if is_member and owner in _aliases(first, owner, modules):
            continue
        body = written.get(owner, written[module_name]) if is_member else written[module_name]
        body += [f"### `{name}`", ""]
        if inspect.ismodule(value):
            body += [f"A module: see [{name}]({name}.md).", ""]
            continue
        if inspect.isclass(value) or inspect.isroutine(value):
            known = first.setdefault(id(value), name)
            if known != name and not is_member:
                body += [f"The same as `{known}`.", ""]
                continue
        if inspect.isclass(value) and any(members(value, public)):
            body += [f"A class, [on a page of its own]({name}.md){_summary(value)}", ""]
            body = written[name] = [f"# `{name}`", "", MADE, ""]
        call = signature(value, is_member, name.rsplit(".", 1)[1] if is_member else name)
        if isinstance(value, property) or (is_member and not call and not isinstance(value, enum.Enum)):
            body += ["*property*", ""]
        elif call:
            body += ["```python", call, "```", ""]
        text = _body(value)
        body += [text, ""] if text else []
        above = [f"`{public[base]}`" for base in value.__mro__[1:] if base in public] if inspect.isclass(value) else []
        body += [f"Inherits from {' and '.join(above)}.", ""] if above else []
    return {f"{name}.md": "\n".join(lines).rstrip() + "\n" for name, lines in written.items()}


def class_pages(module: str) -> list[str]:
    """The classes of a public module that have pages of their own, sorted."""
    return sorted(name for name in _with_pages() if name.rpartition(".")[0] == module)


@cache
def _with_pages() -> frozenset[str]:
    return frozenset(page.removesuffix(".md") for page in pages()) - {*public_modules()}


def listing() -> str:
    """The pages as a list: the public modules and what each is for, then those that are left out."""
    modules = public_modules()
    lines = [f"* [`{name}`]({name}.md){_summary(module)}" for name, module in sorted(modules.items())]
    absent = [f"`{name}`" for name in NEIGHBOURS if name not in modules]
    if absent:
        lines += ["", f"Left out, since what it feeds is not installed here: {', '.join(absent)}."]
    return "\n".join(lines) + "\n"


def _summary(value: object) -> str:
    text = (inspect.getdoc(value) or "").split("\n", 1)[0]
    text = re.sub(r"^`?distinput[\w.]*`?: ", "", text)  # the name stands in front of it
    return f": {text}" if text else ""


def _aliases(first: dict[int, str], owner: str, modules: dict[str, ModuleType]) -> set[str]:
    """`owner` itself if it is a second name of a class described under another one, whose members are there."""
    module_name, _, name = owner.rpartition(".")
    value = getattr(modules[module_name], name)
    return {owner} if first.get(id(value), owner) != owner else set()


def write(folder: Path = REFERENCE) -> list[Path]:
    """Write the pages, and their list as README.md, into a folder that holds nothing else."""
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    wanted = {**pages(), "README.md": f"# Reference\n\n{listing()}"}
    for name, text in wanted.items():
        (folder / name).write_text(text, encoding="utf-8")
    return sorted(folder / name for name in wanted)


if __name__ == "__main__":
    print(f"{REFERENCE}: {len(write())} pages")
