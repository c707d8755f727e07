# SPDX-License-Identifier: Apache-2.0
"""Programs whose elements are sparse tensors or Optionals, for TensorFlow and for distinput.

`python tests/golden/held_elements.py` records in `held_elements.json` what real TensorFlow (2.21) gives for each: the spec and
the elements, or "error" where it raises one.
"""

import json
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

RECORDED = Path(__file__).with_suffix(".json")


class TensorFlow:
    """What the programs need of a library."""

    def __init__(self) -> None:
        import tensorflow as tf

        self.Dataset, self.experimental, self.Optional = tf.data.Dataset, tf.data.experimental, tf.experimental.Optional
        self.SparseTensor, self.SparseTensorSpec = tf.SparseTensor, tf.SparseTensorSpec
        self.TensorSpec, self.OptionalSpec = tf.TensorSpec, tf.OptionalSpec
        self.distribute, self.int64, self.array = tf.distribute, tf.int64, tf.stack
        self.column = lambda n: tf.range(n)[:, None]
        self.same = lambda n, value: tf.fill([n], value)
        self.either = tf.cond
        self.number = lambda x: tf.cast(x, tf.int32)

    def exact(self, x: Any) -> Any:
        """An element as JSON."""
        if hasattr(x, "dense_shape"):
            return {"sparse": [plain(part.numpy()) for part in (x.indices, x.values, x.dense_shape)]}
        return plain(x.numpy())


def plain(array: Any) -> Any:
    """An array as JSON."""
    found = array if isinstance(array, bytes) else array.tolist()
    if isinstance(found, list):
        return [item.decode() if isinstance(item, bytes) else item for item in found]
    return found.decode() if isinstance(found, bytes) else found


Program = Callable[[Any], Any]


def one(tf: Any) -> Any:
    return tf.SparseTensor([[0, 1], [2, 0]], [7, 8], [3, 2])


def fixed(tf: Any, n: int = 4) -> Any:
    """Vectors of 3, one value each."""
    return tf.Dataset.range(n).map(lambda i: tf.SparseTensor(tf.array([[i % 3]]), tf.array([i]), [3]))


def growing(tf: Any) -> Any:
    """The i-th is a vector of i + 1 with i values."""
    return tf.Dataset.range(4).map(lambda i: tf.SparseTensor(tf.column(i), tf.same(i, i), tf.array([i + 1])))


def given(tf: Any, parts: list[Any], shape: Any) -> Any:
    return tf.Dataset.from_generator(
        lambda: iter([tf.SparseTensor(*part) for part in parts]), output_signature=tf.SparseTensorSpec(shape, "int64")
    )


UNLIKE = [([[0, 1]], [1], [1, 2]), ([[2, 0]], [2], [3, 1])]


def long(tf: Any, parts: list[Any], shape: Any) -> Any:
    """Of int64, which numbers of Python are not."""
    import numpy as np

    return given(tf, [(a, np.array(b, np.int64), c) for a, b, c in parts], shape)


def optionals(tf: Any) -> Any:
    return tf.Dataset.range(4).map(
        lambda x: tf.either(
            x % 2 == 0, lambda: tf.Optional.from_value(x), lambda: tf.Optional.empty(tf.TensorSpec([], "int64"))
        )
    )


def full(tf: Any) -> Any:
    return tf.Dataset.range(4).map(tf.Optional.from_value)


def saved(tf: Any, dataset: Any) -> Any:
    folder = tempfile.mkdtemp() + "/saved"
    dataset.save(folder)
    return tf.Dataset.load(folder)


def steps(tf: Any, dataset: Any, function: bool = False) -> list[Any]:
    strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    if function:
        distributed = strategy.distribute_datasets_from_function(lambda _: dataset)
    else:
        distributed = strategy.experimental_distribute_dataset(dataset)
    return [list(strategy.experimental_local_results(step)) for step in distributed]


