# SPDX-License-Identifier: Apache-2.0
"""Ops that make one element of one element."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.core.ragged_tensor import RaggedTensor
from distinput.data.dataset import Dataset
from distinput.formats.example_encoding import encode_example, encode_sequence_example
from distinput.formats.features import Feature, FixedLenFeature, FixedLenSequenceFeature, VarLenFeature
from distinput.ops.map import FusedMap, Map
from distinput.ops.map_rows import FusedMapRows, MapRows
from distinput.ops.on_error import OnError
from distinput.ops.parse_example import ParseExample
from distinput.ops.parse_sequence_example import ParseSequenceExample
from distinput.ops.scan import Scan
from distinput.ops.select import Select
from distinput.plan.skip_errors import SkipErrors
from distinput.testing.functions import MAPS, ROW_MAPS, SIGNATURES, applied, digest, whole
from distinput.testing.ops.arguments import PARALLEL, SMALL, OpArguments, nothing, tensors
from distinput.testing.ops.stacking import cut, stack
from distinput.testing.pipeline import Ingredient, Pipeline

__all__ = ["MAPPING"]


def _model_map(p: Pipeline, a: OpArguments) -> list[Any]:
    return [applied(MAPS[a["function"]], element) for element in p.elements]


def _build_map(ds: Dataset, a: OpArguments) -> Dataset:
    # Which shapes a function can give is guessed from made-up elements; these four are there to give many.
    signature = SIGNATURES.get(a["function"])
    return ds.map(MAPS[a["function"]], num_parallel_calls=a["parallel"], output_signature=signature)


def _sound(*args: Any) -> Any:
    if digest(*args) % 4 == 1:
        raise ValueError("one of those that fail")
    return whole(args)


def _build_on_error(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.map(_sound, output_signature=ds.element_spec, on_error=SkipErrors(None), num_parallel_calls=a["parallel"])


def _model_on_error(p: Pipeline, _: OpArguments) -> list[Any]:
    return [element for element in p.elements if applied(digest, element) % 4 != 1]


def _build_rows(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.map_rows(ROW_MAPS[a["function"]])


def _model_rows(p: Pipeline, a: OpArguments) -> list[Any]:
    return [applied(ROW_MAPS[a["function"]], element) for element in p.elements]


def _scanned(state: Any, element: Any) -> Any:
    total, text = state["total"], state["text"]
    total = total + np.int64(digest(element))
    return {"total": total, "text": (text + b"%d" % (total % 10))[-3:]}, (total, element)


def _named(*args: Any) -> Any:
    return {"k": args[0], "m": np.int64(digest(*args)), "n": (np.int32(digest(*args) % 7), args[-1])}


def _paired(*args: Any) -> Any:
    first = args[0]
    return np.stack([first, first]), np.maximum(first, first), args


def _numeric(p: Pipeline) -> bool:
    """Whether elements are numbers, or tuples whose first component is."""
    structure = p.elements[0] if p.elements else None
    first = structure[0] if type(structure) is tuple and structure else structure
    return p.tensors and isinstance(first, np.ndarray | np.generic) and first.dtype.kind in "iuf"


_SCAN_START = {"total": np.int64(5), "text": b""}


def _model_scan(p: Pipeline, _: OpArguments) -> list[Any]:
    state: Any = _SCAN_START
    given = []
    for element in p.elements:
        state, output = _scanned(state, element)
        given.append(output)
    return given


_FEATURES: dict[str, Feature] = {
    "n": FixedLenFeature([2], "int64"),
    "v": VarLenFeature("float32"),
    "s": FixedLenFeature([], "string"),
}


def _encoded(*args: Any) -> bytes:
    number = digest(*args)
    return encode_example({"n": [number, 1], "v": [number / 2] * (number % 3), "s": b"t%d" % number})


def _encoded_twice(*args: Any) -> bytes:
    number = digest(*args)
    values = [number / 2] * (number % 3)
    return encode_example({"n": [number, 1], "v": values, "again": values, "s": b"t%d" % number})


def _parsed(element: Any) -> Any:
    number = applied(digest, element)
    values = np.full(number % 3, number / 2, np.float32)
    return {"n": np.array([number, 1]), "v": values, "s": b"t%d" % number}


def _parsed_batch(group: list[Any]) -> Any:
    rows = [_parsed(element) for element in group]
    values = np.concatenate([row["v"] for row in rows])
    lengths = np.array([len(row["v"]) for row in rows], np.int64)
    ragged = RaggedTensor.from_row_lengths(values, lengths)
    padded = ragged.to_padded(9)
    return {
        "n": np.stack([row["n"] for row in rows]),
        "v": ragged,
        "again": padded,
        "s": stack([row["s"] for row in rows]),
    }


def _build_batches(ds: Dataset, a: OpArguments) -> Dataset:
    padded = FixedLenSequenceFeature([], "float32", allow_missing=True, default_value=9)
    records = ds.map(_encoded_twice).batch(a["size"])
    return records.parse_example({**_FEATURES, "again": padded})


_CONTEXT: dict[str, Feature] = {"number": FixedLenFeature([], "int64")}
_STEPS: dict[str, Feature] = {
    "pairs": FixedLenSequenceFeature([2], "int64"),
    "texts": VarLenFeature("string"),
}


def _steps_of(args: tuple[Any, ...]) -> tuple[int, list[list[int]], list[list[bytes]]]:
    number = digest(*args)
    return number, [[number, step] for step in range(number % 3)], [[b"%d" % step] * step for step in range(number % 4)]


def _encoded_steps(*args: Any) -> bytes:
    number, pairs, texts = _steps_of(args)
    return encode_sequence_example({"number": number}, {"pairs": pairs, "texts": texts})


def _parsed_steps(element: Any) -> Any:
    number, pairs, texts = applied(lambda *args: tuple(_steps_of(args)), element)
    words = np.empty(sum(map(len, texts)), object)
    words[:] = [word for step in texts for word in step]
    sequences = {
        "pairs": np.array(pairs, np.int64).reshape(-1, 2),
        "texts": RaggedTensor.from_row_lengths(words, np.array(list(map(len, texts)), np.int64)),
    }
    return {"number": np.int64(number)}, sequences


def _serializable(p: Pipeline) -> bool:
    return p.tensors


MAPPING: tuple[Ingredient, ...] = (
    Ingredient(
        "map",
        (FusedMap, Map),
        _build_map,
        _model_map,
        lambda draw, _: {"function": draw(st.sampled_from(sorted(MAPS))), "parallel": draw(PARALLEL)},
        tensors,
    ),
    Ingredient(
        "select",
        (Select,),
        lambda ds, _: ds.map(_named).select(["n", "k"]),
        lambda p, _: [{"n": row["n"], "k": row["k"]} for row in (applied(_named, element) for element in p.elements)],
        nothing,
        tensors,
    ),
    Ingredient(
        "vectorized_map",
        (FusedMap, Map),
        lambda ds, _: ds.map(_paired, vectorize=True),
        lambda p, _: [applied(_paired, element) for element in p.elements],
        nothing,
        _numeric,
    ),
    Ingredient(
        "map_rows",
        (FusedMapRows, MapRows),
        _build_rows,
        _model_rows,
        lambda draw, _: {"function": draw(st.sampled_from(sorted(ROW_MAPS)))},
        lambda p: p.ranked and all(leaf.size is not None or leaf.ragged_rank is not None for leaf in p.leaves),
    ),
    Ingredient(
        "on_error",
        (OnError,),
        _build_on_error,
        _model_on_error,
        lambda draw, _: {"parallel": draw(PARALLEL)},
        tensors,
    ),
    Ingredient(
        "parse_example",
        (ParseExample,),
        lambda ds, _: ds.map(_encoded).parse_example(_FEATURES),
        lambda p, _: [_parsed(element) for element in p.elements],
        nothing,
        _serializable,
    ),
    Ingredient(
        "parse_batches",
        (ParseExample,),
        _build_batches,
        lambda p, a: [_parsed_batch(group) for group in cut(p.elements, a["size"], drop=False)],
        lambda draw, _: {"size": draw(SMALL)},
        _serializable,
    ),
    Ingredient(
        "parse_sequence_example",
        (ParseSequenceExample,),
        lambda ds, _: ds.map(_encoded_steps).parse_sequence_example(_CONTEXT, _STEPS),
        lambda p, _: [_parsed_steps(element) for element in p.elements],
        nothing,
        _serializable,
    ),
    Ingredient(
        "scan",
        (Scan,),
        lambda ds, _: ds.scan(_SCAN_START, _scanned),
        _model_scan,
        nothing,
        tensors,
    ),
)
"""Ops that make one element of one element."""
