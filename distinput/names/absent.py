# SPDX-License-Identifier: Apache-2.0
"""Names of TensorFlow and of other libraries that distinput does not have, and what to write instead: the one place of them."""

from collections.abc import Collection

from distinput.names.words import CHANGE, EMBEDDING, GRAPHS, SERVICE, declined, meant, told

_FUNCTIONS = "inside of functions, values are NumPy's: use NumPy", CHANGE
_MODELS = "it has input pipelines and distribution, not models: use those of PyTorch, JAX or Keras", CHANGE
_RANDOM = "draw from a NumPy generator that is seeded by the element", CHANGE
_RAGGED = "use the methods of di.RaggedTensor and di.SparseTensor", CHANGE
_PIECES = "use map, batch, shuffle and repeat, which are run together where that is quicker", CHANGE

_IMAGES = "use Pillow or OpenCV inside of map", CHANGE
_PROTO = "use the classes of the protobuf library inside of map", CHANGE
_TABLES = "make a dict of the elements, and use it inside of map", GRAPHS
_VARIANTS = "a dataset is a Python object: pass it on", GRAPHS

_DISPATCHER = "start a cluster of Dask's: `dask scheduler`, or distributed.LocalCluster() in the program", SERVICE
_WORKER = "start workers of Dask's: `dask worker ADDRESS`, or distributed.LocalCluster() in the program", SERVICE
_REGISTERED = "no dispatcher keeps datasets: make the dataset in each program, by one function", SERVICE

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
        "distributed_save": ("write the shard of each worker: input workers write no files", SERVICE),
        "enable_debug_mode": ("functions run as plain Python, step by step: leave it out", GRAPHS),
        "from_variant": _VARIANTS,
        "get_model_proto": ("use iterator.stats(), which says what each step costs", GRAPHS),
        "index_table_from_dataset": _TABLES,
        "make_saveable_from_iterator": ("use train.Checkpoint(iterator=...), or iterator.state()", GRAPHS),
        "table_from_dataset": _TABLES,
        "to_variant": _VARIANTS,
    },
    "distinput.data.experimental.service": {
        "DispatchServer": _DISPATCHER,
        "DispatcherConfig": _DISPATCHER,
        "WorkerConfig": _WORKER,
        "WorkerServer": _WORKER,
        "from_dataset_id": _REGISTERED,
        "register_dataset": _REGISTERED,
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


# ----------------------------------------------------------------------------
# What pandas, Ray Data, Hugging Face datasets, PyTorch, Grain, WebDataset and Polars call it.
# ----------------------------------------------------------------------------

_HEAD = "take(5).to_list()"
_COLUMNS = "element_spec"
_VECTORIZED = "batch(n).map(fn), or map(fn, vectorize=True)"
_RENAMED = "map(lambda row: {'new': row['old']})"
_SPLIT = "split(0.8, seed=1), which returns the parts"
_FRAME = "Dataset.from_arrow(frame)"
_TO_TORCH = "interop.torch.Loader(dataset)"
_OF_A_JOB = "a method of what strategy.experimental_distribute_dataset returns; or the command distinput locate"
_REPLAYED = "a method of what strategy.experimental_distribute_dataset returns; or the command distinput replay"
_REDUCE = "reduce(initial, fn)"
_LOOP = "a for loop: a dataset is iterated as it is"
_FILES = "data.FileDataset(pattern)"
_PARQUET = "data.ParquetDataset(files)"
_CSV = "data.CsvDataset(files)"
_JSON = "data.JsonLinesDataset(files)"

_ELSEWHERE: dict[str, str] = {
    # looking at it
    "collect": "to_list()",
    "column_names": _COLUMNS,
    "columns": _COLUMNS,
    "count": "cardinality(), or len(dataset)",
    "describe": "reduce(initial, fn), or the command distinput stats",
    "dtypes": _COLUMNS,
    "features": _COLUMNS,
    "head": _HEAD,
    "iloc": "dataset[i], or skip(n).take(m)",
    "info": _COLUMNS,
    "loc": "filter(predicate), and select(columns)",
    "num_rows": "cardinality(), or len(dataset)",
    "schema": _COLUMNS,
    "shape": "cardinality() and element_spec",
    "show": _HEAD,
    "sample": "global_shuffle(seed=1).take(n)",
    "tail": "skip(n).to_list()",
    "to_numpy": "batch(n) and a for loop: batches are NumPy's",
    # loops
    "iter_batches": "batch(n), and a for loop",
    "iter_rows": _LOOP,
    "iterrows": _LOOP,
    "itertuples": _LOOP,
    "iter_torch_batches": _TO_TORCH,
    "to_torch": _TO_TORCH,
    "to_tf": "as_numpy_iterator()",
    "to_tf_dataset": "as_numpy_iterator()",
    "to_iter_dataset": _LOOP,
    # one element to another
    "add_column": "map(lambda row: {**row, 'new': ...})",
    "apply_async": "map(fn, num_parallel_calls=8)",
    "agg": _REDUCE,
    "aggregate": _REDUCE,
    "cast": "map(lambda row: row.astype(dtype))",
    "collate_fn": "batch(n), or padded_batch(n); then map(fn)",
    "drop": "select(columns), skip(n), or filter(predicate)",
    "drop_columns": "select(columns)",
    "dropna": "filter(predicate), or nulls= of the files",
    "explode": "flat_map(fn), or unbatch()",
    "fillna": "nulls= of the files",
    "groupby": "group_by_window(...)",
    "flatten": "map(fn), whose function gives a flat dict",
    "max": _REDUCE,
    "mean": _REDUCE,
    "min": _REDUCE,
    "map_batches": _VECTORIZED,
    "map_partitions": _VECTORIZED,
    "map_with_index": "enumerate().map(fn)",
    "random_map": "map(fn, rng=True)",
    "remove_columns": "select(columns)",
    "rename": _RENAMED,
    "rename_column": _RENAMED,
    "rename_columns": _RENAMED,
    "select_columns": "select(columns)",
    "set_format": _TO_TORCH,
    "values": "batch(n) and a for loop: batches are NumPy's",
    "std": _REDUCE,
    "sum": _REDUCE,
    "starmap": "map(fn): the components of a tuple are arguments of their own",
    "with_format": _TO_TORCH,
    "with_transform": "map(fn)",
    # order and division
    "drop_duplicates": "unique()",
    "limit": "take(n)",
    "mix": "Dataset.sample_from_datasets(datasets, weights)",
    "random_shuffle": "global_shuffle(seed=1)",
    "randomize_block_order": "global_shuffle(seed=1)",
    "random_split": _SPLIT,
    "repartition": "write(folder, format, shards=n); workers divide the data by themselves",
    "sampler": "global_shuffle(seed=1), or shuffle(buffer_size)",
    "slice": "skip(n).take(m)",
    "sort": "sort before the files are written: a stream has no order to bring about",
    "sort_values": "sort before the files are written: a stream has no order to bring about",
    "split_by_node": "shard_batches(world, rank), or shard(world, rank)",
    "streaming_split": "shard_batches(world, rank)",
    "train_test_split": _SPLIT,
    "union": "concatenate(other)",
    # keeping
    "materialize": "cache(), or write(folder, 'parquet')",
    "persist": "cache()",
    "push_to_hub": "write(folder, 'parquet'), and upload the folder",
    "save_to_disk": "save(folder)",
    "to_csv": "write(folder, 'csv')",
    "to_json": "write(folder, 'jsonl')",
    "to_parquet": "write(folder, 'parquet')",
    "to_tfrecords": "write(folder, 'tfrecord')",
    "write_csv": "write(folder, 'csv')",
    "write_json": "write(folder, 'jsonl')",
    "write_parquet": "write(folder, 'parquet')",
    "state_dict": "iter(dataset).state()",
    "load_state_dict": "restore(state)",
    # which record was it
    "locate": _OF_A_JOB,
    "replay": _REPLAYED,
    "when": _OF_A_JOB,
    "get_state": "iter(dataset).state()",
    "set_state": "restore(state)",
    "num_workers": "map(fn, num_parallel_calls=8), or on_workers('processes:4')",
    "seek": "skip(n)",
    # making one
    "Dataset": "data.Dataset",
    "DataLoader": _TO_TORCH,
    "IterableDataset": "Dataset.from_generator(fn, output_signature=spec)",
    "MapDataset": "Dataset.from_source(sequence)",
    "StreamingDataset": _FILES,
    **dict.fromkeys(("from_delta", "read_delta", "read_deltalake", "scan_delta"), "interop.tables.from_delta(uri)"),
    **dict.fromkeys(("from_iceberg", "read_iceberg", "scan_iceberg"), "interop.tables.from_iceberg(table)"),
    **dict.fromkeys(("from_lance", "read_lance"), "interop.tables.from_lance(uri)"),
    "from_csv": _CSV,
    "from_dict": "Dataset.from_tensor_slices(columns)",
    "from_huggingface": "interop.huggingface.from_hf(dataset)",
    "from_items": "Dataset.from_tensor_slices(items)",
    "from_json": _JSON,
    "from_list": "Dataset.from_tensor_slices(items), or Dataset.from_source(rows)",
    "from_numpy": "Dataset.from_tensor_slices(arrays)",
    "from_pandas": _FRAME,
    "from_parquet": _PARQUET,
    "from_polars": _FRAME,
    "from_text": "data.TextLineDataset(files)",
    "from_torch": "Dataset.from_source(dataset)",
    "from_webdataset": "data.WebDataset(files)",
    "load_dataset": "data.FileDataset(pattern), or interop.huggingface.from_hf(dataset)",
    "load_from_disk": "Dataset.load(folder)",
    "read_csv": _CSV,
    "read_images": "data.ImageFolderDataset(folder)",
    "read_json": _JSON,
    "read_parquet": _PARQUET,
    "read_text": "data.TextLineDataset(files)",
    "read_tfrecords": "data.TFRecordDataset(files)",
    "read_webdataset": "data.WebDataset(files)",
    "source": "Dataset.from_source(sequence)",
}


def elsewhere(name: str) -> str | None:
    """What to write for a name of another library's datasets; None for a name that the table does not have.

    >>> elsewhere("map_batches")
    'here it is batch(n).map(fn), or map(fn, vectorize=True)'
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
    theirs = elsewhere(name) if module in ("distinput", "distinput.data") else None
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
