# SPDX-License-Identifier: Apache-2.0
"""Fingerprints: what a pipeline is, as a small JSON value, and how two of them differ, in words."""

from collections.abc import Collection, Iterator
from typing import Any

import numpy as np

from distinput.columns.state import BOUND, Digest, State, is_count, is_mark
from distinput.errors import InvalidArgumentError, StateError
from distinput.names.words import shown
from distinput.plan.families import Neighbours
from distinput.plan.node import Node

# ----------------------------------------------------------------------------
# Layouts: which step of a running tree each part of its states belongs to, as text.
#
# Two trees made from one described tree can take up each other's states if, and only if, their layouts are equal.
# ----------------------------------------------------------------------------


def layout(node: Node) -> str:
    """The steps of a tree that have states of their own, each with its whole-number arguments and its inputs.

    Functions, arrays and file names are left out: they are those of the described tree, whose fingerprint has them.

    >>> import distinput as di
    >>> layout(di.data.Dataset.range(9).take(4).map(abs).prefetch(2).node)
    'map(processes=0; take(count=4; range(first=0, stop=9, step=1)))'
    """
    step = node.state_of
    given = [(name, _numbers(value)) for name, value in step.arguments().items() if name not in step.indifferent]
    shown = ", ".join([f"{name}={text}" for name, text in given if text])
    inner = ", ".join([layout(source) for source in step.inputs])
    return f"{step.op}({'; '.join([part for part in (shown, inner) if part])})"


def _numbers(value: Any) -> str:
    """A whole number, or several; empty for anything else."""
    if isinstance(value, np.timedelta64):  # NumPy counts it among the integers
        return str(value.view(np.int64))
    if isinstance(value, int | np.integer):
        return str(int(value))
    if isinstance(value, Neighbours):
        return str(len(value.steps))
    if isinstance(value, list | tuple):
        parts = [_numbers(part) for part in value]
        return f"[{', '.join(parts)}]" if all(parts) else ""
    return ""


# ----------------------------------------------------------------------------
# The form of states: what must hold of every state of a tree, whatever its data is, so that a damaged one is refused.
#
# A check word finds what changed a state by accident; this finds what a program made up, as far as keys, types and signs
# tell it.
# ----------------------------------------------------------------------------


WIDE_BOUND = 1 << 1024
"""Bound of seeds and epochs, which are Python's integers of any size: each `repeat` makes an epoch 32 bits longer."""

_EPOCHS = ("epoch", "pass")
"""Numbers of passes."""

_WITH_MINUS_ONE = ("batch", "left", "total")
"""Counts that are -1 where there is no bound, or where they are not known."""

_OR_NONE = ("position",)
"""Objects that are None at some places, also where the first state, as that behind `skip`, has one; their steps check them."""


def misfit(node: Node, state: Any, begin: Any = None) -> str | None:
    """The step that a state does not fit, and why; None: no step.

    Args:
      node: the tree.
      state: what may be one of its states.
      begin: its first state; None: found here.

    >>> import distinput as di
    >>> node = di.data.Dataset.range(4).take(3).node
    >>> misfit(node, {"input": {"row": 1}, "left": 2})
    >>> misfit(node, {"input": {"row": "1"}, "left": 2})
    "range: 'row' must be a whole number from 0 on, got '1'"
    """
    step = node.state_of
    while step.passes_states:
        step = step.inputs[0].state_of
    if begin is None:
        begin = step.start(0)
    if not isinstance(state, dict):
        return f"{step.op}: a state must be a JSON object, got {shown(state)}"
    for key, first in begin.items():
        if key not in state:
            return f"{step.op}: the state lacks {key!r}"
        wanted = _wanted(key, state[key], first)
        if wanted is not None:
            return f"{step.op}: {key!r} must be {wanted}, got {shown(state[key])}"
    return step.state_misfit(state) or _below(step, state, begin)


def _below(step: Node, state: State, begin: State) -> str | None:
    """The same for the states of its inputs."""
    if isinstance(state.get("input"), dict) and step.inputs:
        same = "input" in begin and state.get("part") == begin.get("part")
        said = misfit(step.input_at(state), state["input"], begin["input"] if same else None)
        if said is not None:
            return said
    if "inputs" in begin:
        if len(state["inputs"]) != len(begin["inputs"]) or not all(map(is_mark, state["inputs"])):
            return f"{step.op}: 'inputs' must be a mark for each input, got {shown(state['inputs'])}"
        for source, mark, first in zip(step.inputs, state["inputs"], begin["inputs"], strict=True):
            said = misfit(source, mark["input"], first["input"])
            if said is not None:
                return said
    return None


