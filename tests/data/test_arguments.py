# SPDX-License-Identifier: Apache-2.0
"""The arguments of methods: those of TensorFlow, in its order, and what is said where something else is given."""

import inspect
import subprocess
import sys
from collections import Counter, OrderedDict, UserDict
from collections.abc import Callable, MutableMapping
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import distinput as di
from distinput.data.dataset import Arguments
from distinput.plan.node import Node
from tests.patience import PATIENCE

Dataset = di.data.Dataset


def Both(input: "Node", other: "Node", *, name: "str | None" = None) -> Node:  # called as an op is
    raise NotImplementedError


RECORDED = """
apply(transformation_func)
batch(batch_size, drop_remainder=False, num_parallel_calls=None, deterministic=None, name=None)
bucket_by_sequence_length(element_length_func, bucket_boundaries, bucket_batch_sizes, padded_shapes=None, \
padding_values=None, pad_to_bucket_boundary=False, no_padding=False, drop_remainder=False, name=None)
cache(filename='', name=None)
choose_from_datasets(datasets, choice_dataset, stop_on_empty_dataset=True)
concatenate(dataset, name=None)
enumerate(start=0, name=None)
filter(predicate, name=None)
flat_map(map_func, name=None)
from_generator(generator, output_types=None, output_shapes=None, args=None, output_signature=None, name=None)
from_tensor_slices(tensors, name=None)
from_tensors(tensors, name=None)
get_single_element(name=None)
group_by_window(key_func, reduce_func, window_size=None, window_size_func=None, name=None)
ignore_errors(log_warning=False, name=None)
interleave(map_func, cycle_length=None, block_length=None, num_parallel_calls=None, deterministic=None, name=None)
list_files(file_pattern, shuffle=None, seed=None, name=None)
map(map_func, num_parallel_calls=None, deterministic=None, synchronous=None, use_unbounded_threadpool=False, name=None)
padded_batch(batch_size, padded_shapes=None, padding_values=None, drop_remainder=False, name=None)
prefetch(buffer_size, name=None)
rebatch(batch_size, drop_remainder=False, name=None)
reduce(initial_state, reduce_func, name=None)
repeat(count=None, name=None)
sample_from_datasets(datasets, weights=None, seed=None, stop_on_empty_dataset=False, rerandomize_each_iteration=None)
scan(initial_state, scan_func, name=None)
shard(num_shards, index, name=None)
shuffle(buffer_size, seed=None, reshuffle_each_iteration=True, name=None)
skip(count, name=None)
take(count, name=None)
take_while(predicate, name=None)
unbatch(name=None)
unique(name=None)
window(size, shift=None, stride=1, drop_remainder=False, name=None)
with_options(options, name=None)
zip(*args, datasets=None, name=None)
"""
"""What `inspect.signature` says of the methods of `tf.data.Dataset` in TensorFlow 2.21, without `self`."""

OTHER_DEFAULTS = {("shuffle", "reshuffle_each_iteration")}
"""None means True here, so that what was not given does not show in `explain()`."""


@pytest.mark.parametrize("recorded", RECORDED.strip().splitlines())
def test_names_order_and_defaults_are_those_of_tensorflow(recorded: str) -> None:
    op = recorded.split("(")[0]
    theirs = eval(f"lambda {recorded[len(op) + 1 : -1]}: None")  # noqa: S307 - the lines above
    ours = [p for p in inspect.signature(getattr(Dataset, op)).parameters.values() if p.name != "self"]
    wanted = list(inspect.signature(theirs).parameters.values())
    for mine, other in zip(ours, wanted, strict=False):
        assert (mine.name, mine.kind) == (other.name, other.kind)
        assert (op, mine.name) in OTHER_DEFAULTS or mine.default == other.default
    assert len(ours) >= len(wanted)
    assert all(p.kind is inspect.Parameter.KEYWORD_ONLY for p in ours[len(wanted) :])


def test_a_name_can_be_given_by_position() -> None:
    ds = (
        Dataset.range(6)
        .batch(2, True, None, None, "pairs")
        .map(abs, None, None, None, False, "magnitude")
        .take(1, "one")
    )
    assert str(ds.node).startswith("take[one]")
    assert [line.split("(")[0].strip() for line in ds.explain().splitlines()[1:4]] == [
        "take[one]",
        "map[magnitude]",
        "batch[pairs]",
    ]


