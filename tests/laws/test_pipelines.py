# SPDX-License-Identifier: Apache-2.0
"""Laws 1 to 4 over random pipelines of all ops, and of each op alone behind whatever it fits."""

import inspect
import pkgutil
from contextlib import suppress
from importlib import import_module

import pytest
from hypothesis import Phase, find, given, settings
from hypothesis import strategies as st
from hypothesis.errors import NoSuchExample

import distinput.ops
from distinput.data.dataset import Dataset
from distinput.plan.node import Node
from distinput.rewrite import rewrite
from distinput.testing import (
    check_blocks,
    check_facts,
    check_positions,
    check_restart,
    check_rewrites,
    check_same_as,
    check_shards,
    check_spec,
)
from distinput.testing.laws.trace import MOST
from distinput.testing.pipelines import INGREDIENTS, OPS, SOURCES, Ingredient, Pipeline, pipelines
from tests.depth import cases

# From each state all that follows is read: squared.
SOME = cases(40, MOST)
# The open datasets of an interleave are each a place of their own, and interleaves may stand in each other.
STATE_BYTES = 20_000
FEW = max(2, settings().max_examples // 8)


def is_as_modelled(pipeline: Pipeline) -> None:
    dataset = pipeline.build()
    check_spec(dataset)
    if pipeline.exact:
        check_same_as(pipeline.build(), pipeline.elements)
        check_same_as(dataset, pipeline.elements)  # the second pass


@given(pipelines())
def test_law_1_and_4_the_same_as_lists_and_as_the_spec_says(pipeline: Pipeline) -> None:
    is_as_modelled(pipeline)


def test_batches_of_no_values_have_the_inner_shape_of_their_rows() -> None:
    pipeline = Pipeline.of("range", {"start": 0, "stop": 4, "step": 1, "dtype": "int64"}, INGREDIENTS)
    for step in ("parse_sequence_example", "ragged_batch", "scan", "ragged_batch"):  # a scan knows no inner shape
        pipeline = pipeline.then(step, {"size": 1, "drop": False} if step == "ragged_batch" else {})
    is_as_modelled(pipeline)


@given(pipelines())
def test_law_2_exactly_the_rest_after_every_restart(pipeline: Pipeline) -> None:
    check_restart(pipeline.build(), most=SOME, state_bytes=STATE_BYTES)


@settings(max_examples=max(2, settings().max_examples // 2))
@given(pipelines())
def test_law_2_exactly_the_rest_in_an_equal_pipeline(pipeline: Pipeline) -> None:
    check_restart(pipeline.build(), fresh=pipeline.build, most=SOME, state_bytes=STATE_BYTES)


@given(pipelines())
def test_law_3_rewrites_change_nothing(pipeline: Pipeline) -> None:
    check_rewrites(pipeline.build(), most=SOME)


@given(pipelines())
def test_every_row_can_be_reached_at_once_or_not_at_all(pipeline: Pipeline) -> None:
    check_positions(pipeline.build())


@settings(max_examples=cases(12, 2000))
@given(pipelines())
def test_block_sizes_change_nothing(pipeline: Pipeline) -> None:
    check_blocks(pipeline.build, most=SOME)


@given(pipelines(most_ops=4))
def test_what_steps_say_of_themselves_is_true(pipeline: Pipeline) -> None:
    check_facts(pipeline.build())


@given(pipelines(), st.integers(1, 4))
def test_shards_are_disjoint_and_complete(pipeline: Pipeline, num_shards: int) -> None:
    check_shards(pipeline.build(), num_shards)


@pytest.mark.parametrize("op", [op.name for op in OPS])
def test_each_op_keeps_the_laws(op: str) -> None:
    @settings(max_examples=FEW)
    @given(pipelines(most_ops=3, last=op))
    def keeps_the_laws(pipeline: Pipeline) -> None:
        is_as_modelled(pipeline)
        check_restart(pipeline.build(), most=SOME, state_bytes=STATE_BYTES)
        check_rewrites(pipeline.build(), most=SOME)

    keeps_the_laws()


COVERS: dict[str, tuple[str, ...]] = {
    "arrow": ("Reader", "Interleave"),
    "arrow_stream": ("ArrowStream",),
    "arrow_table": ("TableRows", "Slices"),
    "as_decimal": ("AsDecimal",),
    "as_rows": ("AsRows", "AsText"),
    "as_text": ("AsText",),
    "as_uint8": ("AsUint8",),
    "assert_cardinality": ("AssertCardinality",),
    "balance_rows": ("BalanceRows",),
    "batch": ("Batch",),
    "batch_by_tokens": ("BatchByTokens",),
    "bucket_by_sequence_length": ("BucketBySequenceLength",),
    "cache": ("Cache",),
    "cache_on_disk": ("DiskCache",),
    "choose": ("Choose",),
    "concatenate": ("Concatenate", "SlicesInTurn"),
    "copied": ("Copied",),
    "counter": ("Counter",),
    "csv": ("Reader", "Interleave"),
    "endless": ("Repeat",),
    "enumerate": ("Zip", "Range"),
    "filter": ("Filter",),
    "fixed_length": ("Reader", "Interleave"),
    "flat_map": ("FlatMap",),
    "generator": ("Generator",),
    "global_shuffle": ("GlobalShuffle",),
    "group_by_reducer": ("GroupByReducer",),
    "group_by_window": ("GroupByWindow",),
    "ignore_errors": ("IgnoreErrors",),
    "interleave": ("Interleave",),
    "jsonl": ("Reader", "Interleave"),
    "legacy_rebatch": ("LegacyRebatch",),
    "list_files": ("Slices", "Shuffle"),
    "manifest": ("FileNames", "Reader"),
    "map": ("FusedMap", "Map"),
    "map_rows": ("FusedMapRows", "MapRows"),
    "map_with_rng": ("RandomKeys",),
    "npy": ("Reader", "Interleave"),
    "npz": ("Reader", "Interleave"),
    "on_error": ("OnError",),
    "on_workers": ("OnWorkers",),
    "once_per_worker": ("OncePerWorker",),
    "own": ("OwnPieces", "OwnRows", "RowReader", "ShuffledRows"),
    "pack": ("Pack",),
    "padded_batch": ("PaddedBatch",),
    "parquet": ("Reader", "Interleave"),
    "parquet_where": ("Where", "Select", "Reader"),
    "parse_batches": ("ParseExample",),
    "parse_example": ("ParseExample",),
    "parse_sequence_example": ("ParseSequenceExample",),
    "part": ("FragmentNumbers", "FragmentReader"),
    "prefetch": ("Prefetch",),
    "ragged_batch": ("RaggedBatch",),
    "random": ("Random",),
    "range": ("Range",),
    "rebatch": ("Rebatch",),
    "rejection_resample": ("RejectionResample",),
    "repeat": ("Repeat",),
    "sample": ("Choose", "DrawByWeights", "Draw"),
    "sample_balanced": ("BalancedSample",),
    "scan": ("Scan",),
    "select": ("Select",),
    "shard": ("Shard",),
    "shard_batches": ("ShardBatches", "OwnShares"),
    "shuffle": ("Shuffle",),
    "skip": ("Skip",),
    "slices": ("Slices",),
    "snapshot": ("Snapshot",),
    "source": ("Source",),
    "sparse_batch": ("SparseBatch",),
    "split": ("Part",),
    "sql": ("Sql",),
    "sql_tuples": ("Sql",),
    "take": ("Take",),
    "take_while": ("TakeWhile",),
    "tar": ("Reader", "Interleave"),
    "tensors": ("Slices",),
    "text": ("Reader", "Interleave"),
    "tfrecord": ("Reader", "Interleave"),
    "unbatch": ("Unbatch",),
    "unique": ("Unique",),
    "vectorized_map": ("FusedMap", "Map"),
    "window": ("Window", "Slices"),
    "with_options": ("WithOptions",),
    "worker": ("OwnPieces", "OwnRows"),
    "zip": ("Zip",),
}
"""The classes of nodes that each ingredient makes."""


def node_classes() -> list[type[Node]]:
    found = []
    for module in pkgutil.iter_modules(distinput.ops.__path__, "distinput.ops."):
        for _, kind in inspect.getmembers(import_module(module.name), inspect.isclass):
            own = kind.__module__ == module.name and not kind.__name__.startswith("_")
            if own and issubclass(kind, Node) and not inspect.isabstract(kind):
                found.append(kind)
    return found


@pytest.mark.parametrize("kind", node_classes(), ids=lambda kind: kind.__name__)
def test_every_op_is_in_the_random_pipelines(kind: type[Node]) -> None:
    covered = {name for names in COVERS.values() for name in names}
    covered |= {
        "FirstCome"
    }  # a second pass shares the elements with the first: tests/ops/test_first_come.py has its laws
    assert kind.__name__ in covered, (
        f"add {kind.__name__} to distinput/testing/ops: an op keeps the laws from its first day"
    )


def test_every_method_that_adds_an_op_is_in_the_random_pipelines() -> None:
    methods = {name for name in dir(Dataset) if hasattr(getattr(Dataset, name), "__signature__")}
    assert "batch" in methods
    assert sorted(methods - set(INGREDIENTS)) == []


@pytest.mark.parametrize("ingredient", [*SOURCES, *OPS], ids=lambda ingredient: ingredient.name)
def test_an_ingredient_makes_what_it_covers(ingredient: Ingredient) -> None:
    missing = set(COVERS[ingredient.name])

    def all_were_made(pipeline: Pipeline) -> bool:
        if ingredient.name in dict(pipeline.recipe):
            node = pipeline.build().node
            missing.difference_update(type(step).__name__ for step in steps(node) + steps(rewrite(node)[0]))
        return not missing

    def look(drawn: st.SearchStrategy[Pipeline], most: int) -> None:
        phases = (Phase.generate,)
        find(
            drawn,
            all_were_made,
            settings=settings(max_examples=most, derandomize=True, database=None, phases=phases, deadline=None),
        )

    if ingredient in SOURCES:
        look(pipelines(most_ops=0, sources=[ingredient]), 3000)
        return
    # Two of some kinds become one, and some are of batches alone: so these stand before it, in most or in half of them.
    for ops, most in (
        ([INGREDIENTS["batch"], INGREDIENTS["prefetch"], ingredient], 60),
        ([*OPS, *len(OPS) * [ingredient]], 30),
    ):
        with suppress(NoSuchExample):
            look(pipelines(2, ops=ops, last=ingredient.name), most)
            return
    look(pipelines(2, last=ingredient.name), 3000)


def steps(node: Node) -> list[Node]:
    return [node, *[step for source in node.inputs for step in steps(source)]]
