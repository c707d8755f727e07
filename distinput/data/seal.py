# SPDX-License-Identifier: Apache-2.0
"""Saved states: an envelope with a version, a kind and a check word around a position in a pipeline, which it identifies."""

from collections.abc import Collection
from functools import cached_property
from json import JSONEncoder, loads
from typing import Any, NamedTuple
from zlib import crc32

from distinput.columns.state import READABLE, VERSION, State, is_count
from distinput.errors import StateError
from distinput.names.words import shown
from distinput.plan.fingerprint import WIDE_BOUND, difference, fingerprint, is_fingerprint, misfit
from distinput.plan.node import Node
from distinput.rewrite.rules import Running

# ----------------------------------------------------------------------------
# The envelope: a checksum in every saved state, so that a changed one is refused before anything of it is used.
# ----------------------------------------------------------------------------


class StateKind(NamedTuple):
    """What a state is of, for messages.

    Args:
      of: what it is a position of.
      taken: what gives such a state.
      restored: what takes it.
    """

    of: str
    taken: str
    restored: str


KINDS = {
    None: StateKind("an iterator of a dataset", "iterator.state()", "Dataset.restore"),
    "distributed": StateKind("a distributed iterator", "iterator.state()", "the distributed dataset"),
    "steps": StateKind("a view of steps", "state_dict() of a view", "load_state_dict() of a view"),
}
"""What states there are, by their member `kind`; those of a single pipeline have none."""


_compact = JSONEncoder(sort_keys=True, separators=(",", ":")).encode
"""JSON of a part of a state with sorted keys and no blanks, of which check words are made."""

_spaced = JSONEncoder(sort_keys=True).encode
"""JSON of a part of a state, as `json.dumps(value, sort_keys=True)` writes it."""


def _start_of(plan: Any) -> int:
    """The checksum of a plan, with which that of a whole state begins; it is the same for all states of a pipeline."""
    return crc32(_compact(plan).encode())


def sealed(place: State, plan: Any = None) -> State:
    """The state of a place in a pipeline.

    Args:
      place: all of it but for its version, plan and check word.
      plan: a JSON value that stands for the pipeline; None: there is none.
    """
    check = crc32(_compact(place).encode(), _start_of(plan))
    return {"version": VERSION, "check": check, **({} if plan is None else {"plan": plan}), **place}


def opened(state: Any, who: str, keys: Collection[str], kind: str | None = None) -> State:
    """A copy of an unchanged state, in plain JSON values, without its version and checksum.

    Args:
      state: what a user hands in.
      who: for the messages.
      keys: what it must have.
      kind: one of `KINDS`.

    Raises:
      StateError: it is not a state, was changed, or is of another version or kind.
    """
    of = state.get("kind") if isinstance(state, dict) else None
    if not isinstance(state, dict) or ("version" not in state and (of is None or of == kind)):
        raise StateError(f"{who}: expected a state as iterator.state() gives it, got {type(state).__name__}")
    if of != kind:
        found = KINDS[of] if of is None or (isinstance(of, str) and of in KINDS) else None
        told = "" if found is None else f"; it is one of {found.of}: restore it with {found.restored}"
        raise StateError(f"{who}: this is not a state of {KINDS[kind].of}; take it with {KINDS[kind].taken}{told}")
    version = state["version"]
    if type(version) is not int or version not in READABLE:
        raise StateError(
            f"{who}: the state has version {shown(version)}, this distinput reads versions "
            f"{' and '.join(map(str, READABLE))}; restore it with the distinput that saved it"
        )
    missing = {"check", *keys} - {key for key in state if isinstance(key, str)}
    if missing:
        raise StateError(f"{who}: the state lacks {sorted(missing)}; it must be what {KINDS[kind].taken} gave")
    try:
        place = {key: value for key, value in state.items() if key not in ("version", "check", "plan")}
        plan, text = state.get("plan"), _compact(place)
        check, content = crc32(text.encode(), _start_of(plan)), {**loads(text), "plan": loads(_compact(plan))}
    except (TypeError, ValueError, RecursionError) as error:
        raise StateError(f"{who}: a state holds nothing but JSON values: {str(error)[:80]}") from None
    if type(state["check"]) is not int or state["check"] != check:
        raise StateError(
            f"{who}: the state is not as it was saved: its checksum does not match, so something in it was "
            f"changed, added or left out; pass the value of {KINDS[kind].taken}, as it was or after a trip through JSON"
        )
    return content


