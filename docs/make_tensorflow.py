# SPDX-License-Identifier: Apache-2.0
"""Writes the names in docs/tensorflow.md: each of `tf.data`, `tf.io` and `tf.errors`, and whether it is the same here.

python docs/make_tensorflow.py            write the end of the page anew
python docs/make_tensorflow.py --check    say whether the page is up to date

The names are those that `tests/tensorflow_names` compares with TensorFlow's signatures. What is declined, and why, is what the
library itself says to someone who asks for it. What differs is said here.
"""

import inspect
import json
import sys
from pathlib import Path
from typing import Any

import distinput

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "tensorflow.md"
MARK = "<!-- names: from here on docs/make_tensorflow.py writes -->"
FACTS = json.loads((ROOT / "tests" / "tensorflow_names" / "tensorflow_data_2_21.json").read_text(encoding="utf-8"))

_FILES = "files of distinput's own, written completely or not at all; TensorFlow's are not read"
_ORDER = (
    "the order for a seed is not TensorFlow's: it is a function of seed, pass and position, on any number of threads"
)
_RAGGED = "a `VarLenFeature` gives a `RaggedTensor`, which has the attributes of TensorFlow's `SparseTensor` as well"
_HOST = "for CPUs alone, where elements are anyway; a strategy puts elements on other devices, and the message says so"
_PIXELS = "decoded by simplejpeg or Pillow, which must be installed"
_MADE = "takes a message alone: users catch errors, and do not make them"

