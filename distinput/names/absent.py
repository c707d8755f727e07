# SPDX-License-Identifier: Apache-2.0
"""Names of TensorFlow and of other libraries that distinput does not have, and what to write instead: the one place of them."""

from collections.abc import Collection
from typing import TypeVar

from distinput.names.lazy import placed
from distinput.names.words import CHANGE, EMBEDDING, GRAPHS, SERVICE, Cure, declined, meant, told

# ----------------------------------------------------------------------------
# Names of TensorFlow. Names of one cure stand together, with spaces between them.
# ----------------------------------------------------------------------------

T = TypeVar("T")


def _each(cures: dict[str, T]) -> dict[str, T]:
    """The cure of each name.

    >>> _each({"sort sort_values": "no"})
    {'sort': 'no', 'sort_values': 'no'}
    """
    return {name: cure for names, cure in cures.items() for name in names.split()}


_FUNCTIONS = "inside of functions, values are NumPy's: use NumPy", CHANGE
_MODELS = "it has input pipelines and distribution, not models: use those of PyTorch, JAX or Keras", CHANGE
_IMAGES = "use Pillow or OpenCV inside of map", CHANGE
_TABLES = "make a dict of the elements, and use it inside of map", GRAPHS

_DISPATCHER = "start a cluster of Dask's: `dask scheduler`, or distributed.LocalCluster() in the program", SERVICE
_WORKER = "start workers of Dask's: `dask worker ADDRESS`, or distributed.LocalCluster() in the program", SERVICE
_REGISTERED = "no dispatcher keeps datasets: make the dataset in each program, by one function", SERVICE

_GRAPH_NAMES = "write the name of TensorFlow 2: there are no graphs and sessions", GRAPHS

_CURES: dict[str, dict[str, Cure]] = {
    "distinput": {
        "GradientTape keras losses nn optimizers saved_model": _MODELS,
        "autograph": ("functions run as plain Python", CHANGE),
        "cast": ("use x.astype(np.float32)", CHANGE),
        "concat debugging equal expand_dims gather math matmul one_hot ones reduce_max shape split squeeze": _FUNCTIONS,
        "stack transpose where zeros": _FUNCTIONS,
        "config": ("devices are named where a strategy is made, threads in data.Options", CHANGE),
        "gfile": ("use Python's files, or fsspec for remote ones", CHANGE),
        "image": _IMAGES,
        "lookup": ("use a dict inside of map", CHANGE),
        "nest": ("elements are plain tuples and dicts", CHANGE),
        "numpy_function py_function": ("call the function itself: map takes any function", CHANGE),
        "print": ("functions run as plain Python: use print", CHANGE),
        "ragged sparse": ("use the methods of di.RaggedTensor and di.SparseTensor", CHANGE),
        "TypeSpec": ("use TensorSpec, RaggedTensorSpec, SparseTensorSpec or data.DatasetSpec", CHANGE),
        "strings": ("strings are bytes: use their methods, or np.strings", CHANGE),
        "variable_creator_scope": ("call a function of your own that makes the variables", GRAPHS),
    },
    "distinput.compat.v1": {"*": _GRAPH_NAMES},
    "distinput.random": {"*": ("draw from a NumPy generator that is seeded by the element", CHANGE)},
    "distinput.compat.v1.distribute": {"*": _GRAPH_NAMES},
    "distinput.compat.v1.distribute.experimental": {"*": _GRAPH_NAMES},
    "distinput.io": {
        "decode_and_crop_jpeg decode_bmp decode_gif decode_jxl decode_webp encode_jpeg encode_png": _IMAGES,
        "extract_jpeg_shape": _IMAGES,
        "decode_proto encode_proto": ("use the classes of the protobuf library inside of map", CHANGE),
        "gfile": ("use Python's files, or fsspec for remote ones", CHANGE),
        "is_jpeg": ("use contents.startswith(bytes([255, 216, 255]))", CHANGE),
        "match_filenames_once": ("use io.matching_files, which lists them at once", GRAPHS),
        "write_graph": ("there are no graphs to write: dataset.explain() prints the pipeline", GRAPHS),
    },
    "distinput.data.experimental": {
        "DatasetInitializer index_table_from_dataset table_from_dataset": _TABLES,
        "distributed_save": ("write the shard of each worker: input workers write no files", SERVICE),
        "enable_debug_mode": ("functions run as plain Python, step by step: leave it out", GRAPHS),
        "from_variant to_variant": ("a dataset is a Python object: pass it on", GRAPHS),
        "get_model_proto": ("use iterator.stats(), which says what each step costs", GRAPHS),
        "make_saveable_from_iterator": ("use train.Checkpoint(iterator=...), or iterator.state()", GRAPHS),
    },
    "distinput.data.experimental.service": {
        "DispatchServer DispatcherConfig": _DISPATCHER,
        "WorkerConfig WorkerServer": _WORKER,
        "from_dataset_id register_dataset": _REGISTERED,
    },
    "distinput.tpu.experimental": {
        "embedding": ("keep the table in a di.Variable and look rows up with jax.numpy.take", EMBEDDING),
    },
}
_TABLE = {module: _each(cures) for module, cures in _CURES.items()}

