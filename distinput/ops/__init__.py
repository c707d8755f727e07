# SPDX-License-Identifier: Apache-2.0
"""Floor 4: the ops, one file each. An op is a frozen dataclass that says its spec, its start and its stream.

`ops.batch` is the file `batch.py`, loaded when it is first named: a program loads the ops it uses and no other.
"""
# ruff: noqa: F401 - the names are told to type checkers only

from typing import TYPE_CHECKING

from distinput.core.lazy_imports import files_of

if TYPE_CHECKING:
    from distinput.ops import (
        balanced_sample,
        batch,
        batch_by_tokens,
        bucket_by_sequence_length,
        cache,
        choose,
        concatenate,
        copied,
        counter,
        disk_cache,
        filter,
        flat_map,
        generator,
        global_shuffle,
        group_by_reducer,
        group_by_window,
        identity,
        ignore_errors,
        interleave,
        map,
        map_rows,
        pack,
        padded_batch,
        parse_example,
        parse_sequence_example,
        prefetch,
        ragged_batch,
        random,
        range,
        rebatch,
        rejection_resample,
        repeat,
        scan,
        select,
        shard,
        shard_batches,
        shuffle,
        snapshot,
        source,
        sparse_batch,
        sql,
        tables,
        take,
        unbatch,
        unique,
        where,
        window,
        zip,
    )
else:
    __getattr__ = files_of(__name__)
