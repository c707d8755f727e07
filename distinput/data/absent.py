# SPDX-License-Identifier: Apache-2.0
"""Names of TensorFlow that distinput does not have, and what to write instead."""

from collections.abc import Collection

from distinput.core.meant import meant

__all__ = ["absent"]

CHANGE = "What to change"
LATER = "Not there yet"

_FUNCTIONS = "inside of functions, values are NumPy's: use NumPy", CHANGE
_MODELS = "it has input pipelines and distribution, not models: use those of PyTorch, JAX or Keras", CHANGE
_RANDOM = "draw from a NumPy generator that is seeded by the element", CHANGE
_VARIABLES = "variables are not there yet", LATER
_RAGGED = "use a pyarrow array of lists for ragged rows, and padded_batch to make them even", CHANGE
_CONSTANT = "use np.array with a dtype", CHANGE
_OP = "this op is not there yet", LATER
_FILES = "use pyarrow, or Dataset.from_generator over any reader", LATER
_PIECES = "use map, batch, shuffle and repeat, which are run together where that is quicker", CHANGE

_TABLE: dict[str, dict[str, tuple[str, str]]] = {
    "distinput": {
        "GradientTape": _MODELS,
        "RaggedTensor": _RAGGED,
        "SparseTensor": _RAGGED,
        "Tensor": ("values are NumPy arrays, NumPy scalars and bytes", CHANGE),
        "Variable": _VARIABLES,
        "VariableAggregation": _VARIABLES,
        "VariableSynchronization": _VARIABLES,
        "autograph": ("functions run as plain Python", CHANGE),
        "cast": ("use x.astype(np.float32)", CHANGE),
        "compat": ("only names of TensorFlow 2 are there", LATER),
        "concat": _FUNCTIONS,
        "config": ("devices are named where a strategy is made, threads in data.Options", CHANGE),
        "constant": _CONSTANT,
        "convert_to_tensor": _CONSTANT,
        "debugging": _FUNCTIONS,
        "device": ("a strategy puts values on its devices", CHANGE),
        "equal": _FUNCTIONS,
        "expand_dims": _FUNCTIONS,
        "function": ("functions run as plain Python: leave the decorator out", CHANGE),
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
        "random": _RANDOM,
        "reduce_max": _FUNCTIONS,
        "reduce_mean": _FUNCTIONS,
        "reduce_sum": _FUNCTIONS,
        "reshape": _FUNCTIONS,
        "saved_model": _MODELS,
        "shape": _FUNCTIONS,
        "sparse": _RAGGED,
        "split": _FUNCTIONS,
        "squeeze": _FUNCTIONS,
        "stack": _FUNCTIONS,
        "strings": ("strings are bytes: use their methods, or np.strings", CHANGE),
        "tpu": ("TPUs are not there yet", LATER),
        "train": ("iterators save their state themselves: it.state() and dataset.restore(state)", CHANGE),
        "transpose": _FUNCTIONS,
        "where": _FUNCTIONS,
        "zeros": _FUNCTIONS,
    },
    "distinput.io": {
        "decode_csv": ("use Python's csv module inside of map", LATER),
        "decode_image": ("use Pillow or OpenCV inside of map", CHANGE),
        "decode_jpeg": ("use Pillow or OpenCV inside of map", CHANGE),
        "decode_png": ("use Pillow or OpenCV inside of map", CHANGE),
        "decode_raw": ("use np.frombuffer(x, np.uint8)", CHANGE),
        "gfile": ("use Python's files, or fsspec for remote ones", CHANGE),
        "matching_files": ("use data.Dataset.list_files", CHANGE),
        "parse_tensor": ("use np.load or np.frombuffer", CHANGE),
        "read_file": ("use Path(name).read_bytes(), with name.decode() for a name that is an element", CHANGE),
        "serialize_tensor": ("use np.save or x.tobytes()", CHANGE),
        "write_file": ("use Python's files", CHANGE),
    },
    "distinput.data": {
        "Iterator": ("it is called DatasetIterator", CHANGE),
        "NumpyIterator": ("it is called DatasetIterator", CHANGE),
    },
    "distinput.data.experimental": {
        "Counter": ("use Dataset.range", LATER),
        "CsvDataset": _FILES,
        "SqlDataset": _FILES,
        "TFRecordWriter": ("use distinput.io.TFRecordWriter", CHANGE),
        "bucket_by_sequence_length": ("use Dataset.bucket_by_sequence_length", CHANGE),
        "choose_from_datasets": ("use Dataset.choose_from_datasets", CHANGE),
        "dense_to_ragged_batch": _OP,
        "dense_to_sparse_batch": _OP,
        "enumerate_dataset": ("use Dataset.enumerate", CHANGE),
        "group_by_window": ("use Dataset.group_by_window", CHANGE),
        "load": _OP,
        "make_csv_dataset": _FILES,
        "map_and_batch": _PIECES,
        "prefetch_to_device": ("a strategy puts values on its devices", CHANGE),
        "rejection_resample": _OP,
        "sample_from_datasets": ("use Dataset.sample_from_datasets", CHANGE),
        "save": _OP,
        "scan": ("use Dataset.scan", CHANGE),
        "shuffle_and_repeat": _PIECES,
        "snapshot": _OP,
        "take_while": ("use Dataset.take_while", CHANGE),
        "unbatch": ("use Dataset.unbatch", CHANGE),
        "unique": ("use Dataset.unique", CHANGE),
    },
}


def absent(module: str, name: str, known: Collection[str]) -> str:
    """The error message for a name that a public module does not have.

    Args:
      module: the module's full name.
      name: the missing name.
      known: the names that the module has.

    >>> print(absent("distinput.data", "NumpyIterator", []))
    module 'distinput.data' has no attribute 'NumpyIterator': it is called DatasetIterator ("What to change" in docs/porting.md)
    """
    start = f"module {module!r} has no attribute {name!r}"
    cure = _TABLE.get(module, {}).get(name)
    if cure is not None:
        return f'{start}: {cure[0]} ("{cure[1]}" in docs/porting.md)'
    if name.startswith("__"):  # Python itself looks these up
        return start
    return f"{start}; {meant(name, sorted(known), 'it has')}"
