# SPDX-License-Identifier: Apache-2.0
"""`distinput.inspect`: what is in files, as the commands over files show it; for programs and notebooks (floor 7)."""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from distinput.formats.recognise import Recognised, recognise
    from distinput.inspect.column_statistics import ColumnStatistics, NumericStatistics, Range, statistics
    from distinput.inspect.conversion import convert
    from distinput.inspect.counts import Count, count
    from distinput.inspect.description import Column, ColumnDescription, Description, describe
    from distinput.inspect.files import Files, open_files
    from distinput.inspect.records import Record, head, sample
    from distinput.inspect.verification import Finding, Verified, verify

__all__ = [
    "Column",
    "ColumnDescription",
    "ColumnStatistics",
    "Count",
    "Description",
    "Files",
    "Finding",
    "NumericStatistics",
    "Range",
    "Recognised",
    "Record",
    "Verified",
    "convert",
    "count",
    "describe",
    "head",
    "open_files",
    "recognise",
    "sample",
    "statistics",
    "verify",
]

_LOADED_LATER = {
    name: module
    for module, names in {
        "formats.recognise": "Recognised recognise",
        "inspect.conversion": "convert",
        "inspect.counts": "Count count",
        "inspect.description": "Column ColumnDescription Description describe",
        "inspect.files": "Files open_files",
        "inspect.records": "Record head sample",
        "inspect.column_statistics": "ColumnStatistics NumericStatistics Range statistics",
        "inspect.verification": "Finding Verified verify",
    }.items()
    for name in names.split()
}
"""Names and the modules that have them, loaded when they are first named: no command waits for what others need."""


if not TYPE_CHECKING:  # which would take every name for one that is there

    def __getattr__(name: str) -> Any:
        """What is named for the first time."""
        if name in _LOADED_LATER:
            globals()[name] = value = getattr(import_module(f"distinput.{_LOADED_LATER[name]}"), name)
            return value
        raise AttributeError(f"module 'distinput.inspect' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
