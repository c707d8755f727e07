# SPDX-License-Identifier: Apache-2.0
"""Checkpoints: what is restored equals what was saved, or nothing is changed; laws first."""

import collections
import dataclasses
import enum
import random
from types import MappingProxyType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import distinput as di
from distinput.distribute import InputOptions
from distinput.errors import (
    DataLossError,
    FailedPreconditionError,
    InputWarning,
    InvalidArgumentError,
    NotFoundError,
    StateError,
)
from distinput.train import Checkpoint, latest_checkpoint
from distinput.train.tracked import RestoreStatus
from tests.distribute.workers import by_step, on_workers, rows_of, with_policy

Dataset = di.data.Dataset

ARRAYS = hnp.arrays(
    st.sampled_from(["?", "u1", "<i4", ">i8", "f2", "f4", "f8", "c8", "c16", "S3", "U2", "M8[s]"]),
    hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=3),
)
NUMBERS = st.one_of(st.booleans(), st.integers(), st.floats(), st.complex_numbers(), st.text(), st.binary())
NESTS = st.recursive(
    st.one_of(ARRAYS, NUMBERS),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.dictionaries(st.text(max_size=3), inner, max_size=3),
        st.tuples(inner, inner),
    ),
    max_leaves=8,
)


def blank(value: Any) -> Any:
    """A nest of the same structure, with other content."""
    if isinstance(value, np.ndarray):
        return np.zeros_like(value)
    if isinstance(value, dict):
        return {key: blank(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(blank(item) for item in value)
    return 0


def same(one: Any, other: Any) -> bool:
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.shape == other.shape and one.tobytes() == other.tobytes()
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


# ---- laws


@settings(max_examples=60)
@given(NESTS)
def test_a_restored_nest_is_the_saved_one(tmp_path_factory: Any, nest: Any) -> None:
    """Law: for every nest of arrays, numbers and text, restore(save(x)) is x, bit for bit, whatever was there."""
    folder = tmp_path_factory.mktemp("checkpoint")
    path = Checkpoint(nest=nest).save(folder / "ckpt")
    restored = Checkpoint(nest=blank(nest))
    status = restored.restore(path)
    status.assert_consumed()
    assert same(restored.nest, nest)


@settings(max_examples=25)
@given(st.integers(0, 30), st.integers(1, 6), st.integers(1, 3), st.integers(1, 3), st.data())
def test_a_run_that_is_restored_ends_as_one_that_was_not_interrupted(
    tmp_path_factory: Any, n: int, batch: int, before: int, after: int, data: Any
) -> None:
    """Law: stopped after any step and restored on another number of replicas, a sum over all records is the same."""
    folder = tmp_path_factory.mktemp("checkpoint")
    at = data.draw(st.integers(0, -(-n // batch)))

    def begin(replicas: int) -> tuple[Any, Any, Checkpoint]:
        strategy = di.distribute.MirroredStrategy([f"CPU:{i}" for i in range(replicas)])
        dataset = Dataset.range(n).shuffle(5, seed=2).batch(batch)
        iterator = iter(strategy.experimental_distribute_dataset(dataset, InputOptions(balanced_split=True)))
        with strategy.scope():
            total = di.Variable(np.int64(0))
        return iterator, total, Checkpoint(iterator=iterator, total=total)

    def take(iterator: Any, total: Any, steps: int) -> None:
        for _ in range(steps):
            step = next(iterator, None)
            if step is not None:
                parts = getattr(step, "values", (step,))
                total.assign(int(total.numpy()) * 3 + sum(int(part.sum()) for part in parts))

    iterator, total, checkpoint = begin(before)
    take(iterator, total, at)
    path = checkpoint.save(folder / "ckpt")
    take(iterator, total, 99)
    other_iterator, other_total, other = begin(after)
    other.restore(path).assert_consumed()
    take(other_iterator, other_total, 99)
    assert int(other_total.numpy()) == int(total.numpy())


@settings(max_examples=15)
@given(st.integers(0, 24), st.integers(1, 5), st.integers(1, 3), st.integers(1, 3), st.data())
def test_workers_restore_what_other_workers_saved(
    tmp_path_factory: Any, n: int, batch: int, workers: int, others: int, data: Any
) -> None:
    """Law: on any number of workers before and after, every record is delivered once and the variable is that of all."""
    folder = tmp_path_factory.mktemp("checkpoint")
    at = data.draw(st.integers(0, -(-n // batch)))

    def begin(strategy: Any) -> Any:
        iterator = iter(strategy.experimental_distribute_dataset(Dataset.range(n).shuffle(4, seed=1).batch(batch)))
        with strategy.scope():
            seen = di.Variable(np.int64(0))
        return iterator, seen, Checkpoint(iterator=iterator, seen=seen)

    def first(strategy: Any, worker: int) -> Any:
        iterator, seen, checkpoint = begin(strategy)
        steps = [next(iterator) for _ in range(at)]
        seen.assign(at)
        checkpoint.save(folder / "ckpt")
        return rows_of(strategy, steps)

    def second(strategy: Any, worker: int) -> Any:
        iterator, seen, checkpoint = begin(strategy)
        checkpoint.restore(latest_checkpoint(folder)).assert_consumed()
        assert int(seen.numpy()) == at
        return rows_of(strategy, iterator)

    steps = by_step(on_workers([1] * workers, first)) + by_step(on_workers([1] * others, second))
    expected = [sorted(rows.tolist()) for rows in Dataset.range(n).shuffle(4, seed=1).batch(batch)]
    assert [sorted(x for part in step for x in part) for step in steps] == expected


# ---- what is saved


class Layer:
    def __init__(self) -> None:
        self.weights = di.Variable(np.ones(2, np.float32))
        self.units = 2
        self.activation = np.tanh
        self.dataset = Dataset.range(3)


class Model:
    __slots__ = ("layers", "me", "name")

    def __init__(self) -> None:
        self.layers = [Layer(), {"bias": np.zeros(2)}]
        self.me = self
        self.name = "model"


def test_objects_are_saved_by_their_attributes_and_cycles_once(tmp_path: Any) -> None:
    model = Model()
    checkpoint = Checkpoint(model=model, again=model.layers[0])
    path = checkpoint.save(tmp_path / "ckpt")
    names = [name for name, _ in di.train.list_variables(path)]
    assert names == ["model/layers/0/units", "model/layers/0/weights", "model/layers/1/bias", "model/name"]
    model.layers[0].weights.assign([5, 5])
    model.layers[0].units, model.name = 9, "other"
    checkpoint.restore(path).assert_consumed()
    assert (model.layers[0].weights.numpy().tolist(), model.layers[0].units, model.name) == ([1, 1], 2, "model")


def test_what_was_shared_when_it_was_saved_need_not_be_called_the_same(tmp_path: Any) -> None:
    shared = np.arange(3)
    path = Checkpoint(a=shared, b=shared).save(tmp_path / "ckpt")
    other = np.zeros(3, np.int64)
    Checkpoint(b=other).restore(path).assert_consumed()
    assert other.tolist() == [0, 1, 2]


def test_the_parts_of_a_root_have_their_own_names(tmp_path: Any) -> None:
    path = Checkpoint({"w": np.arange(2)}, step=4).save(tmp_path / "ckpt")
    root = SimpleNamespace(w=np.zeros(2, np.int64))
    checkpoint = Checkpoint(root, step=0)
    checkpoint.restore(path).assert_consumed()
    assert (root.w.tolist(), checkpoint.step) == ([0, 1], 4)
    with pytest.raises(ValueError, match="root has a 'w' of its own"):
        Checkpoint(root, w=3)


@dataclasses.dataclass(frozen=True)
class Fixed:
    step: int
    pair: tuple[Any, ...]
    options: Any
    apply: Any = print


def test_what_cannot_be_changed_is_replaced_as_a_whole(tmp_path: Any) -> None:
    array = np.ones(2)
    fixed = Fixed(3, (array, 4.5), MappingProxyType({"a": 1, "b": np.ones(1)}))
    path = Checkpoint(fixed=fixed, again=[fixed]).save(tmp_path / "ckpt")
    array[:] = 0
    other = Fixed(0, (array, 0.0), MappingProxyType({"a": 0, "b": np.zeros(1)}))
    checkpoint: Any = Checkpoint(fixed=other, again=[other])
    checkpoint.restore(path).assert_consumed()
    for found in (checkpoint.fixed, checkpoint.again[0]):
        assert (found.step, found.pair[1], dict(found.options)) == (3, 4.5, {"a": 1, "b": np.ones(1)})
        assert found.pair[0] is array
    assert array.tolist() == [1, 1]
    assert other.step == 0
    with pytest.raises(
        InvalidArgumentError, match=r"'step' can only be replaced.*give that to the checkpoint by a name"
    ):
        Checkpoint(other).restore(Checkpoint(fixed).save(tmp_path / "root"))


def test_the_numbers_of_a_dict_that_is_the_root_are_restored(tmp_path: Any) -> None:
    root = {"step": 3, "w": np.ones(1)}
    path = Checkpoint(root).save(tmp_path / "ckpt")
    root["step"] = 0
    Checkpoint(root).restore(path).assert_consumed()
    assert root["step"] == 3


def test_replicas_do_not_save(tmp_path: Any) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    checkpoint = Checkpoint(a=1)
    for call in (lambda: checkpoint.save(tmp_path / "ckpt"), lambda: checkpoint.restore(tmp_path / "ckpt")):
        with pytest.raises(RuntimeError, match="called inside run, by one replica"):
            strategy.run(call)


def test_a_checkpoint_in_a_checkpoint_is_a_part_of_it(tmp_path: Any) -> None:
    inner = Checkpoint(epoch=3)
    path = Checkpoint(inner=inner).save(tmp_path / "ckpt")
    inner.epoch = 0
    Checkpoint(inner=inner).restore(path).assert_consumed()
    assert inner.epoch == 3


def test_lists_of_numbers_are_restored_whatever_their_length(tmp_path: Any) -> None:
    losses, seen = [0.5, float("inf")], collections.deque([1, 2])
    path = Checkpoint(losses=losses, seen=seen, names={1, 2}).save(tmp_path / "ckpt")
    other: Any = Checkpoint(losses=[], seen=collections.deque([7, 8, 9]), names=set())
    kept = other.losses
    other.restore(path).assert_consumed()
    assert kept is other.losses
    assert (kept, list(other.seen), other.names) == (losses, [1, 2], {1, 2})


def test_generators_of_random_numbers_continue(tmp_path: Any) -> None:
    generators = [np.random.default_rng(1), random.Random(2), np.random.RandomState(3), np.random.MT19937(4)]

    def draw() -> list[Any]:
        one, two, three, four = generators
        return [one.random(), two.random(), three.rand(), int(four.random_raw())]

    checkpoint = Checkpoint(generators=generators)
    draw()
    path = checkpoint.save(tmp_path / "ckpt")
    expected = draw()
    checkpoint.restore(path).assert_consumed()
    assert draw() == expected


def test_an_iterator_continues_in_place_and_in_another_program(tmp_path: Any) -> None:
    def dataset() -> Any:
        return Dataset.range(9).shuffle(9, seed=4)

    iterator = iter(dataset())
    _ = [next(iterator) for _ in range(3)]
    path = Checkpoint(iterator=iterator).save(tmp_path / "ckpt")
    rest = [int(x) for x in iterator]
    for other in (iterator, iter(dataset())):
        Checkpoint(iterator=other).restore(path).assert_consumed()
        assert [int(x) for x in other] == rest


@pytest.mark.parametrize(
    "value, says",
    [
        (Dataset.range(3), r"'thing' is a Dataset.*give its iterator, iter\(dataset\)"),
        (lambda: 3, "'thing' is the function <lambda>.*has no state"),
        (iter([1]), "'thing' is a list_iterator.*position is unknown"),
        (object(), "'thing' is a object.*give Variables, NumPy arrays"),
        ([np.zeros(2), {"deep": open}], "'thing/1/deep' is a builtin_function_or_method"),
        ({(1, 2): np.zeros(2)}, r"has the key \(1, 2\)"),
        ({1: np.zeros(2), "1": np.zeros(2)}, "the keys 1 and '1', which are one name"),
        (di.distribute.PerReplica([1, 2]), "reduce or gather it first"),
    ],
)
def test_what_cannot_be_saved_is_refused_by_name(tmp_path: Any, value: Any, says: str) -> None:
    with pytest.raises(InvalidArgumentError, match=says):
        Checkpoint(thing=value).save(tmp_path / "ckpt")
    assert list(tmp_path.iterdir()) == []


def test_names_of_the_checkpoint_itself_are_refused() -> None:
    for name in ("save", "_hidden", "save_counter"):
        with pytest.raises(ValueError, match=f"the name '{name}' is taken"):
            Checkpoint(**{name: 3})


# ---- what is refused


def test_nothing_is_changed_where_a_shape_or_dtype_differs(tmp_path: Any) -> None:
    path = Checkpoint(a=np.ones(3), b=np.ones(2), n=5).save(tmp_path / "ckpt")
    for b, says in ((np.zeros(4), r"shape \[4\].*shape \[2\]"), (np.zeros(2, "i4"), "dtype int32.*dtype float64")):
        checkpoint = Checkpoint(a=np.zeros(3), b=b, n=0)
        with pytest.raises(InvalidArgumentError, match=f"'b' has .*{says}"):
            checkpoint.restore(path)
        assert (checkpoint.a.tolist(), checkpoint.n, int(checkpoint.save_counter)) == ([0, 0, 0], 0, 0)


def test_nothing_is_changed_where_an_iterator_belongs_to_another_dataset(tmp_path: Any) -> None:
    path = Checkpoint(a=np.ones(3), it=iter(Dataset.range(5))).save(tmp_path / "ckpt")
    checkpoint = Checkpoint(a=np.zeros(3), it=iter(Dataset.range(6)))
    with pytest.raises(StateError, match="another pipeline"):
        checkpoint.restore(path)
    assert checkpoint.a.tolist() == [0, 0, 0]


def test_what_the_other_side_lacks_is_named(tmp_path: Any) -> None:
    path = Checkpoint(a=np.ones(1), old=3).save(tmp_path / "ckpt")
    checkpoint = Checkpoint(a=np.zeros(1), new=4)
    status = checkpoint.restore(path)
    assert (status.missing, status.unused) == (("new",), ("old",))
    with pytest.raises(AssertionError, match="nothing for 'new', and the program has nothing for 'old'"):
        status.assert_consumed()
    with pytest.raises(AssertionError, match="nothing for 'new'"):
        status.assert_existing_objects_matched()
    status.assert_nontrivial_match()
    assert (checkpoint.a.tolist(), checkpoint.new) == ([1], 4)
    with pytest.warns(InputWarning, match="the program has nothing for 'old'"):
        checkpoint.restore(path)
    checkpoint.restore(path).expect_partial()


def test_parts_of_a_container_that_is_still_empty_are_named(tmp_path: Any) -> None:
    path = Checkpoint(slots={"w": np.ones(1)}).save(tmp_path / "ckpt")
    status = Checkpoint(slots={}).restore(path).expect_partial()
    assert isinstance(status, RestoreStatus)
    assert (status.missing, status.unused) == ((), ("slots/w",))


def test_another_kind_of_thing_under_a_name_is_refused(tmp_path: Any) -> None:
    path = Checkpoint(a=np.ones(1)).save(tmp_path / "ckpt")
    with pytest.raises(StateError, match="'a' is of kind 'value' in the program and 'array'"):
        Checkpoint(a=3).restore(path)


def test_a_checkpoint_that_is_not_there_or_damaged_is_an_error(tmp_path: Any) -> None:
    checkpoint = Checkpoint(a=np.ones(1))
    with pytest.raises(NotFoundError, match=r"ckpt-1\.npz"):
        checkpoint.restore(tmp_path / "ckpt-1")
    path = checkpoint.save(tmp_path / "ckpt")
    content = (tmp_path / "ckpt-1.npz").read_bytes()
    (tmp_path / "ckpt-1.npz").write_bytes(content[:-5])
    with pytest.raises(DataLossError, match="damaged or was not written to its end"):
        checkpoint.restore(path)


def test_no_path_restores_nothing() -> None:
    status = Checkpoint(a=3).restore(None)
    assert status.expect_partial() is status
    for check in (status.assert_consumed, status.assert_existing_objects_matched):
        with pytest.raises(AssertionError, match="nothing is being restored"):
            check()


# ---- counting


def test_save_counts_and_write_does_not(tmp_path: Any) -> None:
    checkpoint = Checkpoint(a=np.ones(1))
    paths = [checkpoint.save(tmp_path / "ckpt") for _ in range(2)]
    assert paths == [f"{tmp_path}/ckpt-1", f"{tmp_path}/ckpt-2"]
    assert checkpoint.write(tmp_path / "best") == f"{tmp_path}/best"
    assert latest_checkpoint(tmp_path) == paths[1]
    other = Checkpoint(a=np.zeros(1))
    other.read(tmp_path / "best").assert_consumed()
    assert int(other.save_counter) == 2
    assert other.save(tmp_path / "ckpt") == f"{tmp_path}/ckpt-3"


def test_a_save_that_fails_is_not_counted(tmp_path: Any) -> None:
    checkpoint = Checkpoint(a=object())
    with pytest.raises(InvalidArgumentError):
        checkpoint.save(tmp_path / "ckpt")
    assert int(checkpoint.save_counter) == 0


def test_urls_hold_checkpoints_too() -> None:
    checkpoint = Checkpoint(a=np.ones(3))
    path = checkpoint.save("memory://checkpoints/run/ckpt")
    assert path == "memory://checkpoints/run/ckpt-1" == latest_checkpoint("memory://checkpoints/run")
    checkpoint.a[:] = 0
    checkpoint.restore(path).assert_consumed()
    assert checkpoint.a.tolist() == [1, 1, 1]


# ---- several workers


def test_every_worker_has_its_own_state_and_the_first_worker_has_the_variables(tmp_path: Any) -> None:
    def body(strategy: Any, worker: int) -> Any:
        rng = np.random.default_rng(worker)
        with strategy.scope():
            checkpoint = Checkpoint(rng=rng, same=np.random.default_rng(7), a=np.full(1, float(worker)))
        rng.random()
        path = checkpoint.save(tmp_path / "ckpt")
        expected = rng.random()
        checkpoint.restore(path).assert_consumed()
        return expected == rng.random(), checkpoint.a.tolist()

    assert on_workers([1, 1], body) == [(True, [0.0]), (True, [0.0])]
    assert len(list(tmp_path.glob("*.npz"))) == 1
    entries = {name: di.train.load_variable(tmp_path, name) for name in ("rng", "same")}
    assert isinstance(entries["rng"], list)
    assert isinstance(entries["same"], dict)


def test_workers_need_not_see_the_files_of_the_first_one(tmp_path: Any) -> None:
    def body(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            checkpoint = Checkpoint(a=np.full(3, 5.0))
        path = checkpoint.save(tmp_path / str(worker) / "ckpt")
        checkpoint.a[:] = 0
        checkpoint.restore(path).assert_consumed()
        return checkpoint.a.tolist()

    assert on_workers([1, 1, 1], body) == [[5.0] * 3] * 3
    assert [path.name for path in tmp_path.iterdir()] == ["0"]


def test_workers_that_save_different_things_are_named(tmp_path: Any) -> None:
    def body(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            Checkpoint(a=1, **({"extra": 2} if worker == 1 else {})).save(tmp_path / "ckpt")

    for error in on_workers([1, 1], body):
        assert isinstance(error, FailedPreconditionError)
        assert "only worker 1 has 'extra'" in str(error)
    assert list(tmp_path.iterdir()) == []


def test_workers_that_restore_different_checkpoints_are_named(tmp_path: Any) -> None:
    def body(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            checkpoint = Checkpoint(a=1)
        checkpoint.save(tmp_path / "ckpt")
        path = checkpoint.save(tmp_path / "ckpt")
        try:
            checkpoint.restore(None if worker == 2 else path)
        except FailedPreconditionError as error:
            told = str(error)
        if worker == 1:
            (tmp_path / "1").mkdir()
            Checkpoint(a=1).write(tmp_path / "1" / "ckpt-2")
        strategy.reduce("SUM", np.ones(1), axis=None)
        with pytest.raises(FailedPreconditionError, match="worker 1 sees another checkpoint"):
            checkpoint.restore(tmp_path / "1" / "ckpt-2" if worker == 1 else path)
        return told

    for told in on_workers([1, 1, 1], body):
        assert "worker 2 was given None, worker 0 ckpt-2.npz" in told


def test_an_error_of_the_first_worker_is_raised_on_all(tmp_path: Any) -> None:
    (tmp_path / "file").write_text("")

    def body(strategy: Any, worker: int) -> Any:
        with strategy.scope():
            checkpoint = Checkpoint(a=1)
        with pytest.raises((OSError, di.errors.AbortedError)):
            checkpoint.save(tmp_path / "file" / "ckpt")
        with pytest.raises(NotFoundError):
            checkpoint.restore(tmp_path / "nothing")
        return checkpoint.save(tmp_path / "ckpt")

    assert on_workers([1, 1], body) == [f"{tmp_path}/ckpt-1"] * 2


def test_an_iterator_that_belongs_to_its_workers_goes_on_with_others(tmp_path: Any) -> None:
    for i in range(4):
        (tmp_path / f"{i}.txt").write_text("a\nb\n")

    def words(strategy: Any, steps: Any) -> Any:
        return [part.tolist() for step in steps for part in strategy.experimental_local_results(step)]

    def body(strategy: Any, worker: int) -> Any:
        dataset = Dataset.list_files(f"{tmp_path}/*.txt", shuffle=False).interleave(di.data.TextLineDataset)
        policy = di.data.experimental.AutoShardPolicy.FILE
        iterator = iter(strategy.experimental_distribute_dataset(with_policy(dataset, policy).batch(2)))
        checkpoint = Checkpoint(iterator=iterator)
        if strategy.num_replicas_in_sync == 3:
            checkpoint.restore(tmp_path / "ckpt-1").assert_consumed()
            return words(strategy, iterator)
        next(iterator)
        path = checkpoint.save(tmp_path / "ckpt")
        rest = words(strategy, iterator)
        checkpoint.restore(path).assert_consumed()
        assert words(strategy, iterator) == rest
        return rest

    first = on_workers([1, 1], body)
    assert all(isinstance(rest, list) for rest in first), first
    third = on_workers([1, 1, 1], body)
    assert not any(isinstance(rest, Exception) for rest in third), third
    rows = [[row for rest in found for step in rest for row in step] for found in (first, third)]
    assert sorted(rows[0]) == sorted(rows[1])


@pytest.mark.parametrize(
    "root",
    [
        [np.zeros(1)], (np.zeros(1),), np.zeros(1), {"w": 0}.items(), di.distribute.Variable(1.0), iter(Dataset.range(3)),
        Dataset.range(3), collections.deque([1]), np.random.default_rng(0), 3, print,
    ],
    ids=lambda root: type(root).__name__,
)  # fmt: skip
def test_a_root_without_names_of_its_parts_is_refused(root: Any) -> None:
    """Nothing of it would be saved."""
    with pytest.raises(
        InvalidArgumentError, match=r"root must be a dict or an object whose parts.*Checkpoint.value=value"
    ):
        Checkpoint(root)


def test_a_checkpoint_is_a_root(tmp_path: Any) -> None:
    def made(number: float) -> Any:
        return Checkpoint(Checkpoint(w=np.full(2, number)), step=number)

    path = made(1.0).save(tmp_path / "ckpt")
    other = made(2.0)
    other.restore(path).assert_consumed()
    assert (other._root.w.tolist(), other.step) == ([1, 1], 1)


def test_two_parts_of_one_name_are_refused(tmp_path: Any) -> None:
    with pytest.raises(InvalidArgumentError, match="root has two keys that are the name '1'"):
        Checkpoint({1: np.zeros(1), "1": np.ones(1)})
    checkpoint: Any = Checkpoint(SimpleNamespace(w=np.zeros(1)))
    checkpoint.w = np.ones(1)
    with pytest.raises(InvalidArgumentError, match="root has a 'w' of its own"):
        checkpoint.save(tmp_path / "ckpt")


def test_a_part_of_the_root_that_has_a_keyword_too_is_restored_in_both_places(tmp_path: Any) -> None:
    root = SimpleNamespace(step=3, w=np.zeros(1))
    checkpoint: Any = Checkpoint(root, step=root.step, w=root.w)
    path = checkpoint.save(tmp_path / "ckpt")
    root.step = checkpoint.step = 9
    root.w[:] = 9
    checkpoint.restore(path).assert_consumed()
    assert (root.step, checkpoint.step, root.w.tolist()) == (3, 3, [0])


class Phase(str, enum.Enum):  # noqa: UP042 - of such a one `str` gives the name
    WARM = "warm up"


def test_the_text_of_an_enum_is_saved(tmp_path: Any) -> None:
    checkpoint: Any = Checkpoint(phase=Phase.WARM, past={Phase.WARM: [Phase.WARM]})
    path = checkpoint.save(tmp_path / "ckpt")
    checkpoint.phase = ""
    checkpoint.past.clear()
    checkpoint.restore(path)
    assert (checkpoint.phase, checkpoint.past) == (Phase.WARM, {Phase.WARM: [Phase.WARM]})


@pytest.mark.parametrize("other", [{"a": 1}, collections.deque([1]), {1}])
def test_another_container_is_told_before_anything_is_changed(tmp_path: Any, other: Any) -> None:
    for saved in ([1, 2], float("inf"), (1,)):
        path = Checkpoint(w=np.zeros(1), x=saved).save(tmp_path / "ckpt")
        w = np.ones(1)
        with pytest.raises(InvalidArgumentError, match=r"'x' is a .* in the program and a .* in the checkpoint"):
            Checkpoint(w=w, x=other).restore(path)
        assert w.tolist() == [1]


def test_text_that_is_missing_stays_missing(tmp_path: Any) -> None:
    array = np.array(["a", None], np.dtypes.StringDType(na_object=None))
    checkpoint: Any = Checkpoint(array=array, fixed=array.copy())
    checkpoint.fixed.flags.writeable = False
    path = checkpoint.save(tmp_path / "ckpt")
    array[:] = "b"
    checkpoint.restore(path)
    for found in (array, checkpoint.fixed):
        assert (found.tolist(), found.dtype) == (["a", None], array.dtype)
