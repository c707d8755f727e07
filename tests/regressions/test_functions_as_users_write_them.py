# SPDX-License-Identifier: Apache-2.0
"""Functions as users write them: what is said of their results is true, or an error says how to say it; no row is lost."""

import csv
import io
import json
import re
import struct
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import numpy as np
import pytest

import distinput as di
from distinput.errors import InvalidArgumentError
from distinput.testing.laws import check_spec
from distinput.values.nest import flatten

Pair = namedtuple("Pair", "x y")  # noqa: PYI024 - as users write it


@dataclass
class Record:
    """An element of the user's own class."""

    id: Any
    words: Any


def saved(*arrays: Any) -> list[bytes]:
    made = []
    for array in arrays:
        buffer = io.BytesIO()
        np.save(buffer, array)
        made.append(buffer.getvalue())
    return made


def tokens(s: bytes) -> Any:
    return np.array([len(word) for word in s.split()], np.int32)


TEXT = ["a b", "c", "", "d e f", "a b", "g", "h i"]
JSON = ['{"a": 1, "b": "x"}', '{"a": 2, "b": "yy"}', '{"a": 3, "b": ""}']
LISTS = ["[1, 2]", "[3]", "[]", "[4, 5, 6]"]
ROWS = ["1,2.5,x", "2,3.5,y", '3,4.5,"z"']
DATES = ["2024-01-02", "2024-02-03", "1999-12-31"]
BYTES = [b"ab", b"c", b"", b"defg"]
FIXED = [struct.pack("<if", i, i / 2) for i in range(5)]
N = np.arange(12)
F = np.linspace(-1, 1, 9, dtype=np.float32)
M = np.arange(24).reshape(6, 4)

CORPUS: dict[str, tuple[Any, Callable[..., Any]]] = {
    "json scalar": (["1", "2", "3"], json.loads),
    "json mixed numbers": (["1", "1.5", "2"], json.loads),
    "json float first": (["1.5", "1", "2"], json.loads),
    "json late float": (["1"] * 20 + ["1.5"], json.loads),
    "json dict": (JSON, json.loads),
    "json other keys": (['{"a": 1}', '{"a": 1, "b": 2}'], json.loads),
    "json lists": (LISTS, json.loads),
    "json arrays": (LISTS, lambda s: np.array(json.loads(s), np.int64)),
    "json nested": (["[[1, 2], [3, 4]]", "[[5, 6]]"], lambda s: np.array(json.loads(s), np.int64)),
    "json null": (["1", "null", "2"], json.loads),
    "json text or number": (["1", '"one"'], json.loads),
    "json large": (["1", str(2**40)], json.loads),
    "split": (TEXT, lambda s: np.array(s.split(), object)),
    "split decoded": (TEXT, lambda s: np.array(s.decode().split(), object)),
    "split of tuple": (["a b", "c d"], lambda s: tuple(s.split())),
    "split to lists": (TEXT, lambda s: {"w": s.split(), "n": len(s)}),
    "tokens": (TEXT, tokens),
    "tokens and label": (TEXT, lambda s: (tokens(s), len(s))),
    "letters": (TEXT, lambda s: np.array([chr(c) for c in s], object)),
    "frombuffer": (BYTES, lambda s: np.frombuffer(s, np.uint8)),
    "frombuffer reshaped": ([b"abcd", b"ef"], lambda s: np.frombuffer(s, np.uint8).reshape(-1, 2)),
    "regular expression": (["k=1", "k=2", "kk=3"], lambda s: re.match(rb"(\w+)=(\d+)", s).groups()),
    "findall": (TEXT, lambda s: np.array(re.findall(rb"\w", s), object)),
    "match or nothing": (["1", "x", "2"], lambda s: int(s) if s.isdigit() else None),
    "csv": (ROWS, lambda s: next(csv.reader([s.decode()]))),
    "csv typed": (ROWS, lambda s: (int(s.split(b",")[0]), float(s.split(b",")[1]))),
    "csv vector": (["1,2", "3,4", "5,6"], lambda s: np.array(s.split(b","), np.float32)),
    "csv ragged": (["1,2", "3", "4,5,6"], lambda s: np.array(s.split(b","), np.float32)),
    "struct": (FIXED, lambda s: struct.unpack("<if", s)),
    "struct dict": (FIXED, lambda s: dict(zip("ab", struct.unpack("<if", s), strict=True))),
    "datetime": (DATES, lambda s: datetime.fromisoformat(s.decode()).toordinal()),
    "datetime64": (DATES, lambda s: np.datetime64(s.decode()).astype(np.int64)),
    "np.load": (saved(np.zeros(3), np.ones(3)), lambda s: np.load(io.BytesIO(s))),
    "np.load of several shapes": (saved(np.zeros(3), np.ones((2, 2))), lambda s: np.load(io.BytesIO(s))),
    "np.load of several dtypes": (saved(np.zeros(3), np.ones(3, np.int8)), lambda s: np.load(io.BytesIO(s))),
    "picture": ([b"\2\3" + b"x" * 6, b"\1\2" + b"y" * 2], lambda s: np.frombuffer(s[2:], np.uint8).reshape(s[0], s[1])),
    "dataclass": (TEXT, lambda s: Record(len(s), tokens(s))),
    "namedtuple": (TEXT, lambda s: Pair(len(s), s.upper())),
    "ordered dict": (TEXT, lambda s: OrderedDict(z=len(s), a=s)),
    "text length decides the shape": (TEXT, lambda s: np.zeros(len(s))),
    "text length decides the dtype": (TEXT, lambda s: np.int32(1) if len(s) < 4 else np.float32(1)),
    "zeros of n": (N, lambda n: np.zeros(n)),
    "rare shape": (N, lambda n: np.zeros(2 if n == 4 else 1)),
    "rarer shape": (N * 100, lambda n: np.zeros(2 if n == 700 else 1)),
    "rare dtype": (N, lambda n: 1.5 if n == 11 else 1),
    "digits": (N, lambda n: np.array(list(str(n)), object)),
    "large results": (N, lambda n: int(n) * 10**9),
    "table": (N, lambda n: ["zero", "one"][n % 2]),
    "mapping without some": (N, lambda n: {1: 5}.get(int(n))),
    "several ranks": (N[:3], lambda n: np.zeros((2,) * int(n))),
    "structure by number": (N, lambda n: n if n < 9 else (n, n)),
    "mask": (M, lambda row: row[row > 3]),
    "unique": (M % 3, np.unique),
    "normalised": (F, lambda x: (x - F.mean()) / F.std()),
    "one hot": (N, lambda n: np.eye(12, dtype=np.float32)[n]),
    "window of a row": (M, lambda row: (row[:-1], row[1:])),
    "nonzero": (M % 2, np.flatnonzero),
    "complex nest": (N, lambda n: {"a": (n, [n, n + 1]), "b": {"c": str(n)}}),
}