def _wanted(key: str, value: Any, first: Any) -> str | None:
    """What a value must be, in words, where it is not; `first` is the value in the first state."""
    match first:
        case bool():
            return None if type(value) is bool else "true or false"
        case int() if key == "seed":
            most = max(WIDE_BOUND, abs(first))
            return None if is_count(value, -most, most) else "a whole number"
        case int():
            least, most = -1 if key in _WITH_MINUS_ONE else 0, WIDE_BOUND if key in _EPOCHS else BOUND
            # What users give, such as `take(sys.maxsize)`, may be larger.
            return None if is_count(value, least, max(most, first)) else f"a whole number from {least} on"
        case list():
            return None if isinstance(value, list) else "a list"
        case dict() if key not in _OR_NONE:
            return None if isinstance(value, dict) else "a JSON object"
    return None


def taken_up(op: str, node: Node, epoch: int, saved: State | None) -> State:
    """Where to go on in a dataset that a function has made again.

    Args:
      op: whose function it is, for the message.
      node: the dataset.
      epoch: the pass.
      saved: where it was; None: at its beginning.

    Raises:
      StateError: it is of other steps than the one that was made before.
    """
    begin = node.start(epoch)
    if saved is None:
        return begin
    said = misfit(node, saved, begin)
    if said is not None:
        raise StateError(
            f"{op}: the function made a dataset of other steps when the state was saved ({said}); restore with the function "
            "that was there then, which must make the same dataset of the same element each time"
        )
    return saved


# ----------------------------------------------------------------------------
# Fingerprints, and how two of them differ.
# ----------------------------------------------------------------------------


Fingerprint = list[Any]
"""One entry for each step, inputs first: its word, or a dict of that and of what its functions, arrays and files are."""

MAY_DIFFER = ("functions", "root", "sizes", "times")
"""What a caller may allow to differ: what functions do and read; the common folder of all files, and their times; the sizes and
times of files; their times alone."""

_EVERYTHING = "shard#3de8fb"
"""The word of `shard(1, 0)`, which keeps everything: sharding for one worker puts it in, and a rule takes it out again."""


def fingerprint(node: Node) -> Fingerprint:
    """The fingerprint of this tree. Files are examined now, up to a limit; everything else once for each step."""
    return [_entry(step) for step in node.steps]


def fingerprint_number(node: Node) -> int:
    """The fingerprint of this tree in 64 bits."""
    return int(Digest(8).add(fingerprint(node)).word, 16)


def is_fingerprint(value: Any) -> bool:
    """Whether a JSON value can be a fingerprint."""
    return isinstance(value, list) and all(isinstance(entry, str) or _is_entry(entry) for entry in value)


def _is_entry(entry: Any) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("step"), str):
        return False
    code, each = entry.get("code", "- - -"), entry.get("each", [])
    return isinstance(code, str) and code.count(" ") == 2 and isinstance(each, list)


def _entry(step: Node) -> Any:
    found = {**step.identity, **step.file_facts()}
    return found["step"] if len(found) == 1 else found


def allowances(may_differ: str | Collection[str]) -> frozenset[str]:
    """The names in `may_differ`, one or several.

    Raises:
      InvalidArgumentError: one of them is not known.
    """
    names = {may_differ} if isinstance(may_differ, str) else set(may_differ)
    unknown = sorted(map(str, names - set(MAY_DIFFER)))
    if unknown:
        raise InvalidArgumentError(f"may_differ: known are {', '.join(MAY_DIFFER)}; got {', '.join(unknown)}")
    if "root" in names or "sizes" in names:
        names.add("times")
    return frozenset(names)


def difference(
    node: Node, there: Fingerprint, may_differ: str | Collection[str] = (), when: str = "then", *, cures: bool = True
) -> str | None:
    """How the pipeline of this tree differs from another one, in words; None: it does not.

    A `shard` that keeps everything makes no difference.

    Args:
      node: the tree of the one here.
      there: the fingerprint of the other.
      may_differ: what is not compared, of `MAY_DIFFER`.
      when: how to speak of the other, such as "when the state was saved".
      cures: say which `may_differ` would go on all the same.

    >>> import distinput as di
    >>> there = fingerprint(di.data.Dataset.range(4).batch(2).node)
    >>> difference(di.data.Dataset.range(4).batch(3).node, there, when="on worker 0")
    'step 2 (batch) has other arguments than on worker 0'
    """
    here, allowed = fingerprint(node), allowances(may_differ)
    if here == there:
        return None
    steps = [step for step, entry in zip(node.steps, here, strict=True) if entry != _EVERYTHING]
    here, there = _without_idle(here), _without_idle(there)
    pairs = [(_parts(a), _parts(b)) for a, b in zip(here, there, strict=False)]
    for number, (a, b) in enumerate(pairs, 1):
        if _op(a) != _op(b):
            return f"step {number} is {_op(a)} here and was {_op(b)} {when}"
    if len(here) != len(there):
        return f"it has {len(here)} steps here and had {len(there)} {when}"
    for look in (_of_snapshot, _of_files, _of_step):
        for number, (a, b) in enumerate(pairs, 1):
            said = next(look(steps[number - 1], a, b, allowed, when), None)
            if said is not None:
                return f"step {number} ({_op(a)}) {said if cures else said.partition('; may_differ=')[0]}"
    return None