@pytest.mark.parametrize(
    "wrong, says",
    [
        (
            lambda ds: ds.batch(2, drop_last=True),
            "batch: unexpected argument 'drop_last', did you mean drop_remainder?",
        ),
        (lambda ds: ds.map(fn=abs), "map: unexpected argument 'fn', did you mean map_func?"),
        (lambda ds: ds.filter(function=abs), "filter: unexpected argument 'function', did you mean predicate?"),
        (
            lambda ds: ds.map(abs, num_workers=2),
            "map: unexpected argument 'num_workers', did you mean num_parallel_calls?",
        ),
        (
            lambda ds: ds.shard(num_workers=2, rank=0),
            "shard: unexpected argument 'num_workers', did you mean num_shards?",
        ),
        (lambda ds: ds.shuffle(2, random_state=3), "shuffle: unexpected argument 'random_state', did you mean seed?"),
        (lambda ds: ds.take(n=2), "take: unexpected argument 'n', did you mean count?"),
        (
            lambda ds: ds.batch(2, drop_remaindr=True),
            "batch: unexpected argument 'drop_remaindr', did you mean drop_remain",
        ),
        (lambda ds: ds.unbatch(axis=1), "unbatch: unexpected argument 'axis', it takes name"),
        (lambda ds: ds.concatenate(5), "concatenate: dataset must be a Dataset, got 5; Dataset.from_tensors and "),
        (lambda ds: ds.concatenate(other=ds), "concatenate: unexpected argument 'other', did you mean dataset?"),
        (lambda ds: ds.batch(), "batch: needs batch_size"),
        (lambda ds: ds.shard(), "shard: needs num_shards and index"),
        (lambda ds: ds.batch(2, batch_size=2), "batch: argument 'batch_size' was given twice, by position and by name"),
        (lambda ds: ds.unbatch(1, 2), "unbatch: too many arguments, it takes name by position; got 2"),
        (lambda ds: ds.shuffle(2, drawn_seed=3), "shuffle: unexpected argument 'drawn_seed', "),
    ],
)
def test_a_wrong_argument_is_told_by_the_names_of_the_op(wrong: Callable[[Any], Any], says: str) -> None:
    with pytest.raises(TypeError) as found:
        wrong(Dataset.range(4))
    assert str(found.value).startswith(says)


@pytest.mark.parametrize("hidden", ["claim", "common_cycle", "drawn_seed", "group", "most_bytes", "origin", "store"])
def test_what_belongs_to_the_library_is_no_argument(hidden: str) -> None:
    methods = [getattr(Dataset, name) for name in dir(Dataset) if not name.startswith("_")]
    assert all(hidden not in inspect.signature(each).parameters for each in methods if callable(each))
    with pytest.raises(TypeError, match=f"^shuffle: unexpected argument '{hidden}', it takes buffer_size, seed, "):
        Dataset.range(3).shuffle(2, **{hidden: 1})


def test_an_annotation_may_be_a_string() -> None:
    arguments = Arguments("both", Both)
    assert str(arguments.signature) == "(self, other: 'Dataset', name: 'str | None' = None) -> 'Dataset'"
    assert arguments.by_name((Dataset.range(3),), {})["other"].cardinality == 3


def test_map_takes_what_tensorflow_takes() -> None:
    ds = Dataset.range(3)
    assert ds.map(lambda x: x + 1, synchronous=True).to_list() == [1, 2, 3]
    assert ds.map(lambda x: x + 1, num_parallel_calls=2, use_unbounded_threadpool=True).to_list() == [1, 2, 3]
    with pytest.raises(ValueError, match=r"map: synchronous=True does not go with num_parallel_calls, got .*=2"):
        ds.map(lambda x: x, num_parallel_calls=2, synchronous=True)
    same = lambda x: x  # noqa: E731 - one function, so that the states are of one pipeline
    state = iter(ds.map(same)).state()
    assert [int(x) for x in ds.map(same, synchronous=True).restore(state)] == [0, 1, 2]


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("kind", [np.int8, np.uint8, np.uint16, np.uint64, np.int64])
def test_nothing_computed_from_a_whole_number_of_numpy_overflows(kind: Any) -> None:
    numbers = di.data.Dataset.range(300)
    steps: list[Callable[[Any, Any], di.data.Dataset]] = [
        lambda one, n: numbers.shard(n, one),
        lambda one, n: numbers.window(n, stride=n).flat_map(lambda window: window),
        lambda one, n: numbers.window(n, shift=one, stride=n).flat_map(lambda window: window),
        lambda one, n: numbers.batch(n).shard(n, one).unbatch(),
        lambda one, n: numbers.skip(n).take(n).repeat(n),
    ]
    for step in steps:
        for n in (2, 100):
            assert step(kind(1), kind(n)).to_list() == step(1, n).to_list()


