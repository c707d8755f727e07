# SPDX-License-Identifier: Apache-2.0
"""Floor 4: the ops, one file each. An op is a frozen dataclass that says its spec, its start and its stream.

`ops.batch` is the file `batch.py`, loaded when it is first named: a program loads the ops it uses and no other.
"""
# ruff: noqa: F401 - the names are told to type checkers only

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.ops import (
        as_python,
        balanced_sample,
        batch,
        batch_by_tokens,
        cache,
        choose,
        concatenate,
        copied,
        filter,
        flat_map,
        fragment_reader,
        generator,
        global_shuffle,
        group_by_reducer,
        group_by_window,
        identity,
        interleave,
        map,
        map_rows,
        on_error,
        on_workers,
        pack,
        padded_batch,
        parse_example,
        prefetch,
        range,
        reader,
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
        split,
        sql,
        tables,
        take,
        unique,
        window,
        zip,
    )
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
