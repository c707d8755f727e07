# SPDX-License-Identifier: Apache-2.0
"""Words for people: names that are declined or were meant, quantities, and HTML."""

from collections.abc import Collection
from typing import Any

from distinput.names.lazy import placed

# ----------------------------------------------------------------------------
# What is said of names of TensorFlow that are not there: sections of the documentation, and members of classes.
# ----------------------------------------------------------------------------


Cure = tuple[str, str]
"""What to do instead, and the section of the documentation that says more."""

CHANGE = "What to change"
EMBEDDING = "TPU embedding"
GRAPHS = "Graph mode"
SERVICE = "The data service"

PAGE = "docs/tensorflow.md"
"""The page that has these sections."""

_TRACED = "there are no graphs through which a spec takes values apart: leave it out", GRAPHS
_PROTO = "a spec is a Python object: pickle it, or print it", GRAPHS

MEMBERS: dict[str, dict[str, Cure]] = {
    "TypeSpec": {
        "cast": _TRACED,
        "experimental_as_proto": _PROTO,
        "experimental_from_proto": _PROTO,
        "experimental_type_proto": _PROTO,
        "flatten": _TRACED,
        "from_tensors": _TRACED,
        "placeholder_value": _TRACED,
        "to_tensors": _TRACED,
    },
}
"""By the name of the class; classes derived from it have the same. Those of `distribute` are in `names/absent.py`."""


def told(cure: Cure) -> str:
    """What to do instead, with the page that says more.

    >>> told(("use NumPy", CHANGE))
    'use NumPy ("What to change" in docs/tensorflow.md)'
    """
    what, section = cure
    return f'{what} ("{section}" in {PAGE})'


def declined(cls: type, name: str, members: dict[str, dict[str, Cure]] = MEMBERS) -> AttributeError:
    """The error for a member that the objects of a class do not have.

    Args:
      cls: the class.
      name: the missing member.
      members: the table of those that have a reason.
    """
    start = f"{cls.__name__!r} object has no attribute {name!r}"
    for base in cls.__mro__:
        cure: Any = members.get(base.__name__, {}).get(name)
        if cure is not None:
            return AttributeError(f"{start}: {told(cure)}")
    return AttributeError(start)


# ----------------------------------------------------------------------------
# What is said about an unknown name: the known name that was probably meant, or all of them.
# ----------------------------------------------------------------------------


_ALIKE = 0.6
"""How similar a known name must be to be suggested."""


def meant(name: str, known: Collection[str], they: str) -> str:
    """A suggestion for a name that is not known.

    Args:
      name: what was written.
      known: the names that exist.
      they: what goes before the list of them where none is similar.

    >>> meant("deterministc", ["deterministic", "threading"], "it has")
    'did you mean deterministic?'
    >>> meant("CSVDataset", ["CsvDataset", "Dataset"], "it has")
    'did you mean CsvDataset?'
    >>> meant("threads", ["deterministic"], "it has")
    'it has deterministic'
    """
    from difflib import get_close_matches  # for messages alone

    near = [each for each in known if each.lower() == name.lower()] or get_close_matches(name, known, 1, _ALIKE)
    return f"did you mean {near[0]}?" if near else f"{they} {', '.join(known)}"


def shown(value: Any, most: int = 60) -> str:
    """The `repr` of a value for a message, cut where it is longer than `most`.

    >>> shown(b"a"), shown("x" * 99, 9), shown(10**9999)
    ("b'a'", "'xxxxx...", 'a very long number')
    """
    try:
        text = repr(value)
    except Exception:  # noqa: BLE001 - the message is about something else; Python prints no integer of very many digits
        text = "a very long number" if isinstance(value, int) else f"a {type(value).__name__}"
    return text if len(text) <= most else f"{text[: most - 3]}..."


# ----------------------------------------------------------------------------
# HTML of values: what draws it is on a floor above, which is imported when something is drawn and not before.
# ----------------------------------------------------------------------------


KINDS = {
    "dataset": "notebook:dataset_html",
    "distributed": "notebook:distributed_html",
    "plan": "notebook:plan_html",
    "recording": "html:page",
    "stats": "notebook:stats_html",
    "values": "notebook:values_html",
}
"""Kinds of values, and the functions of `distinput.reports` that draw them."""


def html(kind: str, *given: Any) -> str:
    """Draw a value of this kind."""
    drawn: str = placed(f"distinput.reports.{KINDS[kind]}")(*given)
    return drawn


# ----------------------------------------------------------------------------
# Seconds, bytes and numbers as people read them.
# ----------------------------------------------------------------------------


def seconds_text(seconds: float) -> str:
    """A time with about three digits.

    >>> [seconds_text(s) for s in (0, 0.0000042, 0.0123, 1.234, 75, 4000)]
    ['0 s', '4.2 µs', '12.3 ms', '1.23 s', '1 min 15 s', '1 h 6 min']
    """
    if seconds >= 3600:
        return f"{seconds // 3600:.0f} h {seconds % 3600 // 60:.0f} min"
    if seconds >= 59.995:
        minutes, rest = divmod(round(seconds), 60)
        return f"{minutes} min {rest} s"
    for unit, factor in (("s", 1.0), ("ms", 1e3)):
        if seconds * factor >= 0.9995:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e6:.3g} µs" if seconds > 0 else "0 s"


def bytes_text(count: float) -> str:
    """A number of bytes with about three digits.

    >>> [bytes_text(n) for n in (0, 812, 5_000, 12_345_678, 3 << 30)]
    ['0 B', '812 B', '4.88 KiB', '11.8 MiB', '3 GiB']
    """
    for unit in ("B", "KiB", "MiB", "GiB"):
        if count < 999.5:
            return f"{count:.3g} {unit}"
        count /= 1024
    return f"{count:.3g} TiB"


def number_text(value: float) -> str:
    """A number with commas, and with about three digits if it is not whole.

    >>> [number_text(x) for x in (12, 1234567, 0.12345, 4321.6)]
    ['12', '1,234,567', '0.123', '4,322']
    """
    return f"{value:,.0f}" if value == int(value) or abs(value) >= 100 else f"{value:.3g}"