DIFFERS = {
    "OptionalSpec": "a dataclass of the spec of the value",
    "RaggedTensorSpec": "row splits are int64; the rank must be known; no `flat_values_spec`",
    "TensorSpec": "dtypes are NumPy's; `shape` is None for an unknown rank",
    "TensorSpec.is_compatible_with": "NumPy's arrays, numbers and text are values, too",
    "data.Dataset": "elements are NumPy's arrays and scalars, and bytes; specs of what functions return may leave more open",
    "data.Dataset.as_numpy_iterator": "an iterator as `iter` gives it, since elements are NumPy's already",
    "data.Dataset.cache": f"a file name stands for {_FILES}; processes share them",
    "data.Dataset.counter": "floats are computed from their position, so that errors of rounding do not add up; no bfloat16",
    "data.Dataset.choose_from_datasets": "the cardinality is infinite only where elements do not end",
    "data.Dataset.fingerprint": "another number; it also changes when a file does",
    "data.Dataset.from_generator": "`copy=False` promises that arrays are not changed after they were yielded",
    "data.Dataset.from_tensor_slices": "also takes tables, Arrow arrays, ragged tensors, and lists of datasets",
    "io.FixedLenFeature": "a scalar is also the default of features with several values",
    "data.Dataset.list_files": f"also braces, lists and folders; {_ORDER}",
    "data.Dataset.load": f"reads what `save` of distinput wrote: {_FILES}",
    "data.Dataset.map": "functions run as plain Python on NumPy values, nothing is traced; what they return is found by trying",
    "data.Dataset.random": "other numbers of the same distribution: a function of seed, pass and position",
    "data.Dataset.ragged_batch": "row splits are int64, whatever `row_splits_dtype` is",
    "data.Dataset.rejection_resample": "no element comes twice, and others stay for a seed (ADR 0054)",
    "data.Dataset.sample_from_datasets": "other draws for a seed: a function of seed, pass and position; also `balanced`",
    "data.Dataset.save": f"writes {_FILES}",
    "data.Dataset.shuffle": _ORDER,
    "data.Dataset.snapshot": f"keeps {_FILES}",
    "data.Dataset.sparse_batch": "gives `di.SparseTensor`, a namedtuple of three arrays; -1 in `row_shape` is None",
    "data.Iterator": "another name of `DatasetIterator`, whose position can be saved with `state()`",
    "data.IteratorSpec": "a dataclass of the spec of the elements",
    "data.NumpyIterator": "`save` gives bytes, which other processes restore as well",
    "data.Options": "`autotune_algorithm`, `initial_parallelism`, `min_parallelism`, `experimental_service` and "
    "`experimental_external_state_policy` are accepted; `run_ahead`, `memory_budget` and `on_error` are its own",
    "data.TFRecordDataset": "checksums are always checked; also more codecs, `index` and remote files",
    "data.TextLineDataset": "a carriage return inside of a line stays; also more codecs, `index` and remote files",
    "data.FixedLengthRecordDataset": "also more codecs and remote files",
    "data.experimental.AutotuneAlgorithm": "accepted: AUTOTUNE here has one way to choose",
    "data.experimental.AutotuneOptions": "`autotune_algorithm`, `initial_parallelism` and `min_parallelism` are accepted",
    "data.experimental.CsvDataset": "also remote files; every element has its position, from which a job continues; "
    "a default of 1 is an integer, where TensorFlow takes it for the number of a dtype",
    "data.experimental.ExternalStatePolicy": "accepted: states hold all that later elements depend on",
    "data.experimental.RandomDataset": "as `Dataset.random`",
    "data.experimental.ServiceOptions": "accepted: it changes nothing",
    "data.experimental.SqlDataset": "values that do not fit, and NULL but among floats, are errors; TensorFlow makes 0 of them",
    "data.experimental.TFRecordWriter": "the file appears under its name once it is complete",
    "data.experimental.at": "negative positions are OutOfRangeError as well, `dataset[i]` has them; "
    "also of `enumerate`, `padded_batch` and `unbatch`; behind `shuffle` in the order of a pass",
    "data.experimental.choose_from_datasets": "as `Dataset.choose_from_datasets`",
    "data.experimental.copy_to_device": _HOST,
    "data.experimental.dense_to_sparse_batch": "as `Dataset.sparse_batch`",
    "data.experimental.group_by_reducer": "keys may be integers of any dtype",
    "data.experimental.load": "as `Dataset.load`",
    "data.experimental.make_batched_features_dataset": f"{_RAGGED}; {_ORDER}",
    "data.experimental.make_csv_dataset": _ORDER,
    "data.experimental.pad_to_cardinality": "a `mask_key` that elements have already is refused, where TensorFlow replaces it",
    "data.experimental.parallel_interleave": "the order is that of `interleave`",
    "data.experimental.parse_example_dataset": _RAGGED,
    "data.experimental.prefetch_to_device": _HOST,
    "data.experimental.rejection_resample": "as `Dataset.rejection_resample`",
    "data.experimental.sample_from_datasets": "as `Dataset.sample_from_datasets`",
    "data.experimental.save": "as `Dataset.save`",
    "data.experimental.service": "over `on_workers`; the next section has its names",
    "data.experimental.service.CrossTrainerCache": "jobs share whatever their ids are",
    "data.experimental.service.ShardingPolicy": "each policy but OFF delivers each element once, in the order without workers",
    "data.experimental.service.distribute": "exact order and states; `job_name` alone needs a Dask cluster or an executor; "
    "`service` is that of `on_workers`",
    "data.experimental.shuffle_and_repeat": _ORDER,
    "data.experimental.snapshot": "as `Dataset.snapshot`",
    "io.RaggedFeature": "row splits are int64; partitions that do not fit the values are an error always; not in sequences",
    "io.TFRecordOptions": "the knobs of zlib, but the level, are accepted; also more codecs",
    "io.TFRecordWriter": "the file appears under its name once it is complete; also `index`",
    "io.decode_compressed": "a string that becomes larger than 1 GiB, or ends in the middle, is an error",
    "io.decode_csv": "runs in Python, a record at a time, `CsvDataset` reads files by compiled code; "
    "what is wrong behind `select_cols` is an error as well",
    "io.decode_image": _PIXELS,
    "io.decode_jpeg": _PIXELS,
    "io.decode_json_example": "runs in Python",
    "io.decode_png": _PIXELS,
    "io.matching_files": "remote files as well",
    "io.parse_example": _RAGGED,
    "io.parse_sequence_example": f"{_RAGGED}; each step must have as many values as the shape says, TensorFlow compares sums",
    "io.parse_single_example": "a `VarLenFeature` gives an array",
    "io.parse_single_sequence_example": "as `io.parse_sequence_example`; what is no message is an error always",
    "io.parse_tensor": "a message that leaves more than 256 MiB to be filled with its last value is an error; no bfloat16",
    "io.read_file": "remote files as well",
    "io.serialize_tensor": "no bfloat16",
    "io.write_file": "the file appears under its name once it is complete",
}
"""How a name that is there differs from TensorFlow's, and why."""

SECTIONS = (
    ("tf.data", "data.", "Names of the module."),
    ("tf.data.Dataset", "data.Dataset.", "Its members. Each takes TensorFlow's arguments, in TensorFlow's order."),
    ("tf.data.experimental", "data.experimental.", "Names of the module."),
    ("tf.data.experimental.service", "data.experimental.service.", "Names of the module."),
    ("tf.io", "io.", "Names of the module."),
    ("Specs", "", "What describes elements."),
    ("tf.errors", "errors.", f"Each error is also the Python error that is nearest to it, and {_MADE}."),
)


