# SPDX-License-Identifier: Apache-2.0
"""A state that nobody saved is refused before anything of it is used, and what JSON or YAML make of a real one is not."""

import json
import random
import re
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.columns.state import READABLE, VERSION
from distinput.data.seal import sealed
from distinput.errors import DataLossError, StateError
from distinput.ops.scan import encode_value
from distinput.plan.options import AutoShardPolicy
from distinput.testing.elements import exact
from tests.depth import cases
from tests.laws.forging import forged

Dataset = di.data.Dataset
PLACES = (0, 1, 3, 6)
MOST = 40


def uncounted(n: int) -> di.data.Dataset:
    return Dataset.range(n).filter(lambda x: x >= 0)


def distributed(dataset: di.data.Dataset, policy: str = "AUTO", balanced: bool = False) -> Any:
    options = di.data.Options()
    options.experimental_distribute.auto_shard_policy = AutoShardPolicy[policy]
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    how = di.distribute.InputOptions(balanced_split=balanced)
    return strategy.experimental_distribute_dataset(dataset.with_options(options), how)


PIPELINES: dict[str, Callable[[], Any]] = {
    "range": lambda: Dataset.range(20),
    "slices": lambda: Dataset.from_tensor_slices({"a": np.arange(20), "b": [str(i) for i in range(20)]}).batch(2),
    "shuffle": lambda: uncounted(20).shuffle(7, seed=3).batch(2),
    "by number": lambda: Dataset.range(20).shuffle(7, seed=3),
    "other seed": lambda: Dataset.range(20).shuffle(7, seed=4),
    "no seed": lambda: uncounted(20).shuffle(7),
    "global": lambda: Dataset.range(20).global_shuffle(seed=1).batch(3),
    "map": lambda: Dataset.range(20).map(lambda x: x + 1).map(lambda x: x * 2, num_parallel_calls=2).prefetch(2),
    "scan": lambda: Dataset.range(20).scan(np.int64(0), lambda s, x: (s + x, s + x)),
    "scan text": lambda: Dataset.range(20).scan((b"", np.zeros(2)), lambda s, x: ((s[0] + b"x", s[1] + x), x)),
    "flat_map": lambda: Dataset.range(6).flat_map(lambda x: Dataset.range(x).shuffle(3)),
    "interleave": lambda: Dataset.range(6).interleave(lambda x: Dataset.range(x), cycle_length=3, block_length=2),
    "windows": lambda: Dataset.range(20).window(4, shift=2).flat_map(lambda w: w.batch(3)),
    "groups": lambda: uncounted(20).group_by_window(lambda x: x % 3, lambda _, g: g.batch(2), 4),
    "padded": lambda: Dataset.range(1, 9).map(lambda x: np.full(x, x)).padded_batch(2),
    "bucket": lambda: (
        Dataset.range(1, 20).map(lambda x: np.full(x % 5 + 1, x)).bucket_by_sequence_length(len, [3], [2, 3])
    ),
    "rebatch": lambda: Dataset.range(20).batch(6).rebatch([2, 3]).unbatch(),
    "zip": lambda: Dataset.zip(Dataset.range(20), uncounted(20).shuffle(3, seed=1)).enumerate(),
    "sample": lambda: Dataset.sample_from_datasets([Dataset.range(9), Dataset.range(9, 20)], seed=5),
    "choose": lambda: Dataset.choose_from_datasets([Dataset.range(9)] * 2, Dataset.range(12).map(lambda x: x % 2)),
    "cache": lambda: uncounted(8).shuffle(8).cache().repeat(2).unique().concatenate(Dataset.range(3)),
    "take and skip": lambda: uncounted(20).skip(2).take(15).shard(2, 1).repeat(3),
    "generator": lambda: Dataset.from_generator(lambda: iter(range(20)), output_signature=di.TensorSpec([], "int64")),
    "text": lambda: di.data.TextLineDataset(["a.txt", "b.txt"]),
    "text in turns": lambda: di.data.TextLineDataset(["a.txt", "b.txt"], num_parallel_reads=2).shuffle(3, seed=1),
    "records": lambda: di.data.FixedLengthRecordDataset(["a.txt", "b.txt"], record_bytes=3).batch(2),
    "distributed": lambda: distributed(Dataset.range(20).batch(4)),
    "distributed, balanced": lambda: distributed(uncounted(20).shuffle(5, seed=1).batch(4), balanced=True),
    "distributed, by batch": lambda: distributed(di.data.TextLineDataset(["a.txt", "b.txt"]).batch(3), "DATA"),
    "distributed, by files": lambda: distributed(di.data.TextLineDataset(["a.txt", "b.txt"]).batch(3), "FILE"),
}


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b"):
        Path(f"{name}.txt").write_text("".join(f"{name}{i}\n" for i in range(9)))