SPARSE: dict[str, Program] = {
    "from_tensors": lambda tf: tf.Dataset.from_tensors(one(tf)),
    "from_tensors of a dict": lambda tf: tf.Dataset.from_tensors({"x": one(tf), "y": [1, 2, 3]}).unbatch(),
    "slices": lambda tf: tf.Dataset.from_tensor_slices(one(tf)),
    "slices beside an array": lambda tf: tf.Dataset.from_tensor_slices(([1, 2, 3], one(tf))),
    "slices of unequal parts": lambda tf: tf.Dataset.from_tensor_slices(([1, 2], one(tf))),
    "slices of a vector": lambda tf: tf.Dataset.from_tensor_slices(tf.SparseTensor([[1]], [5], [3])),
    "slices without order": lambda tf: tf.Dataset.from_tensor_slices(tf.SparseTensor([[2, 0], [0, 1]], [7, 8], [3, 2])),
    "slices of three dimensions": lambda tf: tf.Dataset.from_tensor_slices(
        tf.SparseTensor([[0, 1, 1], [1, 0, 0], [1, 0, 2]], ["a", "b", "c"], [2, 2, 3])
    ),
    "map": fixed,
    "map to other sizes": growing,
    "batch": lambda tf: fixed(tf).batch(3),
    "batch of full ones": lambda tf: fixed(tf).batch(3, drop_remainder=True),
    "batch of other sizes": lambda tf: growing(tf).batch(3),
    "batch in parallel": lambda tf: growing(tf).batch(2, num_parallel_calls=2),
    "batch of batches": lambda tf: fixed(tf).batch(2).batch(2),
    "batch of batches of several sizes": lambda tf: fixed(tf).batch(3).batch(2),
    "batch of matrices": lambda tf: long(tf, UNLIKE, [None, None]).batch(2),
    "batch without order": lambda tf: long(tf, [([[2], [0]], [1, 2], [3])] * 2, [3]).batch(2),
    "batch of nothing": lambda tf: fixed(tf).take(0).batch(2),
    "batch of text": lambda tf: tf.Dataset.from_tensors(tf.SparseTensor([[0, 1]], ["a"], [1, 2])).batch(1),
    "batch of a dict": lambda tf: tf.Dataset.zip({"a": tf.Dataset.range(4), "s": growing(tf)}).batch(3),
    "ragged_batch": lambda tf: growing(tf).ragged_batch(2),
    "padded_batch": lambda tf: fixed(tf).padded_batch(2),
    "sparse_batch": lambda tf: fixed(tf).sparse_batch(2, [3]),
    "bucket_by_sequence_length": lambda tf: fixed(tf).bucket_by_sequence_length(
        lambda s: tf.number(s.values[0]), [2], [2, 2]
    ),
    "unique": lambda tf: fixed(tf).unique(),
    "unbatch": lambda tf: fixed(tf).batch(3).unbatch(),
    "unbatch of other sizes": lambda tf: growing(tf).batch(3).unbatch(),
    "unbatch of a vector": lambda tf: fixed(tf).unbatch(),
    "unbatch of matrices": lambda tf: long(tf, UNLIKE, [None, None]).unbatch(),
    "unbatch without order": lambda tf: long(tf, [([[2, 0], [0, 1]], [1, 2], [3, 2])], [3, 2]).unbatch(),
    "unbatch of twice the same place": lambda tf: long(tf, [([[1, 0], [1, 0]], [1, 2], [3, 2])], [3, 2]).unbatch(),
    "unbatch outside of the shape": lambda tf: long(tf, [([[1, 0], [3, 0]], [1, 2], [3, 2])], [3, 2]).unbatch(),
    "unbatch of unequal parts": lambda tf: tf.Dataset.zip((tf.Dataset.range(4).batch(3), fixed(tf).batch(2))).unbatch(),
    "unbatch of a sparse batch": lambda tf: (
        tf.Dataset.range(1, 4).map(lambda n: tf.same(n, n)).sparse_batch(2, [4]).unbatch()
    ),
    "batch of sparse batches": lambda tf: (
        tf.Dataset.range(1, 4).map(lambda n: tf.same(n, n)).sparse_batch(2, [4]).batch(2)
    ),
    "rebatch": lambda tf: fixed(tf).batch(3).rebatch(2),
    "rebatch of other sizes": lambda tf: growing(tf).batch(3).rebatch(2),
    "rebatch of matrices": lambda tf: long(tf, UNLIKE, [None, None]).rebatch(2),
    "rebatch to several sizes": lambda tf: growing(tf).batch(3).rebatch([1, 2]),
    "rebatch to full ones": lambda tf: fixed(tf).batch(2).rebatch(3, drop_remainder=True),
    "cache": lambda tf: growing(tf).cache().repeat(2),
    "cache on disk": lambda tf: growing(tf).batch(3).cache(tempfile.mkdtemp() + "/kept"),
    "snapshot": lambda tf: growing(tf).snapshot(tempfile.mkdtemp()),
    "save and load": lambda tf: saved(tf, fixed(tf)),
    "save and load batches": lambda tf: saved(tf, growing(tf).batch(2)),
    "shuffle": lambda tf: growing(tf).shuffle(1).batch(2),
    "concatenate": lambda tf: fixed(tf).concatenate(growing(tf)),
    "concatenate batches": lambda tf: fixed(tf).batch(2).concatenate(growing(tf).batch(2)).unbatch(),
    "concatenate with an array": lambda tf: fixed(tf).concatenate(tf.Dataset.range(2)),
    "zip": lambda tf: tf.Dataset.zip((growing(tf), tf.Dataset.range(4))).batch(2),
    "enumerate": lambda tf: growing(tf).enumerate(),
    "window": lambda tf: growing(tf).window(2).flat_map(lambda window: window.batch(2)),
    "window of a nest": lambda tf: (
        growing(tf).enumerate().window(2).flat_map(lambda i, window: tf.Dataset.zip((i, window)).batch(2))
    ),
    "flat_map": lambda tf: growing(tf).flat_map(lambda s: tf.Dataset.from_tensors(s.values)),
    "filter": lambda tf: fixed(tf).filter(lambda s: s.values[0] > 1),
    "take and skip": lambda tf: growing(tf).skip(1).take(2).batch(2),
    "shard": lambda tf: growing(tf).shard(2, 1).batch(2),
    "interleave": lambda tf: growing(tf).interleave(
        lambda s: tf.Dataset.from_tensors(s.values).repeat(2), cycle_length=2
    ),
    "choose_from_datasets": lambda tf: tf.Dataset.choose_from_datasets(
        [fixed(tf), growing(tf)], tf.Dataset.range(2)
    ).batch(2),
    "group_by_window": lambda tf: fixed(tf).group_by_window(
        key_func=lambda s: s.values[0] % 2, reduce_func=lambda _, window: window.batch(2), window_size=2
    ),
    "map_and_batch": lambda tf: tf.Dataset.range(3).apply(
        tf.experimental.map_and_batch(lambda i: tf.SparseTensor(tf.column(i), tf.same(i, i), tf.array([i + 1])), 2)
    ),
    "generator of another shape": lambda tf: long(tf, [([[0, 1]], [1], [3, 2])], [None, 3]),
    "generator of any rank": lambda tf: long(tf, [([[0, 1]], [1], [3, 2])] * 2, None).batch(2),
    "generator of two ranks": lambda tf: long(tf, [([[0, 1]], [1], [3, 2]), ([[1]], [1], [3])], None).batch(2),
    "map of batches": lambda tf: growing(tf).batch(2).map(lambda s: s.values),
    "distributed": lambda tf: steps(tf, fixed(tf, 7).batch(4)),
    "distributed other sizes": lambda tf: steps(tf, growing(tf).batch(3)),
    "distributed full batches": lambda tf: steps(tf, fixed(tf, 7).batch(4, drop_remainder=True)),
    "distributed by a function": lambda tf: steps(tf, fixed(tf, 7).batch(4), function=True),
    "distributed vectors": lambda tf: steps(tf, fixed(tf)),
}