def results(dataset: Any) -> tuple[list[Any], Exception | None]:
    found: list[Any] = []
    try:
        for element in dataset:
            found.append(element)  # noqa: PERF402 - what came before an error is kept
    except Exception as error:  # noqa: BLE001 - looked at by the test
        return found, error
    return found, None


def made(name: str) -> di.data.Dataset:
    source, function = CORPUS[name]
    return di.data.Dataset.from_tensor_slices(source).map(function)


PIPELINES: dict[str, Callable[[di.data.Dataset], di.data.Dataset]] = {
    "map": lambda ds: ds,
    "batch": lambda ds: ds.batch(2),
    "padded_batch": lambda ds: ds.padded_batch(2),
    "shuffle": lambda ds: ds.shuffle(3, seed=1).batch(1),
    "flat_map": lambda ds: di.data.Dataset.range(2).flat_map(lambda _: ds),
}


@pytest.mark.parametrize("name", CORPUS)
def test_what_is_said_is_true_or_an_error_says_what_to_do(name: str) -> None:
    for pipeline, build in PIPELINES.items():
        for asks in (True, False):
            plain = made(name)
            count = len(CORPUS[name][0])
            try:
                dataset = build(plain)
                if asks:
                    assert dataset.element_spec is not None
            except (TypeError, InvalidArgumentError) as error:
                text = str(error)
                assert re.search("output_signature|padded_shapes", text), (pipeline, text)
                continue
            found, error = results(dataset)
            if error is None:
                check_spec(dataset)
                expected = {"map": count, "batch": -(-count // 2), "padded_batch": -(-count // 2)}.get(pipeline)
                expected = expected if expected is not None else count * (2 if pipeline == "flat_map" else 1)
                assert len(found) == expected, pipeline
            else:
                assert "zip()" not in str(error), pipeline
                assert isinstance(error, TypeError | InvalidArgumentError), (pipeline, error)
                known = r"give output_signature=|Cannot batch tensors with different shapes|bring them to one kind"
                assert re.search(known, str(error)), (pipeline, error)


@pytest.mark.parametrize("name", CORPUS)
def test_two_replicas_get_all_rows_or_the_error(name: str) -> None:
    strategy = di.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
    expected, failure = results(made(name).batch(1))
    if failure is not None:
        return  # the one that the test before has looked at
    steps, refused = results(strategy.distribute_datasets_from_function(lambda _: made(name).batch(1)))
    assert refused is None
    found = [
        part for step in steps for part in zip(*map(strategy.experimental_local_results, flatten(step)), strict=True)
    ]
    assert sum([len(part[0]) for part in found]) == len(expected)