_SESSION = "there are no sessions to configure: leave it out", GRAPHS

_MEMBER_CURES: dict[str, dict[str, Cure]] = {
    "Strategy": {
        "colocate_vars_with": ("use strategy.extended.colocate_vars_with", GRAPHS),
        "configure update_config_proto": _SESSION,
        "experimental_run": ("use strategy.run(fn, args=(next(iterator),))", GRAPHS),
        "group": ("calls run at once, so there is no operation to group: leave it out", GRAPHS),
        "make_dataset_iterator": ("use iter(strategy.experimental_distribute_dataset(dataset))", GRAPHS),
        "make_input_fn_iterator": ("use iter(strategy.distribute_datasets_from_function(input_fn))", GRAPHS),
        "unwrap": ("use strategy.experimental_local_results(value)", GRAPHS),
    },
    "StrategyExtended": {
        "broadcast_to": ("values that are not distributed reach every replica in run: pass them on", GRAPHS),
        "experimental_between_graph experimental_should_init": _SESSION,
        "experimental_make_numpy_dataset": ("use strategy.experimental_make_numpy_dataset", GRAPHS),
        "experimental_run_steps_on_iterator": ("call strategy.run in a loop", GRAPHS),
        "non_slot_devices update_non_slot": ("use strategy.extended.update", GRAPHS),
        "read_var": ("use variable.read_value()", GRAPHS),
        "should_checkpoint should_save_summary": ("use cluster_resolver.is_chief", GRAPHS),
    },
    "Variable": {
        "SaveSliceInfo": ("checkpoints save sharded variables whole: leave it out", GRAPHS),
        "eval": ("use variable.numpy()", GRAPHS),
        "from_proto to_proto": ("use train.Checkpoint", GRAPHS),
        "graph op": ("there is no graph: leave it out", GRAPHS),
    },
}
_MEMBERS = {cls: _each(cures) for cls, cures in _MEMBER_CURES.items()}
"""By the name of the class; classes derived from it have the same."""


# ----------------------------------------------------------------------------
# What pandas, Ray Data, Hugging Face datasets, PyTorch, Grain, WebDataset and Polars call it.
# ----------------------------------------------------------------------------


