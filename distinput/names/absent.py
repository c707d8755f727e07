# SPDX-License-Identifier: Apache-2.0
"""Names of TensorFlow that distinput does not have, and what to write instead: the one table of them."""

from collections.abc import Collection

from distinput.names.words import CHANGE, EMBEDDING, GRAPHS, declined, meant, told

__all__ = ["absent", "absent_member"]

_FUNCTIONS = "inside of functions, values are NumPy's: use NumPy", CHANGE
_MODELS = "it has input pipelines and distribution, not models: use those of PyTorch, JAX or Keras", CHANGE
_RANDOM = "draw from a NumPy generator that is seeded by the element", CHANGE
_RAGGED = "use the methods of di.RaggedTensor and di.SparseTensor", CHANGE
_PIECES = "use map, batch, shuffle and repeat, which are run together where that is quicker", CHANGE

_IMAGES = "use Pillow or OpenCV inside of map", CHANGE
_PROTO = "use the classes of the protobuf library inside of map", CHANGE
_TABLES = "make a dict of the elements, and use it inside of map", GRAPHS
_VARIANTS = "a dataset is a Python object: pass it on", GRAPHS

_GRAPH_NAMES = "write the name of TensorFlow 2: there are no graphs and sessions", GRAPHS

_TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "distinput": {
        "GradientTape": _MODELS,
        "autograph": ("functions run as plain Python", CHANGE),
        "cast": ("use x.astype(np.float32)", CHANGE),
        "concat": _FUNCTIONS,
        "config": ("devices are named where a strategy is made, threads in data.Options", CHANGE),
        "debugging": _FUNCTIONS,
        "equal": _FUNCTIONS,
        "expand_dims": _FUNCTIONS,
        "gather": _FUNCTIONS,
        "gfile": ("use Python's files, or fsspec for remote ones", CHANGE),
        "image": ("use Pillow or OpenCV inside of map", CHANGE),
        "keras": _MODELS,
        "lookup": ("use a dict inside of map", CHANGE),
        "losses": _MODELS,
        "math": _FUNCTIONS,
        "matmul": _FUNCTIONS,
        "nest": ("elements are plain tuples and dicts", CHANGE),
        "nn": _MODELS,
        "numpy_function": ("call the function itself: map takes any function", CHANGE),
        "one_hot": _FUNCTIONS,
        "ones": _FUNCTIONS,
        "optimizers": _MODELS,
        "print": ("functions run as plain Python: use print", CHANGE),
        "py_function": ("call the function itself: map takes any function", CHANGE),
        "ragged": _RAGGED,
        "reduce_max": _FUNCTIONS,
        "TypeSpec": ("use TensorSpec, RaggedTensorSpec, SparseTensorSpec or data.DatasetSpec", CHANGE),
        "saved_model": _MODELS,
        "shape": _FUNCTIONS,
        "sparse": _RAGGED,
        "split": _FUNCTIONS,
        "squeeze": _FUNCTIONS,
        "stack": _FUNCTIONS,
        "strings": ("strings are bytes: use their methods, or np.strings", CHANGE),
        "transpose": _FUNCTIONS,
        "variable_creator_scope": ("call a function of your own that makes the variables", GRAPHS),
        "where": _FUNCTIONS,
        "zeros": _FUNCTIONS,
    },
    "distinput.compat.v1": {"*": _GRAPH_NAMES},
    "distinput.random": {"*": _RANDOM},
    "distinput.compat.v1.distribute": {"*": _GRAPH_NAMES},
    "distinput.compat.v1.distribute.experimental": {"*": _GRAPH_NAMES},
    "distinput.io": {
        "decode_and_crop_jpeg": _IMAGES,
        "decode_bmp": _IMAGES,
        "decode_gif": _IMAGES,
        "decode_jxl": _IMAGES,
        "decode_proto": _PROTO,
        "decode_webp": _IMAGES,
        "encode_jpeg": _IMAGES,
        "encode_png": _IMAGES,
        "encode_proto": _PROTO,
        "extract_jpeg_shape": _IMAGES,
        "gfile": ("use Python's files, or fsspec for remote ones", CHANGE),
        "is_jpeg": ("use contents.startswith(bytes([255, 216, 255]))", CHANGE),
        "match_filenames_once": ("use io.matching_files, which lists them at once", GRAPHS),
        "write_graph": ("there are no graphs to write: dataset.explain() prints the pipeline", GRAPHS),
    },
    "distinput.data.experimental": {
        "DatasetInitializer": _TABLES,
        "distributed_save": ("write the shard of each worker: the data service does not exist here", GRAPHS),
        "enable_debug_mode": ("functions run as plain Python, step by step: leave it out", GRAPHS),
        "from_variant": _VARIANTS,
        "get_model_proto": ("use iterator.stats(), which says what each step costs", GRAPHS),
        "index_table_from_dataset": _TABLES,
        "make_saveable_from_iterator": ("use train.Checkpoint(iterator=...), or iterator.state()", GRAPHS),
        "service": ("workers share the data without a service: use a strategy, or Dataset.shard", GRAPHS),
        "table_from_dataset": _TABLES,
        "to_variant": _VARIANTS,
    },
    "distinput.tpu.experimental": {
        "embedding": ("keep the table in a di.Variable and look rows up with jax.numpy.take", EMBEDDING),
    },
}


