# SPDX-License-Identifier: Apache-2.0
"""Ops that give the same elements: again, kept, ahead, or with options."""

from typing import Any

from hypothesis import strategies as st

from distinput.data.dataset import Dataset
from distinput.data.experimental import assert_cardinality
from distinput.ops.cache import Cache
from distinput.ops.copied import Copied
from distinput.ops.disk_cache import DiskCache
from distinput.ops.identity import AssertCardinality, WithOptions
from distinput.ops.ignore_errors import IgnoreErrors
from distinput.ops.prefetch import Prefetch
from distinput.ops.repeat import Repeat
from distinput.ops.snapshot import Snapshot
from distinput.testing.ops.arguments import OpArguments, nothing, unchanged, with_policy
from distinput.testing.pipeline import Ingredient, Pipeline
from distinput.testing.sources.written import new_folder

__all__ = ["PASSING"]


def _build_endless(ds: Dataset, a: OpArguments) -> Dataset:
    return ds.repeat(None if a["none"] else -1).take(a["count"])


def _model_endless(p: Pipeline, a: OpArguments) -> list[Any]:
    if not p.elements:
        return []
    count: int = a["count"]
    return (p.elements * (count // len(p.elements) + 1))[:count]


PASSING: tuple[Ingredient, ...] = (
    Ingredient(
        "assert_cardinality",
        (AssertCardinality,),
        lambda ds, a: ds.apply(assert_cardinality(a["count"])),
        unchanged,
        lambda _, p: {"count": len(p.elements)},
        lambda p: p.exact,
    ),
    Ingredient("cache", (Cache,), lambda ds, _: ds.cache(), unchanged, nothing),
    Ingredient(
        "cache_on_disk", (DiskCache,), lambda ds, _: ds.cache(new_folder()), unchanged, nothing, lambda p: p.tensors
    ),
    Ingredient("copied", (Copied,), lambda ds, _: ds.copied(), unchanged, nothing),
    Ingredient(
        "endless",
        (Repeat,),
        _build_endless,
        _model_endless,
        lambda draw, _: {"none": draw(st.booleans()), "count": draw(st.integers(0, 30))},
        # As TensorFlow says, an endless repeat is infinite unless its input is known to be empty.
        lambda p: bool(p.elements) or p.build().cardinality() == 0,
    ),
    Ingredient("ignore_errors", (IgnoreErrors,), lambda ds, _: ds.ignore_errors(), lambda p, _: p.elements, nothing),
    Ingredient(
        "prefetch",
        (Prefetch,),
        lambda ds, a: ds.prefetch(a["size"]),
        unchanged,
        lambda draw, _: {"size": draw(st.sampled_from([-1, 0, 1, 3]))},
    ),
    Ingredient(
        "repeat",
        (Repeat,),
        lambda ds, a: ds.repeat(a["count"]),
        lambda p, a: p.elements * a["count"],
        lambda draw, _: {"count": draw(st.integers(0, 3))},
    ),
    Ingredient(
        "snapshot", (Snapshot,), lambda ds, _: ds.snapshot(new_folder()), unchanged, nothing, lambda p: p.tensors
    ),
    Ingredient(
        "with_options",
        (WithOptions,),
        lambda ds, a: ds.with_options(with_policy(a["policy"])),
        unchanged,
        lambda draw, _: {"policy": draw(st.sampled_from(["AUTO", "DATA", "OFF"]))},
    ),
)
"""Ops that give the elements as they are."""