_ELSEWHERE = _each(
    {
        # looking at it
        "collect take_all": "to_list()",
        "column_names columns dtypes features info schema": "element_spec",
        "count num_rows": "cardinality(), or len(dataset)",
        "describe": "reduce(initial, fn), or the command distinput stats",
        "head show": "take(5).to_list()",
        "iloc": "dataset[i], or skip(n).take(m)",
        "loc": "filter(predicate), and select(columns)",
        "shape": "cardinality() and element_spec",
        "random_sample sample": "global_shuffle(seed=1).take(n)",
        "tail": "skip(n).to_list()",
        "to_numpy values": "batch(n) and a for loop: batches are NumPy's",
        # loops
        "iter_batches take_batch": "batch(n), and a for loop",
        "iter_rows iterrows itertuples to_iter_dataset": "a for loop: a dataset is iterated as it is",
        "iter_torch_batches to_torch set_format with_format DataLoader": "interop.torch.Loader(dataset)",
        "to_tf to_tf_dataset": "as_numpy_iterator()",
        # one element to another
        "add_column with_column": "map(lambda row: {**row, 'new': ...})",
        "apply_async": "map(fn, num_parallel_calls=8)",
        "agg aggregate max mean min std sum": "reduce(initial, fn)",
        "cast": "map(lambda row: row.astype(dtype))",
        "collate_fn": "batch(n), or padded_batch(n); then map(fn)",
        "drop": "select(columns), skip(n), or filter(predicate)",
        "drop_columns remove_columns select_columns": "select(columns)",
        "dropna": "filter(predicate), or nulls= of the files",
        "explode": "flat_map(fn), or unbatch()",
        "fillna": "nulls= of the files",
        "groupby": "reduce(initial, fn) for sums, group_by_window(...) for batches of one key, to_polars() for tables",
        "join merge": "to_polars() or to_pandas(), which join; then Dataset.from_arrow(table)",
        "flatten": "map(fn), whose function gives a flat dict",
        "map_batches map_partitions": "map_rows(fn), or batch(n).map(fn).unbatch()",
        "map_with_index": "enumerate().map(fn)",
        "random_map": "map(fn, rng=True)",
        "rename rename_column rename_columns": "map(lambda row: {'new': row['old']})",
        "starmap": "map(fn): the components of a tuple are arguments of their own",
        "with_transform": "map(fn)",
        # order and division
        "drop_duplicates": "unique()",
        "limit": "take(n)",
        "mix": "Dataset.sample_from_datasets(datasets, weights)",
        "random_shuffle": "global_shuffle(seed=1)",
        "random_split split_proportionately streaming_train_test_split train_test_split": "split(0.8): the parts",
        "repartition": "write(folder, format, shards=n); workers divide the data by themselves",
        "randomize_block_order": "Dataset.list_files(pattern, shuffle=True, seed=1), given to the reader",
        "sampler": "global_shuffle(seed=1), or shuffle(buffer_size)",
        "slice": "skip(n).take(m)",
        "sort sort_values": "sort before the files are written: a stream has no order to bring about",
        "split_at_indices": "take(n), and skip(n)",
        "split_by_node": "shard_batches(world, rank), or shard(world, rank)",
        "streaming_split": "shard_batches(world, rank)",
        "union": "concatenate(other)",
        # keeping
        "materialize": "cache(), or write(folder, 'parquet')",
        "persist": "cache()",
        "push_to_hub": "write(folder, 'parquet'), and upload the folder",
        "save_to_disk": "save(folder)",
        "to_csv write_csv": "write(folder, 'csv')",
        "to_json write_json": "write(folder, 'jsonl')",
        "to_parquet write_parquet": "write(folder, 'parquet')",
        "to_tfrecords write_tfrecords": "write(folder, 'tfrecord')",
        "write_webdataset": "write(folder, 'tar')",
        "state state_dict get_state": "iter(dataset).state()",
        "load_state_dict set_state": "restore(state)",
        # which record was it
        "locate when": "a method of what strategy.experimental_distribute_dataset returns; or the command distinput locate",
        "replay": "a method of what strategy.experimental_distribute_dataset returns; or the command distinput replay",
        "num_workers": "map(fn, num_parallel_calls=8), or on_workers('processes:4')",
        "seek": "skip(n)",
        # making one
        "Dataset": "data.Dataset",
        "IterableDataset": "Dataset.from_generator(fn, output_signature=spec)",
        "MapDataset source": "Dataset.from_source(sequence)",
        "StreamingDataset": "data.FileDataset(pattern)",
        "from_delta read_delta read_deltalake scan_delta": "interop.tables.from_delta(uri)",
        "from_iceberg read_iceberg scan_iceberg": "interop.tables.from_iceberg(table)",
        "from_lance read_lance": "interop.tables.from_lance(uri)",
        "from_csv read_csv": "data.CsvDataset(files)",
        "from_dict": "Dataset.from_tensor_slices(columns)",
        "from_huggingface": "interop.huggingface.from_hf(dataset)",
        "from_json read_json": "data.JsonLinesDataset(files)",
        "from_items from_list": "Dataset.from_tensor_slices(items), or Dataset.from_source(rows)",
        "from_numpy": "Dataset.from_tensor_slices(arrays)",
        "from_pandas from_polars": "Dataset.from_arrow(frame)",
        "from_parquet read_parquet": "data.ParquetDataset(files)",
        "from_text read_text": "data.TextLineDataset(files)",
        "from_torch": "Dataset.from_source(dataset)",
        "from_webdataset read_webdataset": "data.WebDataset(files)",
        "load_dataset": "data.FileDataset(pattern), or interop.huggingface.from_hf(dataset)",
        "load_from_disk": "Dataset.load(folder)",
        "read_images": "data.ImageFolderDataset(folder)",
        "read_numpy": "data.NpyDataset(files)",
        "read_sql": "Dataset.from_sql(query, connect)",
        "read_tfrecords": "data.TFRecordDataset(files)",
    }
)


def elsewhere(name: str) -> str | None:
    """What to write for a name of another library's datasets; None for a name that the table does not have.

    >>> elsewhere("map_batches")
    'here it is map_rows(fn), or batch(n).map(fn).unbatch()'
    """
    ours = _ELSEWHERE.get(name)
    return None if ours is None else f"here it is {ours}"


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
    here = module in ("distinput", "distinput.data")
    if here and hasattr(placed("distinput.data.dataset:Dataset"), name):
        return f"{start}; it is a method of data.Dataset"
    theirs = elsewhere(name) if here else None
    return f"{start}; {theirs or meant(name, sorted(known), 'it has')}"


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