def _without_label(features: MutableMapping[str, Any]) -> None:
    del features["label"]


CHANGED: dict[str, tuple[Callable[[], Any], Callable[[Any], Dataset[Any]], Callable[[Any], Any]]] = {
    "bucket_boundaries": (
        lambda: [3],
        lambda it: _rows().bucket_by_sequence_length(len, it, [2, 2]),
        lambda it: it.__setitem__(0, 1),
    ),
    "bucket_boundaries, an array": (
        lambda: np.array([3]),
        lambda it: _rows().bucket_by_sequence_length(len, it, [2, 2]),
        lambda it: it.__setitem__(0, 1),
    ),
    "bucket_batch_sizes": (
        lambda: [2, 2],
        lambda it: _rows().bucket_by_sequence_length(len, [3], it),
        lambda it: it.__setitem__(0, 1),
    ),
    "features": (
        lambda: {"x": di.io.FixedLenFeature([2], "int64"), "label": di.io.FixedLenFeature([], "int64")},
        lambda it: _record().parse_example(it),
        _without_label,
    ),
    "features, no dict": (
        lambda: UserDict(x=di.io.FixedLenFeature([2], "int64"), label=di.io.FixedLenFeature([], "int64")),
        lambda it: _record().parse_example(it),
        _without_label,
    ),
    "default_value": (
        lambda: [5, 6],
        lambda it: _record().parse_example({"y": di.io.FixedLenFeature([2], "int64", it)}),
        lambda it: it.__setitem__(0, 9),
    ),
    "default_value, an array": (
        lambda: np.array([5, 6]),
        lambda it: _record().parse_example({"y": di.io.FixedLenFeature([2], "int64", it)}),
        lambda it: it.__setitem__(0, 9),
    ),
    "index_key": (
        lambda: ["label"],
        lambda it: _record().parse_example({"y": di.io.SparseFeature(it, "label", "int64", [5])}),
        lambda it: it.append("x"),
    ),
    "size": (
        lambda: [5],
        lambda it: _record().parse_example({"y": di.io.SparseFeature(["label"], "label", "int64", it)}),
        lambda it: it.__setitem__(0, 7),
    ),
    "output_signature": (
        lambda: {"a": (di.TensorSpec([], "int64"),)},
        lambda it: Dataset.range(3).map(lambda x: {"a": (x,)}, output_signature=it),
        lambda it: it.update(b=di.TensorSpec([], "int64")),
    ),
}
"""Of arguments that a program may change afterwards: one, the dataset that it makes, and the change."""


def _rows() -> Dataset[Any]:
    return Dataset.range(6).map(lambda n: np.full(int(n), n))


def _record() -> Dataset[Any]:
    return Dataset.from_tensors(di.io.encode_example({"x": [1, 2], "label": 1}))


@pytest.mark.parametrize("case", CHANGED)
def test_a_list_dict_or_array_that_is_changed_later_changes_no_dataset(case: str) -> None:
    argument, made_with, change = CHANGED[case]
    given = argument()
    dataset = made_with(given)
    change(given)
    assert str(dataset.to_list()) == str(made_with(argument()).to_list())
    assert dataset.element_spec == made_with(argument()).element_spec


class _Frozen(dict[str, Any]):
    def update(self, *_: Any, **__: Any) -> None:
        raise TypeError("frozen")

    __setitem__ = update


class _Single(dict[str, Any]):
    def __copy__(self) -> Any:
        raise TypeError("there is one")


@pytest.mark.parametrize("kind", [dict, OrderedDict, UserDict, Counter, _Frozen, _Single])
def test_a_dict_of_any_class_is_the_argument_as_it_is(kind: Any) -> None:
    rows = Dataset.range(1, 3).map(lambda n: {"a": np.ones(int(n), np.int64)})
    padded = list(rows.padded_batch(2, padding_values=kind({"a": 7}))) if kind is not UserDict else []  # no nest
    assert [batch["a"].tolist() for batch in padded] == [[[1, 7], [1, 1]]][: len(padded)]
    assert str(_record().parse_example(kind({"y": di.io.FixedLenFeature([], "int64", 7)})).to_list()) == "[{'y': 7}]"