_RUN = "use iter(strategy.experimental_distribute_dataset(dataset))", GRAPHS
_SESSION = "there are no sessions to configure: leave it out", GRAPHS
_UPDATE = "use strategy.extended.update", GRAPHS

_MEMBERS: dict[str, dict[str, tuple[str, str]]] = {
    "Strategy": {
        "colocate_vars_with": ("use strategy.extended.colocate_vars_with", GRAPHS),
        "configure": _SESSION,
        "experimental_run": ("use strategy.run(fn, args=(next(iterator),))", GRAPHS),
        "group": ("calls run at once, so there is no operation to group: leave it out", GRAPHS),
        "make_dataset_iterator": _RUN,
        "make_input_fn_iterator": ("use iter(strategy.distribute_datasets_from_function(input_fn))", GRAPHS),
        "unwrap": ("use strategy.experimental_local_results(value)", GRAPHS),
        "update_config_proto": _SESSION,
    },
    "StrategyExtended": {
        "broadcast_to": ("values that are not distributed reach every replica in run: pass them on", GRAPHS),
        "experimental_between_graph": _SESSION,
        "experimental_make_numpy_dataset": ("use strategy.experimental_make_numpy_dataset", GRAPHS),
        "experimental_run_steps_on_iterator": ("call strategy.run in a loop", GRAPHS),
        "experimental_should_init": _SESSION,
        "non_slot_devices": _UPDATE,
        "read_var": ("use variable.read_value()", GRAPHS),
        "should_checkpoint": ("use cluster_resolver.is_chief", GRAPHS),
        "should_save_summary": ("use cluster_resolver.is_chief", GRAPHS),
        "update_non_slot": _UPDATE,
    },
    "Variable": {
        "SaveSliceInfo": ("checkpoints save sharded variables whole: leave it out", GRAPHS),
        "eval": ("use variable.numpy()", GRAPHS),
        "from_proto": ("use train.Checkpoint", GRAPHS),
        "graph": ("there is no graph: leave it out", GRAPHS),
        "op": ("there is no graph: leave it out", GRAPHS),
        "to_proto": ("use train.Checkpoint", GRAPHS),
    },
}
"""By the name of the class; classes derived from it have the same."""


def absent(module: str, name: str, known: Collection[str]) -> str:
    """The error message for a name that a public module does not have.

    Args:
      module: the module's full name.
      name: the missing name.
      known: the names that the module has.

    >>> print(absent("distinput.data", "Datasets", ["Dataset"]))
    module 'distinput.data' has no attribute 'Datasets'; did you mean Dataset?
    """
    start = f"module {module!r} has no attribute {name!r}"
    cures = _TABLE.get(module, {})
    cure = cures.get(name, cures.get("*"))
    if cure is not None and not name.startswith("__"):
        return f"{start}: {told(cure)}"
    if name.startswith("__"):  # Python itself looks these up
        return start
    return f"{start}; {meant(name, sorted(known), 'it has')}"


def absent_member(cls: type, name: str) -> str:
    """The error message for a member that the objects of a class do not have.

    Args:
      cls: the class.
      name: the missing member.

    >>> import distinput as di
    >>> print(absent_member(di.distribute.MirroredStrategy, "unwrap").partition(": ")[2])
    use strategy.experimental_local_results(value) ("Graph mode" in docs/tensorflow.md)
    """
    return str(declined(cls, name, _MEMBERS))