def of_text(state: Any, who: str, maker: str) -> Any:
    """The value that text of JSON holds; what is no text stays as it is, for `opened` to look at.

    Args:
      state: what a user hands in.
      who: for the message.
      maker: the call that gave the text, for the message.

    Raises:
      StateError: the text is not JSON.
    """
    try:
        return loads(state) if isinstance(state, str | bytes | bytearray) else state
    except (ValueError, RecursionError) as error:
        raise StateError(f"{who}: must be what {maker} gave, which is text of JSON: {error}") from None


# ----------------------------------------------------------------------------
# The state of a position in a pipeline, and back.
# ----------------------------------------------------------------------------


_PLACE = {"plan", "epoch", "at", "skip"}
_WHEN = "when the state was saved"
_LAST_PASS = (1 << 63) - 1

_USUAL = 6
"""Most states have their version, check word and plan, and of a place `epoch`, `at` and `skip`; others have more, of errors,
seeds and passes that are kept."""

_RULES_OF_VERSION_2 = (
    "batch_then_unbatch", "concatenate_of_slices", "map_of_map", "map_rows_of_map_rows", "own_shares", "part_of_range",
    "prefetch_of_prefetch", "prefetch_of_views", "read_for_batches", "shard_of_one", "shuffle_of_one", "skip_before_take",
    "skip_nothing", "skip_of_skip", "take_everything", "take_of_take", "zip_of_zip",
)  # fmt: skip
"""All rules of the releases whose states did not record which rules had fired."""


class Seal:
    """Makes states from positions in one pipeline; the first one examines its files.

    Args:
      plan: the tree as the user described it.
      running: the tree that runs for it, to whose states the positions belong.
    """

    def __init__(self, plan: Node, running: Running) -> None:
        self._plan, self._running = plan, running
        # Positions within one block have all but `skip` in common. So what comes of that is kept for the next of them: the text
        # of the state of the tree, and a state with the check word of all that stands before `skip`.
        self._spaced: tuple[Any, str] = None, "null"
        self._before_skip: tuple[State, int] = {"at": None, "epoch": None}, 0

    @cached_property
    def _facts(self) -> tuple[Any, int]:
        running = self._running
        plan = {"steps": fingerprint(self._plan), "layout": running.layout, "rules": list(running.rules)}
        return plan, _start_of(plan)

    @cached_property
    def _plan_text(self) -> str:
        return _spaced(self._facts[0])

    def __call__(self, place: State) -> State:
        """The state for a position, as `sealed` makes it."""
        if len(place) == _USUAL - 3:
            return self.usual(place["epoch"], place["at"], place["skip"])
        plan, start = self._facts
        return {"version": VERSION, "check": crc32(_compact(place).encode(), start), "plan": plan, **place}

    def usual(self, epoch: int, at: State, skip: int) -> State:
        """The state for a position of these alone."""
        state, check = self._before_skip
        if state["at"] is not at or state["epoch"] != epoch:
            plan, start = self._facts
            state = {"version": VERSION, "check": 0, "plan": plan, "epoch": epoch, "at": at, "skip": 0}
            check = crc32(f'{{"at":{_compact(at)},"epoch":{epoch},"skip":'.encode(), start)
            self._before_skip = state, check
        state = state.copy()
        state["check"], state["skip"] = crc32(b"%d}" % skip, check), skip
        return state

    def text(self, state: State) -> str:
        """A state of this pipeline, as `json.dumps(state, sort_keys=True)` writes it."""
        if len(state) > _USUAL:
            return _spaced(state)
        known, at = self._spaced, state["at"]
        if known[0] is not at:
            known = self._spaced = at, _spaced(at)
        return (
            f'{{"at": {known[1]}, "check": {state["check"]}, "epoch": {state["epoch"]}, "plan": {self._plan_text}, '
            f'"skip": {state["skip"]}, "version": {VERSION}}}'
        )


