# SPDX-License-Identifier: Apache-2.0
"""`distinput.inspect`: what is in files, as the commands over files show it; for programs and notebooks (floor 7)."""

from typing import TYPE_CHECKING

from distinput.names.lazy import lazy

if TYPE_CHECKING:
    from distinput.formats.recognise import Recognised as Recognised
    from distinput.formats.recognise import recognise as recognise
    from distinput.inspect.column_statistics import ColumnStatistics as ColumnStatistics
    from distinput.inspect.column_statistics import NumericStatistics as NumericStatistics
    from distinput.inspect.column_statistics import Range as Range
    from distinput.inspect.column_statistics import statistics as statistics
    from distinput.inspect.conversion import convert as convert
    from distinput.inspect.counts import Count as Count
    from distinput.inspect.counts import count as count
    from distinput.inspect.description import Column as Column
    from distinput.inspect.description import ColumnDescription as ColumnDescription
    from distinput.inspect.description import Description as Description
    from distinput.inspect.description import describe as describe
    from distinput.inspect.files import Files as Files
    from distinput.inspect.files import open_files as open_files
    from distinput.inspect.records import Record as Record
    from distinput.inspect.records import head as head
    from distinput.inspect.records import sample as sample
    from distinput.inspect.verification import Finding as Finding
    from distinput.inspect.verification import Verified as Verified
    from distinput.inspect.verification import verify as verify
else:
    __getattr__, __dir__, __all__ = lazy(__name__)
