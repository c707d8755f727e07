# SPDX-License-Identifier: Apache-2.0
"""Records, printed for people and for programs."""

from collections.abc import Sequence
from shutil import get_terminal_size
from typing import Any

import numpy as np

from distinput.cli.output import as_json, print_json, shortened
from distinput.cli.visible import visible
from distinput.inspect.records import Record

__all__ = ["print_records", "value_text"]

_ITEMS = 8
_BYTES = 64


def print_records(records: Sequence[Record], json: bool, title: str | None = None) -> None:
    """Print records: a line of JSON each, or for people a line for each part.

    Args:
      records: what is printed.
      json: for programs: objects of "file", "record" (its number) and "value".
      title: the name of the file, to stand above.
    """
    if json:
        for record in records:
            print_json({"file": record.file, "record": record.row, "value": as_json(record.value)})
        return
    if title is not None:
        print(f"==> {visible(title)} <==")
    width = get_terminal_size((120, 24)).columns
    for record in records:
        if not isinstance(record.value, dict):
            print(shortened(f"{record.row}: {value_text(record.value)}", width))
            continue
        print(f"{record.row}:")
        named = [(visible(name), value) for name, value in record.value.items()]
        longest = max((len(name) for name, _ in named), default=0)
        for name, value in named:
            print(shortened(f"  {name:{longest}}  {value_text(value)}", width))
    if title is not None:
        print()


def value_text(value: Any) -> str:
    """A value in a few words: arrays with dtype and shape, long ones shortened; bytes as text if they are UTF-8.

    >>> value_text(np.arange(20)), value_text(b"abc"), value_text(None)
    ('int64[20] 0 1 2 3 4 5 6 7 …', "'abc'", 'null')
    """
    if value is None:
        return "null"
    if isinstance(value, np.ndarray):
        flat = value.reshape(-1)
        kind = "bytes" if value.dtype.hasobject else str(value.dtype)
        items = " ".join(
            value_text(item) for item in (flat[:_ITEMS] if value.dtype.kind in "mM" else flat[:_ITEMS].tolist())
        )
        more = " …" if flat.size > _ITEMS else ""
        return f"{kind}[{','.join(map(str, value.shape))}] {items}{more}".rstrip()
    if isinstance(value, np.datetime64 | np.timedelta64):
        return str(value)
    if isinstance(value, np.generic):
        return value_text(value.item())
    if isinstance(value, bytes):
        return _bytes_text(value)
    if isinstance(value, str):
        return repr(value)
    if isinstance(value, dict):
        return "{" + ", ".join(f"{visible(key)}: {value_text(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        more = ", …" if len(value) > _ITEMS else ""
        return f"[{', '.join(map(value_text, value[:_ITEMS]))}{more}]"
    return visible(value)


def _bytes_text(value: bytes) -> str:
    more = f"… ({len(value):,} bytes)" if len(value) > _BYTES else ""
    try:
        return repr(value[:_BYTES].decode()) + more
    except UnicodeDecodeError as error:
        if more and error.start >= _BYTES - 3:  # the last character is cut
            return repr(value[: error.start].decode()) + more
        return f"{value[: _BYTES // 2]!r}" + (f"… ({len(value):,} bytes)" if len(value) > _BYTES // 2 else "")
