# SPDX-License-Identifier: Apache-2.0
"""The same steps from input pipelines whose runs are made by somebody else, such as a recording that takes notes."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from distinput.core.run import Run
from distinput.data.handle import Handle
from distinput.distribute.input.cut_batches import CutBatches
from distinput.distribute.input.dealt_elements import DealtElements
from distinput.distribute.input.own_pieces import OwnPieces
from distinput.distribute.input.source import Source

__all__ = ["watched"]


def watched(source: Source, make_run: Callable[..., Run]) -> tuple[Source, list[Handle[Any]]]:
    """The source, and the datasets that this worker reads for it; those of other packages are not watched.

    Args:
      source: of the steps.
      make_run: makes the runs of the datasets; see `DatasetIterator`.
    """
    found: list[Handle[Any]] = []

    def same(dataset: Any) -> Any:
        if not isinstance(dataset, Handle):
            return dataset
        found.append(dataset._run_by(make_run))
        return found[-1]

    match source:
        case CutBatches():
            return replace(source, dataset=same(source.dataset)), found
        case DealtElements():
            return replace(source, datasets=[same(dataset) for dataset in source.datasets]), found
        case OwnPieces():
            batches = copy.copy(source.batches)
            batches.pieces = same(batches.pieces)
            return replace(source, batches=batches), found
    return source, found