OPTIONAL: dict[str, Program] = {
    "from_tensors": lambda tf: tf.Dataset.from_tensors(tf.Optional.from_value(5)),
    "from_tensors of an empty one": lambda tf: tf.Dataset.from_tensors(tf.Optional.empty(tf.TensorSpec([], "int32"))),
    "from_tensors of a nest": lambda tf: tf.Dataset.from_tensors((tf.Optional.from_value(5), {"a": 1})),
    "of a nest": lambda tf: tf.Dataset.from_tensors(tf.Optional.from_value({"a": 1, "b": (2, [3])})),
    "of an Optional": lambda tf: tf.Dataset.from_tensors(tf.Optional.from_value(tf.Optional.from_value(5))),
    "of a sparse tensor": lambda tf: tf.Dataset.from_tensors(tf.Optional.from_value(one(tf))),
    "slices": lambda tf: tf.Dataset.from_tensor_slices(tf.Optional.from_value(5)),
    "slices of a nest": lambda tf: tf.Dataset.from_tensor_slices(([1], tf.Optional.from_value(5))),
    "map": optionals,
    "map in parallel": lambda tf: tf.Dataset.range(3).map(tf.Optional.from_value, num_parallel_calls=2),
    "map to a nest": lambda tf: tf.Dataset.range(2).map(lambda x: {"x": x, "o": tf.Optional.from_value((x, [x, x]))}),
    "map to the value": lambda tf: optionals(tf).filter(lambda o: o.has_value()).map(lambda o: o.get_value()).batch(2),
    "map to a value that is not there": lambda tf: optionals(tf).map(lambda o: o.get_value()),
    "map to a value, and ignore errors": lambda tf: optionals(tf).map(lambda o: o.get_value()).ignore_errors(),
    "batch": lambda tf: full(tf).batch(2),
    "batch of a nest": lambda tf: tf.Dataset.range(2).map(lambda x: (x, tf.Optional.from_value(x))).batch(2),
    "padded_batch": lambda tf: full(tf).padded_batch(2),
    "ragged_batch": lambda tf: full(tf).ragged_batch(2),
    "sparse_batch": lambda tf: full(tf).sparse_batch(2, []),
    "unbatch": lambda tf: full(tf).unbatch(),
    "rebatch": lambda tf: full(tf).rebatch(2),
    "unique": lambda tf: full(tf).unique(),
    "shuffle": lambda tf: optionals(tf).shuffle(1),
    "cache": lambda tf: optionals(tf).cache().repeat(2),
    "cache on disk": lambda tf: optionals(tf).cache(tempfile.mkdtemp() + "/kept"),
    "snapshot": lambda tf: optionals(tf).snapshot(tempfile.mkdtemp()),
    "save and load": lambda tf: saved(tf, optionals(tf)),
    "save and load a nest": lambda tf: saved(
        tf, tf.Dataset.range(2).map(lambda x: {"x": x, "o": tf.Optional.from_value((x, [x, x]))})
    ),
    "concatenate": lambda tf: full(tf).concatenate(optionals(tf)),
    "concatenate another dtype": lambda tf: full(tf).concatenate(tf.Dataset.from_tensors(tf.Optional.from_value(5))),
    "concatenate with an array": lambda tf: full(tf).concatenate(tf.Dataset.range(2)),
    "zip": lambda tf: tf.Dataset.zip((optionals(tf), tf.Dataset.range(4))),
    "enumerate": lambda tf: optionals(tf).enumerate(),
    "window": lambda tf: optionals(tf).window(2).flat_map(lambda window: window.map(lambda o: o.has_value())),
    "flat_map": lambda tf: optionals(tf).flat_map(tf.Dataset.from_tensors),
    "interleave": lambda tf: optionals(tf).interleave(lambda o: tf.Dataset.from_tensors(o).repeat(2), cycle_length=2),
    "take, skip and shard": lambda tf: optionals(tf).skip(1).shard(2, 1).take(1),
    "take_while": lambda tf: optionals(tf).take_while(lambda o: o.has_value()),
    "choose_from_datasets": lambda tf: tf.Dataset.choose_from_datasets(
        [optionals(tf), full(tf)], tf.Dataset.range(2).repeat(2)
    ),
    "group_by_window": lambda tf: full(tf).group_by_window(
        key_func=lambda o: o.get_value() % 2,
        reduce_func=lambda _, window: window.map(lambda o: o.get_value()).batch(2),
        window_size=2,
    ),
    "generator": lambda tf: tf.Dataset.from_generator(
        lambda: iter([tf.Optional.from_value(5), tf.Optional.empty(tf.TensorSpec([], "int32"))]),
        output_signature=tf.OptionalSpec(tf.TensorSpec([], "int32")),
    ),
    "generator of another dtype": lambda tf: tf.Dataset.from_generator(
        lambda: iter([tf.Optional.from_value(5.0)]), output_signature=tf.OptionalSpec(tf.TensorSpec([], "int32"))
    ),
    "carried by scan": lambda tf: tf.Dataset.range(3).scan(
        tf.Optional.empty(tf.TensorSpec([], "int64")), lambda s, x: (tf.Optional.from_value(x), s)
    ),
    "get_next_as_optional": lambda tf: [iter(optionals(tf)).get_next_as_optional().get_value()],
    "distributed": lambda tf: steps(tf, optionals(tf)),
    "distributed by a function": lambda tf: steps(tf, optionals(tf), function=True),
}