def shown(step: Any) -> str:
    parts = getattr(step, "values", None)
    return repr([exact(part) for part in parts] if isinstance(parts, tuple) else exact(step))


def states_of(dataset: Any) -> list[tuple[Any, list[str]]]:
    """States at some places, and what follows each of them."""
    with iter(dataset) as iterator:
        states, elements = [iterator.state()], []
        for element in islice(iterator, MOST):
            elements.append(shown(element))
            states.append(iterator.state())
    return [(json.loads(json.dumps(states[i])), elements[i:]) for i in PLACES if i < len(states)]


def test_none_of_many_forged_states_is_accepted() -> None:
    chance = random.Random(20)
    saved = {name: states_of(make()) for name, make in PIPELINES.items()}
    datasets = {name: make() for name, make in PIPELINES.items()}
    every = [state for states in saved.values() for state, _ in states]
    refused = 0
    for number in range(cases(300, 5_000)):
        name = list(PIPELINES)[number % len(PIPELINES)]
        state, rest = chance.choice(saved[name])
        forgery = forged(state, every, chance)
        restored, loading = datasets[name].restore, iter(datasets[name])
        try:
            found = restored(forgery) if number % 2 else loading
            if found is loading:
                loading.load_state_dict(forgery)
        except StateError:
            refused += 1
            loading.close()
            continue
        with found:
            assert forgery["version"] in READABLE
            now = {**forgery, "version": VERSION}  # no check word covers it; states of other versions may be alike
            # Changes may undo each other, or change nothing.
            legal = [state for state, _ in saved[name] if state == now]
            assert legal, f"{name}: {forgery}"
            if legal[0] == state:
                assert [shown(element) for element in islice(found, MOST - 6)] == rest[: MOST - 6]
        loading.close()
    assert refused > 0.8 * cases(300, 5_000)


def resealed(state: Any) -> Any:
    """A state with the check word that it should have, as a program would make one up."""
    if not isinstance(state, dict):
        return state
    place = {key: value for key, value in state.items() if key not in ("version", "check", "plan")}
    if isinstance(place.get("inputs"), list):
        place["inputs"] = [resealed(inner) for inner in place["inputs"]]
    try:
        return {**sealed(place, state.get("plan")), **({"version": state["version"]} if "version" in state else {})}
    except (TypeError, ValueError, RecursionError):  # no JSON
        return state


def changed_below(state: Any, others: list[Any], chance: random.Random) -> Any:
    """A state in which the place is forged, and now and then anything."""
    keys = [
        key for key in ("at", "at", "at", "skip", "epoch", "seeds", "kept", "inputs", "step", "seen") if key in state
    ]
    key = chance.choice([*keys, ""])
    if not key:
        return forged(state, others, chance)
    made = forged({key: state[key]}, [{key: other[key]} for other in others if key in other], chance)
    return {**state, **made} if isinstance(made, dict) else made


def test_a_forged_state_with_the_right_check_word_is_refused_or_restored() -> None:
    """Wrong places cannot all be told, but nothing else than a `StateError` or a `DataLossError` may come of them."""
    chance = random.Random(21)
    saved = {name: states_of(make()) for name, make in PIPELINES.items()}
    every = [state for states in saved.values() for state, _ in states]
    refused = 0
    for number in range(cases(600, 30_000)):
        name = list(PIPELINES)[number % len(PIPELINES)]
        forgery = resealed(changed_below(chance.choice(saved[name])[0], every, chance))
        try:
            with PIPELINES[name]().restore(forgery) as found:
                for element in islice(found, MOST):
                    shown(element)
        except (StateError, DataLossError):
            refused += 1
        except Exception as error:
            error.add_note(f"of {name}: {forgery}")
            raise
    assert refused > 0.4 * cases(600, 30_000)


@pytest.mark.parametrize(
    "name, key, value, said",
    [
        ("range", "row", "1", "restore: the state is damaged: range: 'row' must be a whole number from 0 on, got '1'"),
        (
            "map",
            "skip",
            -1,
            "restore: the state is damaged: map: 'skip' must be a whole number from 0 on, got -1",
        ),
        ("zip", "inputs", [], "restore: the state is damaged: zip: 'inputs' must be a mark for each input, got []"),
        ("text", "position", {"row": None}, "text: 'position' must be one in a file, or null"),
        ("rebatch", "input", None, "restore: the state is damaged: unbatch: 'input' must be a JSON object, got None"),
    ],
)
def test_what_a_step_cannot_have_saved_is_told_by_its_name(name: str, key: str, value: Any, said: str) -> None:
    state = states_of(PIPELINES[name]())[1][0]
    with pytest.raises(StateError, match=re.escape(said)):
        PIPELINES[name]().restore(resealed({**state, "at": {**state["at"], key: value}}))