def _without_idle(entries: Fingerprint) -> Fingerprint:
    return [entry for entry in entries if entry != _EVERYTHING]


def _parts(entry: Any) -> dict[str, Any]:
    return entry if isinstance(entry, dict) else {"step": str(entry)}


def _op(parts: dict[str, Any]) -> str:
    return str(parts["step"]).split("#")[0]


def _under(parts: dict[str, Any]) -> Any:
    """What it holds, with names relative to their common folder."""
    return parts.get("under", parts.get("values"))


def _names(step: Node) -> Any:
    return step.names  # type: ignore[attr-defined]  # steps that say how many files they name have them


def _of_snapshot(_: Node, a: dict[str, Any], b: dict[str, Any], allowed: frozenset[str], when: str) -> Iterator[str]:
    del allowed
    here, there = [parts.get("snapshot", "files of no table") for parts in (a, b)]
    if here != there:
        yield f"reads {here}, and {there} {when}; open the table at that one: give the state as its version"
    elif a.get("made") != b.get("made"):
        yield f"reads {here}, which was made {a.get('made')}, and {when} that of {b.get('made')}: another table"


def _of_files(step: Node, a: dict[str, Any], b: dict[str, Any], allowed: frozenset[str], when: str) -> Iterator[str]:
    if "files" not in b:
        return
    if "files" not in a:  # what names no file that is there is text
        if "sizes" not in allowed:
            yield f"named files {when}, of which the first is gone; may_differ='sizes' goes on all the same"
        return
    if a["files"] != b["files"]:
        yield f"names {_count(a['files'])} here and {_count(b['files'])} {when}"
    if a["set"] == b.get("set") and _under(a) != _under(b):
        yield f"names the same {_count(a['files'])} {when}, but in another order"
    if a["set"] != b.get("set"):
        which = _which(step, a, b, slice(0, 4))
        yield f"names other files than {when}{which and f', the first of them {which}'}"
    if a.get("root") != b.get("root") and "root" not in allowed:
        yield (
            f"names files in another folder than {when}, here {_names(step).root!r}; may_differ='root' says that they were "
            "moved there together"
        )
    which = _which(step, a, b, slice(4, 8))
    copied = "says that they hold the same, for example because they were copied"
    for fact, noun, name, cure in (
        ("sizes", "size", "sizes", "reads on at the same places, whatever the files hold now"),
        ("times", "time of change", "times", copied),
        ("tags", "version", "times", copied),
    ):
        if fact in a and fact in b and a[fact] != b[fact] and name not in allowed:
            change = "is gone" if which and _names(step).is_gone(which) else f"has another {noun}"
            first = f": {which} {change}" if which else f"; one or more have another {noun}"
            yield f"names files that are not those of {when}{first}; may_differ={name!r} {cure}"


def _count(number: Any) -> str:
    return "1 file" if number == 1 else f"{number} files"


def _which(step: Node, a: dict[str, Any], b: dict[str, Any], part: slice) -> str:
    """The first file whose own word differs in this part, if files have such words."""
    for index, (x, y) in enumerate(zip(a.get("each", ()), b.get("each", ()), strict=False)):
        if str(x)[part] != str(y)[part]:
            return str(_names(step).path(index))
    return ""


def _of_step(_: Node, a: dict[str, Any], b: dict[str, Any], allowed: frozenset[str], when: str) -> Iterator[str]:
    if a["step"] != b["step"]:
        yield f"has other arguments than {when}"
    if a.get("format") != b.get("format"):
        yield f"reads its files with other options than {when}"
    if "functions" not in allowed:
        cure = "may_differ='functions' goes on all the same"
        (python, code, name), (other, before, was) = [str(parts.get("code", "- - -")).split(" ") for parts in (a, b)]
        if code != before and python == other:
            yield f"has a function with another body than {when}; {cure}"
        if name != was and python != other:  # each version of Python compiles the same function into other code
            yield f"has a function of another name than {when}; {cure}"
        if a.get("held") != b.get("held"):
            yield f"has a function that reads other values from outside than {when}: closures, defaults or constants; {cure}"
        elif "data" in a and "data" in b and a["data"] != b["data"]:  # older states and caches say nothing of it
            yield f"has a function that reads other arrays, lists or objects from outside than {when}; {cure}"
    if _under(a) != _under(b) or ("root" not in allowed and a.get("values") != b.get("values")):
        yield f"holds other values than {when}"