def told(tf: Any, program: Program) -> Any:
    """What a program gives, as JSON."""
    try:
        made = program(tf)
        if isinstance(made, list):
            return {"elements": shown(tf, made)}
        return {"spec": spec_text(made.element_spec), "elements": [shown(tf, element) for element in made]}
    except Exception:  # noqa: BLE001 - which error it is differs
        return "error"


def shown(tf: Any, x: Any) -> Any:
    """An element as JSON."""
    if hasattr(x, "has_value"):
        return {"optional": shown(tf, x.get_value())} if x.has_value() else "empty"
    if isinstance(x, dict):
        return {key: shown(tf, value) for key, value in x.items()}
    if isinstance(x, list) or (isinstance(x, tuple) and not hasattr(x, "dense_shape")):
        return [shown(tf, value) for value in x]
    return tf.exact(x)


def spec_text(spec: Any) -> Any:
    """A nest of specs as JSON."""
    if isinstance(spec, dict):
        return {key: spec_text(value) for key, value in spec.items()}
    if isinstance(spec, tuple):
        return [spec_text(value) for value in spec]
    kind = type(spec).__name__
    if kind == "OptionalSpec":
        return {"optional": spec_text(getattr(spec, "element_spec", None) or spec._element_spec)}
    shape = spec.shape
    sizes = None if shape is None or getattr(shape, "rank", 0) is None else list(shape)
    dtype = str(getattr(spec.dtype, "name", spec.dtype))
    return [kind, sizes, "string" if dtype == "object" else dtype]


if __name__ == "__main__":
    library = TensorFlow()
    answers = {
        kind: {name: told(library, program) for name, program in programs.items()}
        for kind, programs in {"sparse": SPARSE, "optional": OPTIONAL}.items()
    }
    lines = [
        f" {json.dumps(kind)}: {{\n"
        + ",\n".join([f"  {json.dumps(k)}: {json.dumps(v)}" for k, v in each.items()])
        + "\n }"
        for kind, each in answers.items()
    ]
    RECORDED.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
