# SPDX-License-Identifier: Apache-2.0
"""Words for people: names that are declined or were meant, quantities, HTML, and cures for errors of functions."""

import re
from collections.abc import Collection
from typing import Any

from distinput.names.lazy import placed

# ----------------------------------------------------------------------------
# What is said of names of TensorFlow that are not there: sections of the documentation, and members of classes.
# ----------------------------------------------------------------------------


Cure = tuple[str, str]
"""What to do instead, and the section of the documentation that says more."""

CHANGE = "What to change"
EMBEDDING = "TPU embedding"
GRAPHS = "Graph mode"
SERVICE = "The data service"

PAGE = "docs/tensorflow.md"
"""The page that has these sections."""

_TRACED = "there are no graphs through which a spec takes values apart: leave it out", GRAPHS
_PROTO = "a spec is a Python object: pickle it, or print it", GRAPHS

MEMBERS: dict[str, dict[str, Cure]] = {
    "TypeSpec": {
        **dict.fromkeys(("cast", "flatten", "from_tensors", "placeholder_value", "to_tensors"), _TRACED),
        **dict.fromkeys(("experimental_as_proto", "experimental_from_proto", "experimental_type_proto"), _PROTO),
    },
}
"""By the name of the class; classes derived from it have the same. Those of `distribute` are in `names/absent.py`."""


def told(cure: Cure) -> str:
    """What to do instead, with the page that says more.

    >>> told(("use NumPy", CHANGE))
    'use NumPy ("What to change" in docs/tensorflow.md)'
    """
    what, section = cure
    return f'{what} ("{section}" in {PAGE})'


def declined(cls: type, name: str, members: dict[str, dict[str, Cure]] = MEMBERS) -> AttributeError:
    """The error for a member that the objects of a class do not have.

    Args:
      cls: the class.
      name: the missing member.
      members: the table of those that have a reason.
    """
    start = f"{cls.__name__!r} object has no attribute {name!r}"
    for base in cls.__mro__:
        cure: Any = members.get(base.__name__, {}).get(name)
        if cure is not None:
            return AttributeError(f"{start}: {told(cure)}")
    return AttributeError(start)


# ----------------------------------------------------------------------------
# What is said about an unknown name: the known name that was probably meant, or all of them.
# ----------------------------------------------------------------------------


_ALIKE = 0.6
"""How similar a known name must be to be suggested."""


def meant(name: str, known: Collection[str], they: str) -> str:
    """A suggestion for a name that is not known.

    Args:
      name: what was written.
      known: the names that exist.
      they: what goes before the list of them where none is similar.

    >>> meant("deterministc", ["deterministic", "threading"], "it has")
    'did you mean deterministic?'
    >>> meant("CSVDataset", ["CsvDataset", "Dataset"], "it has")
    'did you mean CsvDataset?'
    >>> meant("threads", ["deterministic"], "it has")
    'it has deterministic'
    """
    from difflib import get_close_matches  # for messages alone

    near = [each for each in known if each.lower() == name.lower()] or get_close_matches(name, known, 1, _ALIKE)
    return f"did you mean {near[0]}?" if near else f"{they} {', '.join(known)}"


def shown(value: Any, most: int = 60) -> str:
    """The `repr` of a value for a message, cut where it is longer than `most`.

    >>> shown(b"a"), shown("x" * 99, 9), shown(10**9999)
    ("b'a'", "'xxxxx...", 'a very long number')
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the message is about something else; Python prints no integer of very many digits
        text = "a very long number" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 3]}..."


# ----------------------------------------------------------------------------
# HTML of values: what draws it is on a floor above, which is imported when something is drawn and not before.
# ----------------------------------------------------------------------------


KINDS = {
    "dataset": "notebook:dataset_html",
    "distributed": "notebook:distributed_html",
    "plan": "notebook:plan_html",
    "recording": "html:page",
    "stats": "notebook:stats_html",
    "values": "notebook:values_html",
}
"""Kinds of values, and the functions of `distinput.reports` that draw them."""


def html(kind: str, *given: Any) -> str:
    """Draw a value of this kind."""
    drawn: str = placed(f"distinput.reports.{KINDS[kind]}")(*given)
    return drawn


# ----------------------------------------------------------------------------
# Seconds, bytes and numbers as people read them.
# ----------------------------------------------------------------------------


def seconds_text(seconds: float) -> str:
    """A time with about three digits.

    >>> [seconds_text(s) for s in (0, 0.0000042, 0.0123, 1.234, 75, 4000)]
    ['0 s', '4.2 µs', '12.3 ms', '1.23 s', '1 min 15 s', '1 h 6 min']
    """
    if seconds >= 3600:
        return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
    if seconds >= 59.995:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs" if seconds > 0 else "0 s"


def bytes_text(count: float) -> str:
    """A number of bytes with about three digits.

    >>> [bytes_text(n) for n in (0, 812, 5_000, 12_345_678, 3 << 30)]
    ['0 B', '812 B', '4.88 KiB', '11.8 MiB', '3 GiB']
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def number_text(value: float) -> str:
    """A number with commas, and with about three digits if it is not whole.

    >>> [number_text(x) for x in (12, 1234567, 0.12345, 4321.6)]
    ['12', '1,234,567', '0.123', '4,322']
    """
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"


