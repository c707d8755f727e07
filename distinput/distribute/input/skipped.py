# SPDX-License-Identifier: Apache-2.0
"""Which steps of a pass are left out: ranges of them, and those that hold certain records."""

from collections.abc import Iterable, Sequence

from distinput.core.state import State
from distinput.distribute.input.dealt_elements import DealtElements
from distinput.distribute.input.source import StepSource
from distinput.distribute.input.step_records import StepRecords
from distinput.errors import UnimplementedError
from distinput.lineage.records import Records

__all__ = ["Ranges", "ranges_of_steps", "steps_left_out"]

Ranges = range | Records | Iterable[range | Records]
"""One range of steps, or the records whose steps are meant; or several."""


def ranges_of_steps(skip: Iterable[range]) -> tuple[tuple[int, int], ...]:
    """Ranges as pairs, sorted, without empty ones.

    Raises:
      ValueError: one has gaps, or begins before step 0.

    >>> ranges_of_steps([range(7, 9), range(2, 3)]), ranges_of_steps([range(4, 4)])
    (((2, 3), (7, 9)), ())
    """
    given = list(skip)
    for each in given:
        if not isinstance(each, range) or each.step != 1 or (len(each) and each.start < 0):
            raise ValueError(
                f"skip: expected ranges of steps, such as range(7310, 7321), or lineage.Records, got {each!r}"
            )
    return tuple(sorted([(each.start, each.stop) for each in given if len(each)]))


def steps_left_out(skip: Ranges, source: StepSource, inputs: Sequence[State]) -> list[range]:
    """Ranges of steps, with each group of records replaced by the steps that hold one of them.

    Args:
      skip: what was given.
      source: where the steps come from.
      inputs: the states of the input pipelines, which tell the pass, and seeds that were drawn.

    Raises:
      UnimplementedError: the records cannot be located.
      ValueError: no such file is read, or it has no such record.
    """
    given = [skip] if isinstance(skip, range | Records) else list(skip)
    found: list[range] = []
    for each in given:
        if isinstance(each, Records):
            found += [range(step, step + 1) for step in _steps_of(each, source, inputs)]
        else:
            found.append(each)
    return found


def _steps_of(given: Records, source: StepSource, inputs: Sequence[State]) -> list[int]:
    cure = "give the ranges of steps instead"
    if isinstance(source, DealtElements) and source.terms.replicas.workers > 1 and source.tree_of is None:
        raise UnimplementedError(
            f"skip: workers whose datasets only their own dataset_fn makes do not know in which steps of the others {given} "
            f"are; {cure}"
        )
    seeds = [state.get("seeds", []) for state in inputs]
    try:
        records = StepRecords.with_seeds(source, seeds, read=given.read)
        return records.steps_with(given.file, given.numbers, inputs[0].get("epoch", 0))
    except UnimplementedError as error:
        raise UnimplementedError(f"skip: {given} cannot be found in steps; {cure}. {error}") from error
    except ValueError as error:
        raise ValueError(f"skip: {given}: {error}") from error
