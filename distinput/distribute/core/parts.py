# SPDX-License-Identifier: Apache-2.0
"""What is given to a strategy and stands above it: input, lineage, variables, names of TensorFlow. Loaded at the first use."""

from functools import cache
from typing import Any

from distinput.names.lazy import placed

__all__ = ["PARTS", "missing", "part"]

_INPUT = "distinput.distribute.input"
_LINEAGE = "distinput.lineage"
_VARIABLES = "distinput.distribute.variables"

PARTS: dict[str, str] = {
    "Dataset": "distinput.data.dataset:Dataset",
    "StepRecords": f"{_LINEAGE}.step_records:StepRecords",
    "HostStore": f"{_VARIABLES}.store:HostStore",
    "absent_member": "distinput.names.absent:absent_member",
    "aggregate": f"{_VARIABLES}.kinds:aggregate",
    "aggregating": f"{_VARIABLES}.creation:aggregating",
    "check_dataset_function": f"{_INPUT}.distribution:check_dataset_function",
    "distribute_dataset": f"{_INPUT}.distribution:distribute_dataset",
    "distribute_from_function": f"{_INPUT}.distribution:distribute_from_function",
    "mirrored": f"{_VARIABLES}.creation:mirrored",
    "replayed": f"{_LINEAGE}.replayed:replayed",
    "steps_left_out": f"{_LINEAGE}.step_records:steps_left_out",
    "single": f"{_VARIABLES}.creation:single",
}
"""Each part, and where it is: `module:name`."""


@cache
def part(name: str) -> Any:
    """A function or class of the table.

    >>> part("mirrored").__name__
    'mirrored'
    """
    return placed(PARTS[name])


def missing(owner: Any, name: str) -> Any:
    """For `__getattr__`: raise the error that says what to write instead of a member of TensorFlow that is not here.

    Raises:
      AttributeError: always.
    """
    if hasattr(type(owner), name):  # a property failed: its own error says more
        return object.__getattribute__(owner, name)
    raise AttributeError(part("absent_member")(type(owner), name), name=name, obj=owner)
