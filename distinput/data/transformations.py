# SPDX-License-Identifier: Apache-2.0
"""The methods that add a step to a pipeline, one line each: their arguments and documentation are those of the op.

Editors and type checkers read `transformations.pyi` in the place of this file; `python docs/make_stub.py` writes it.
"""

from distinput import ops
from distinput.data.actions import Actions
from distinput.data.element import T_co
from distinput.data.transformation import transformation

__all__ = ["Transformations"]


class Transformations(Actions[T_co]):
    """A dataset that can be followed by an op."""

    batch = transformation(lambda: ops.batch.Batch)
    batch_by_tokens = transformation(lambda: ops.batch_by_tokens.BatchByTokens)
    bucket_by_sequence_length = transformation(lambda: ops.group_by_window.BucketBySequenceLength)
    cache = transformation(lambda: ops.cache.Cache)
    concatenate = transformation(lambda: ops.concatenate.Concatenate)
    copied = transformation(lambda: ops.copied.Copied)
    filter = transformation(lambda: ops.filter.Filter)
    flat_map = transformation(lambda: ops.flat_map.FlatMap)
    global_shuffle = transformation(lambda: ops.global_shuffle.GlobalShuffle, reshuffles=True)
    group_by_window = transformation(lambda: ops.group_by_window.GroupByWindow)
    ignore_errors = transformation(lambda: ops.on_error.IgnoreErrors)
    interleave = transformation(lambda: ops.interleave.Interleave)
    map = transformation(lambda: ops.map.Map)
    map_rows = transformation(lambda: ops.map_rows.MapRows)
    pack = transformation(lambda: ops.pack.Pack)
    padded_batch = transformation(lambda: ops.padded_batch.PaddedBatch)
    parse_example = transformation(lambda: ops.parse_example.ParseExample)
    parse_sequence_example = transformation(lambda: ops.parse_example.ParseSequenceExample)
    prefetch = transformation(lambda: ops.prefetch.Prefetch)
    ragged_batch = transformation(lambda: ops.batch.RaggedBatch)
    rebatch = transformation(lambda: ops.rebatch.Rebatch)
    rejection_resample = transformation(lambda: ops.rejection_resample.RejectionResample, reshuffles=True)
    repeat = transformation(lambda: ops.repeat.Repeat)
    scan = transformation(lambda: ops.scan.Scan)
    select = transformation(lambda: ops.select.Select)
    shard = transformation(lambda: ops.shard.Shard)
    shard_batches = transformation(lambda: ops.shard_batches.ShardBatches)
    shuffle = transformation(lambda: ops.shuffle.Shuffle, reshuffles=True)
    skip = transformation(lambda: ops.take.Skip)
    snapshot = transformation(lambda: ops.snapshot.Snapshot)
    sparse_batch = transformation(lambda: ops.batch.SparseBatch)
    take = transformation(lambda: ops.take.Take)
    take_while = transformation(lambda: ops.filter.TakeWhile)
    unbatch = transformation(lambda: ops.unbatch.Unbatch)
    unique = transformation(lambda: ops.unique.Unique)
    window = transformation(lambda: ops.window.Window)
    with_options = transformation(lambda: ops.identity.WithOptions)