@pytest.mark.parametrize("inner", [{}, {"key": 7, "state": {}}, {"key": 7, "state": None, "flush": False}])
def test_a_group_that_no_element_is_of_is_damage(inner: dict[str, Any]) -> None:
    state = states_of(PIPELINES["groups"]())[2][0]
    forgery = resealed({**state, "at": {**state["at"], "inner": inner}})
    with pytest.raises(StateError, match="state is damaged: "), PIPELINES["groups"]().restore(forgery) as elements:
        list(elements)


def growing(state: Any, x: Any) -> tuple[Any, Any]:
    return np.append(state, x), np.append(state, x)[:3]


@pytest.mark.parametrize(
    "initial, step, other, said",
    [
        (
            np.int64(0),
            lambda s, x: (s + x, s + x),
            np.zeros(1, np.int64),
            "has shape [1], where the initial one has []",
        ),
        (np.zeros(0), growing, np.zeros((2, 2)), None),  # it is one that flattens what it carries
    ],
)
def test_a_carried_value_of_another_shape_is_damage_where_outputs_are_unlike_the_others(
    initial: Any, step: Any, other: Any, said: str | None
) -> None:
    dataset = Dataset.range(9).scan(initial, step)
    with iter(dataset) as elements:
        for _ in range(5):
            next(elements)
        state = elements.state()
        rest = [shown(element) for element in elements]
    assert [shown(element) for element in dataset.restore(json.loads(json.dumps(state)))] == rest
    forgery = resealed({**state, "at": {**state["at"], "carry": encode_value(other)}})
    if said is None:
        assert len(list(dataset.restore(forgery))) == 4
        return
    with pytest.raises(StateError, match=re.escape(said)), dataset.restore(forgery) as elements:
        list(elements)


@pytest.mark.parametrize("name", PIPELINES)
def test_states_survive_what_files_do_to_them(name: str) -> None:
    def turned(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: turned(value[key]) for key in reversed(value)}
        return tuple(map(turned, value)) if isinstance(value, list) else value

    for state, rest in states_of(PIPELINES[name]()):
        dataset = PIPELINES[name]()
        ways = [json.loads(json.dumps(state, sort_keys=True, indent=2)), turned(state)]
        for changed in ways:
            with dataset.restore(changed) as again:
                elements = [shown(element) for element in islice(again, MOST)]
            if name not in ("no seed", "flat_map", "cache"):
                assert elements[: len(rest)] == rest


def test_a_state_that_is_used_stays_as_it_is() -> None:
    for name, make in PIPELINES.items():
        for state, _ in states_of(make()):
            before = json.dumps(state)
            with make().restore(state) as again:
                list(islice(again, 3))
            assert json.dumps(state) == before, name


def test_whole_numbers_that_became_floats_are_refused() -> None:
    state = iter(PIPELINES["range"]()).state()
    with pytest.raises(StateError, match="not as it was saved"):
        PIPELINES["range"]().restore({**state, "epoch": 0.0})


def test_a_state_of_an_older_form_is_refused() -> None:
    state = iter(PIPELINES["range"]()).state()
    old = {"version": 1, "plan": ["range#442edd"], "epoch": 0, "at": state["at"], "skip": 0}
    with pytest.raises(
        StateError, match="the state has version 1, this distinput reads versions 2 and 3; restore it with the"
    ):
        PIPELINES["range"]().restore(old)
    old = {"version": 1, "kind": "distributed", "cut": "batches", "step": 0, "ended": False, "seen": None, "inputs": []}
    with pytest.raises(
        StateError, match="the state has version 1, this distinput reads versions 2 and 3; restore it with the"
    ):
        PIPELINES["distributed"]().restore(old)


def test_a_pipeline_that_runs_in_other_steps_is_told() -> None:
    def made(calls: int | None) -> di.data.Dataset:
        return Dataset.range(20).map(lambda x: x + 1).map(lambda x: x * 2, num_parallel_calls=calls)

    state = iter(made(None)).state()
    with pytest.raises(
        StateError, match="runs in other steps than when the state was saved, since other rules fired: map_of"
    ):
        made(2).restore(state)


def test_neighbouring_maps_that_ran_one_by_one_still_do() -> None:
    def made(calls: int | None) -> di.data.Dataset:
        return Dataset.range(20).map(lambda x: x + 1).map(lambda x: x * 2, num_parallel_calls=calls)

    iterator = iter(made(2))
    next(iterator)
    assert list(made(None).restore(iterator.state())) == list(made(2))[1:]