def place_in(plan: Node, running: Running, state: Any, may_differ: str | Collection[str] = ()) -> tuple[State, Running]:
    """The position in a state of this pipeline, and the tree that continues from there.

    This is the tree that runs here. If other rules fired when the state was saved, because options or releases differ,
    it is the tree that those rules make, if it is still the same.

    Args:
      plan: the tree as the user described it.
      running: the tree that runs for it here.
      state: the state that the user passed.
      may_differ: what may have changed since, of `fingerprint.MAY_DIFFER`.

    Raises:
      StateError: not a state, or modified, or of another pipeline or version; the message says what differs.
    """
    body = opened(state, "restore", _PLACE)
    saved = body["plan"]
    if isinstance(saved, list):
        saved = {"steps": saved, "layout": None, "rules": list(_RULES_OF_VERSION_2)}
    match saved:
        case {"steps": steps, "layout": str() | None as layout, "rules": list() as rules} if is_fingerprint(
            steps
        ) and all(isinstance(rule, str) for rule in rules):
            pass
        case _:
            raise StateError(
                "restore: the state does not say which pipeline it is of; it must be what iterator.state() gave"
            )
    differs = difference(plan, steps, may_differ, when=_WHEN)
    if differs is not None and plan.op == "shard_batches" and not difference(plan.inputs[0], steps, may_differ):
        return _shared(plan, *place_in(plan.inputs[0], Running.of(plan.inputs[0]), state, may_differ))
    if differs is not None:
        raise StateError(f"restore: the state belongs to another pipeline: {differs}")
    if layout != running.layout:
        here, running = running, Running.of(plan, rules)
        if layout is not None and layout != running.layout:
            raise StateError(_other_steps(here.rules, rules))
    said = _place_misfit(body) or misfit(running.node, body["at"])
    if said is not None and layout is None:
        raise StateError(_other_steps(running.rules, rules))
    if said is not None:
        raise StateError(f"restore: the state is damaged: {said}; it must be what iterator.state() gave")
    return body, running


def _shared(plan: Node, place: State, running: Running) -> tuple[State, Running]:
    """The place of a process that read whole batches, for one that shares them; how many there were is not known."""
    at = {"input": place["at"], "batch": -1, "epoch": place["epoch"]}
    return {**place, "at": at}, Running(plan.with_inputs((running.node,)), running.rules)


def _place_misfit(place: State) -> str | None:
    """What is wrong with a position, apart from its state."""
    seeds, kept = place.get("seeds", []), place.get("kept", [])
    fits = {
        "epoch": is_count(place["epoch"], most=_LAST_PASS),
        "skip": is_count(place["skip"]),
        "passed": isinstance(place.get("passed", ""), str),
        "tolerant": isinstance(place.get("tolerant", False), bool),
        "seeds": isinstance(seeds, list) and all(is_count(seed, 0, 1 << 64) for seed in seeds),
        "kept": isinstance(kept, list) and all(epoch is None or is_count(epoch, most=WIDE_BOUND) for epoch in kept),
    }
    return next((f"{key!r} cannot be {shown(place[key])}" for key, fit in fits.items() if not fit), None)


def _other_steps(here: Collection[str], then: Collection[str]) -> str:
    """The message for a state of steps other than those that run here, with the rules that fired then and now."""
    fired = f"{', '.join(then) or 'no rule'} {_WHEN}, {', '.join(here) or 'no rule'} here"
    return (
        f"restore: the pipeline runs in other steps than {_WHEN}, since other rules fired: {fired}; options, "
        "num_parallel_calls or the release of distinput differ; restore it as it was then"
    )
