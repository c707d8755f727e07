# SPDX-License-Identifier: Apache-2.0
"""Ops that make one element of one element."""

from typing import Any

import numpy as np
from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.formats.example_encoding import encode_example
from distinput.formats.features import FixedLenFeature, VarLenFeature
from distinput.ops.map import FusedMap, Map
from distinput.ops.map_rows import FusedMapRows, MapRows
from distinput.ops.parse_example import ParseExample
from distinput.ops.scan import Scan
from distinput.testing.functions import MAPS, ROW_MAPS, SIGNATURES, applied, digest
from distinput.testing.ops.arguments import PARALLEL, Arguments, nothing, tensors
from distinput.testing.pipeline import Ingredient, Pipeline

__all__ = ["MAPPING"]


def _model_map(p: Pipeline, a: Arguments) -> list[Any]:
    return [applied(MAPS[a["function"]], element) for element in p.elements]


def _build_map(ds: Dataset, a: Arguments) -> Dataset:
    # Which shapes a function can give is guessed from made-up elements; these four are there to give many.
    signature = SIGNATURES.get(a["function"])
    return ds.map(MAPS[a["function"]], num_parallel_calls=a["parallel"], output_signature=signature)


def _build_rows(ds: Dataset, a: Arguments) -> Dataset:
    return ds.map_rows(ROW_MAPS[a["function"]])


def _model_rows(p: Pipeline, a: Arguments) -> list[Any]:
    return [applied(ROW_MAPS[a["function"]], element) for element in p.elements]


def _scanned(state: Any, element: Any) -> Any:
    total, text = state["total"], state["text"]
    total = total + np.int64(digest(element))
    return {"total": total, "text": (text + b"%d" % (total % 10))[-3:]}, (total, element)


_SCAN_START = {"total": np.int64(5), "text": b""}


def _model_scan(p: Pipeline, _: Arguments) -> list[Any]:
    state: Any = _SCAN_START
    given = []
    for element in p.elements:
        state, output = _scanned(state, element)
        given.append(output)
    return given


_FEATURES = {"n": FixedLenFeature([2], "int64"), "v": VarLenFeature("float32"), "s": FixedLenFeature([], "string")}


def _encoded(*args: Any) -> bytes:
    number = digest(*args)
    return encode_example({"n": [number, 1], "v": [number / 2] * (number % 3), "s": b"t%d" % number})


def _parsed(element: Any) -> Any:
    number = applied(digest, element)
    values = np.full(number % 3, number / 2, np.float32)
    return {"n": np.array([number, 1]), "v": values, "s": b"t%d" % number}


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
        "map_rows",
        (FusedMapRows, MapRows),
        _build_rows,
        _model_rows,
        lambda draw, _: {"function": draw(st.sampled_from(sorted(ROW_MAPS)))},
        lambda p: p.static,
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
        "scan",
        (Scan,),
        lambda ds, _: ds.scan(_SCAN_START, _scanned),
        _model_scan,
        nothing,
        tensors,
    ),
)
"""Ops that make one element of one element."""