def find(path: str) -> Any:
    """What has this name here, or the error that says why nothing has it."""
    value: Any = distinput
    for part in path.split("."):
        try:
            value = getattr(value, part)
        except AttributeError as error:
            return error
    return value


def names_of(prefix: str) -> list[str]:
    """The names of a section."""
    if prefix == "data.Dataset.":
        return [f"{prefix}{member}" for member in FACTS["names"]["data.Dataset"]["members"].split()]
    if not prefix:
        return [name for name in FACTS["names"] if "." not in name]
    return [name for name in FACTS["names"] if name.startswith(prefix) and "." not in name.removeprefix(prefix)]


def further(name: str, value: Any) -> list[str]:
    """The arguments of ours that TensorFlow's has not."""
    facts = FACTS["methods"].get(name) or FACTS["names"].get(name, {}).get("arguments")
    if facts is None or not callable(value) or (isinstance(value, type) and issubclass(value, Exception)):
        return []
    theirs = {argument.partition("=")[0].lstrip("*") for argument in facts.split()}
    if "kwargs" in theirs or "variant_tensor" in theirs:
        return []
    try:
        ours = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        return []
    return [one.name for one in ours if one.name not in theirs and one.name not in ("self", "cls", "args", "plan")]


def said(name: str) -> str:
    """What the page says of a name."""
    value = find(name)
    if isinstance(value, AttributeError):
        return f"declined: {str(value).partition(': ')[2].partition(' (')[0]}"
    more = further(name, value)
    also = f"also takes {', '.join(f'`{each}`' for each in more)}" if more and name != "data.Iterator" else ""
    if name in DIFFERS:
        return "differs: " + "; ".join([DIFFERS[name], *([also] if also else [])])
    return f"same; {also}" if also else "same"


def declined_members() -> list[tuple[str, str]]:
    """Members of classes that are not there, and why."""
    rows = []
    for name, facts in FACTS["names"].items():
        cls = find(name)
        if name.startswith("errors.") or not isinstance(cls, type):
            continue
        for member in facts.get("members", "").split():
            try:
                getattr(object.__new__(cls), member)
            except AttributeError as error:
                text = str(error)
                if ": " in text and " (" in text:  # what an object has only once it is made says no more than that
                    rows.append((f"{name}.{member}", text.partition(": ")[2].partition(" (")[0]))
            except Exception:  # noqa: BLE001 - it is there, and needs an object that was made
                continue
    return rows


def written() -> str:
    """The page: what is written by hand as it is, and the names behind the mark."""
    before, mark, _ = PAGE.read_text(encoding="utf-8").partition(MARK)
    lines = [
        f"{before}{mark}",
        "",
        "Every public name of `tf.data`, `tf.data.experimental`, `tf.io` and `tf.errors` of TensorFlow 2.21, and what is here",
        "under the same name: *same* (it takes TensorFlow's arguments and gives its values), *differs* (how, and why), or",
        "*declined* (what to write instead; asking for the name says so, too). Names of `tf.distribute` are compared in",
        "`tests/tensorflow_names`. What distinput has beyond TensorFlow is in the [reference](reference.md).",
        "",
        "`python docs/make_tensorflow.py` writes this list from the library and from TensorFlow's signatures, which",
        "`tests/tensorflow_names` holds the library to.",
    ]
    for title, prefix, about in SECTIONS:
        rows = [(name, said(name)) for name in names_of(prefix)]
        counts = [sum(text.startswith(word) for _, text in rows) for word in ("same", "differs", "declined")]
        lines += [
            "",
            f"### {title}",
            "",
            f"{about} {counts[0]} are the same, {counts[1]} differ, {counts[2]} are declined.",
            "",
        ]
        lines += ["| name | here |", "|---|---|"]
        lines += [f"| `{name.removeprefix(prefix)}` | {text} |" for name, text in rows]
    lines += ["", "### Members", "", "Members of other classes are there, but for these.", ""]
    lines += ["| class | members that are declined | instead |", "|---|---|---|"]
    grouped: dict[tuple[str, str], list[str]] = {}
    for name, text in declined_members():
        cls, _, member = name.rpartition(".")
        grouped.setdefault((cls, text), []).append(f"`{member}`")
    lines += [f"| `{cls}` | {', '.join(members)} | {text} |" for (cls, text), members in grouped.items()]
    return "\n".join(lines) + "\n"


def main() -> int:
    """Write the page, or compare it."""
    text = written()
    if "--check" in sys.argv[1:]:
        if PAGE.read_text(encoding="utf-8") == text:
            return 0
        print(f"{PAGE.name} is not up to date; run python docs/make_tensorflow.py")
        return 1
    PAGE.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