def count_of(number: int, one: str, many: str | None = None) -> str:
    """A number with the noun it counts.

    >>> count_of(1, "pass", "passes"), count_of(1200, "step")
    ('1 pass', '1,200 steps')
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"


# ----------------------------------------------------------------------------
# What is said about an unknown argument: that of other libraries for which it was probably meant.
# ----------------------------------------------------------------------------


_ARGUMENTS: dict[str, tuple[str, ...]] = {
    "batch_size": ("bucket_batch_sizes",),
    "bufsize prefetch_factor": ("buffer_size",),
    "columns": ("members",),
    "concurrency max_workers num_proc num_threads workers": ("num_parallel_calls",),
    "dataset": ("datasets",),
    "delimiter sep": ("field_delim",),
    "drop_last drop_last_batch": ("drop_remainder",),
    "ds other": ("dataset",),
    "dtype dtypes types": ("schema",),
    "element_spec": ("output_signature",),
    "epochs num_epochs times": ("count",),
    "f fn func function": ("map_func", "predicate", "scan_func", "reduce_func"),
    "expr filter_fn": ("predicate",),
    "map_fn": ("map_func",),
    "n": ("count", "buffer_size", "batch_size", "size"),
    "na_values": ("null_values",),
    "num_replicas world_size": ("num_shards",),
    "num_workers": ("num_shards", "num_parallel_calls"),
    "ordered": ("deterministic",),
    "pad_value": ("padding_values",),
    "path": ("filename",),
    "random_state": ("seed",),
    "rank": ("index",),
    "reshuffle": ("reshuffle_each_iteration",),
    "size": ("batch_size", "buffer_size", "count"),
    "step": ("shift", "stride"),
    "usecols": ("columns",),
}
"""Arguments of PyTorch, Hugging Face datasets, Grain and the like, and their likely counterparts here, best first.

Names with the same ones stand together, with spaces between them.
"""

_STEPS = {
    "batch_format": "it is not needed: a batch is a dict of NumPy arrays, of which the function may make a table",
    "batch_size": "here it is .batch(n) behind it",
    "batched": "here it is .batch(n) before it",
    "encoding": "here it is .map(fn) behind it, with text.decode(encoding) in the function",
    "filters": "here it is .filter(expression) behind it",
    "lines": "it is not needed: each line is a record",
    "names": "here it is column_names=, and header=False where the files have no header",
    "nrows": "here it is .take(n) behind it",
    "num_gpus": "steps run on the CPU: use the model in the loop over the batches",
    "parse_dates": "here it is schema={column: 'datetime64[s]'}",
    "shuffle": "here it is .shuffle(n) behind it",
    "skiprows": "here it is .skip(n) behind it",
    "streaming": "it is not needed: files are read as they are used",
    "transform": "here it is .map(fn) behind it",
}
"""Arguments of others that are a step of its own here, or not needed."""

_OURS = re.compile(r"(\w+)=[^=]")
"""An argument in what is said."""


def likely(name: str, known: Collection[str]) -> str:
    """What to write for an argument that is not known.

    Args:
      name: of the argument.
      known: those that there are.

    >>> likely("num_proc", ["num_parallel_calls"]), likely("filters", ["filenames"])
    ('did you mean num_parallel_calls?', 'here it is .filter(expression) behind it')
    """
    there = next((there for names, there in _ARGUMENTS.items() if name in names.split()), ())
    ours = [each for each in there if each in known]
    if ours:
        return f"did you mean {ours[0]}?"
    step = _STEPS.get(name)
    return step if step and set(known).issuperset(_OURS.findall(step)) else meant(name, known, "it takes")


# ----------------------------------------------------------------------------
# What to do about an error of Python in a function that took its element for something else.
# ----------------------------------------------------------------------------


_TEXT = "text is bytes here, b'...'; as_text() before this step makes str of it, as text.decode() does"

_CLASS = "what is given is called with each element: of a class whose objects are to be called, give an object"

_SHARED = "others may share the memory of an element; return a new array, or put copied() before this step"

_CURES = {
    "bytes-like object is required, not": _TEXT,
    "not bytes": _TEXT,
    "bytes found": _TEXT,
    "tuple of bytes, not str": _TEXT,
    "concat str to bytes": _TEXT,
    '(not "bytes") to str': _TEXT,
    "'bytes' object has no attribute": _TEXT,
    "pattern on a bytes-like object": _TEXT,
    "type bytes is not JSON": _TEXT,
    "must be of type `str`": _TEXT,
    "TextInputSequence must be str": _TEXT,
    "byte indices must be integers": "a record is bytes until a step parses it; for Examples that is parse_example(features)",
    "() takes no arguments": _CLASS,
    "__init__() takes": _CLASS,
    "positional argument": "a function gets the members of a tuple as several arguments; a dict, or an array, is one",
    "string indices must be integers": "a list of objects is a dict of lists here; as_rows() before this step makes dicts",
    "output array is read-only": _SHARED,
    "destination is read-only": _SHARED,
    "'Nullable'": "a value that may be missing is a dict of `value` and `valid`; nulls= of the reader fills what is missing",
}
"""Parts of messages of Python, NumPy and tokenizers, and what is said about them."""


def cure_of(error: BaseException) -> str | None:
    """What to do about an error that a function raised; None where nobody knows.

    >>> cure_of(TypeError("a bytes-like object is required, not 'str'"))
    "text is bytes here, b'...'; as_text() before this step makes str of it, as text.decode() does"
    >>> cure_of(KeyError("x"))
    """
    if isinstance(error, KeyError) and isinstance(error.args[0], bytes):
        return _TEXT
    if not isinstance(error, TypeError | ValueError | AttributeError):
        return None
    text = str(error)
    return next((cure for part, cure in _CURES.items() if part in text), None)
