# SPDX-License-Identifier: Apache-2.0
"""The same steps from input pipelines whose runs are made by somebody else, such as a recording that takes notes."""

import copy
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from distinput.core.run import Run
from distinput.data.handle import DatasetHandle
from distinput.distribute.input.cut_batches import CutBatches
from distinput.distribute.input.dealt_elements import DealtElements
from distinput.distribute.input.own_pieces import OwnPiecesSource
from distinput.distribute.input.source import StepSource

__all__ = ["watched"]


def watched(source: StepSource, make_run: Callable[..., Run]) -> tuple[StepSource, list[DatasetHandle[Any]]]:
    """The source, and the datasets that this worker reads for it; those of other packages are not watched.

    Args:
      source: of the steps.
      make_run: makes the runs of the datasets; see `DatasetIterator`.
    """
    handles: list[DatasetHandle[Any]] = []

    def same(dataset: Any) -> Any:
        if not isinstance(dataset, DatasetHandle):
            return dataset
        handles.append(dataset._run_by(make_run))
        return handles[-1]

    match source:
        case CutBatches():
            return replace(source, dataset=same(source.dataset)), handles
        case DealtElements():
            return replace(source, datasets=[same(dataset) for dataset in source.datasets]), handles
        case OwnPiecesSource():
            batches = copy.copy(source.batches)
            batches.pieces = same(batches.pieces)
            return replace(source, batches=batches), handles
    return source, handles