def test_a_view_of_a_dict_that_changes_later_is_taken_as_it_is() -> None:
    features: dict[str, Any] = {"label": di.io.FixedLenFeature([], "int64")}
    parsed = _record().parse_example(MappingProxyType(features))
    features["x"] = di.io.FixedLenFeature([2], "int64")
    assert list(parsed.element_spec) == ["label"]
    assert [list(row) for row in parsed.to_list()] == [["label"]]


@pytest.mark.parametrize("kind", [dict, MappingProxyType])
def test_what_replaces_nulls_of_fields_is_taken_as_it_is(kind: Any, tmp_path: Path) -> None:
    path = str(tmp_path / "a.parquet")
    pq.write_table(pa.table({"s": [{"a": 1}, {"a": None}]}), path)
    fields = {"a": 7}
    dataset = di.data.ParquetDataset(path, nulls=kind({"s": kind(fields)}))
    fields["a"] = 9
    assert dataset.to_list() == [{"s": {"a": 1}}, {"s": {"a": 7}}]


def test_what_is_no_dict_and_no_list_of_names_is_told(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^features must be a dict from key to feature, got \['a'\]$"):
        _record().parse_example(["a"])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^write_parquet: columns must be a dict from name to values, got \[1\]$"):
        di.io.write_parquet(str(tmp_path / "a.parquet"), [1])  # type: ignore[arg-type]
    with pytest.raises(
        di.errors.InvalidArgumentError, match=r"^select: columns must be a list of names, got \[\['x'\]\]$"
    ):
        Dataset.from_tensor_slices({"x": [1]}).select([["x"]])  # type: ignore[list-item]
    assert Dataset.from_tensor_slices({1: [5], 2: [6]}).select([1]).to_list() == [{1: 5}]  # type: ignore[list-item]


def test_a_list_or_dict_in_itself_is_refused_by_the_step() -> None:
    around: Any = []
    around.append(around)
    features: dict[str, Any] = {}
    features["a"] = features
    with pytest.raises(TypeError, match=r"^batch: batch_size must be an integer, got \[\[\.\.\.\]\]"):
        Dataset.range(3).batch(around)
    with pytest.raises(di.errors.InvalidArgumentError, match=r"^Invalid feature 'a': .* got a dict"):
        _record().parse_example(features)


IN_ITSELF = """
import sys
import distinput as di

Dataset = di.data.Dataset
sys.setrecursionlimit(60_000)  # as a pipeline of thousands of steps does
items, pair, fields = [], ([],), {}
items.append(items)
pair[0].append(pair)
fields["a"] = fields
for value in (items, pair, fields):
    for make in (
        Dataset.range(3).batch,
        Dataset.range(3).padded_batch,
        Dataset.from_tensors,
        Dataset.from_tensor_slices,
        lambda value: Dataset.from_generator(iter, args=(value,), output_signature=di.TensorSpec([], "int64")).to_list(),
        lambda value: Dataset.range(3).map(lambda x: value).element_spec,
        lambda value: Dataset.range(3).reduce(value, lambda state, x: state),
        lambda value: Dataset.range(3).scan(value, lambda state, x: (state, x)),
        di.data.TextLineDataset,
        Dataset.list_files,
        lambda value: di.io.encode_example({"a": value}),
        lambda value: di.train.Checkpoint(x=value).save(sys.argv[1]),
    ):
        try:
            make(value)
        except (TypeError, di.errors.InvalidArgumentError):
            print("refused")
"""


def test_what_holds_itself_is_refused_wherever_python_follows_many_calls(tmp_path: Path) -> None:
    """It ended the process where a pipeline had needed a higher limit; `from_tensor_slices` never returned."""
    command = [sys.executable, "-c", IN_ITSELF, str(tmp_path / "c")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE, check=True)
    assert done.stdout.split() == ["refused"] * 36


def test_options_that_are_changed_later_are_those_of_the_next_dataset() -> None:
    options = di.data.Options()
    options.deterministic, options.autotune.ram_budget = False, 1 << 20
    dataset = Dataset.range(3).with_options(options)
    options.deterministic, options.autotune.ram_budget = True, 1 << 30
    told = [each.options() for each in (dataset, Dataset.range(3).with_options(options))]
    assert [(each.deterministic, each.autotune.ram_budget) for each in told] == [(False, 1 << 20), (True, 1 << 30)]
