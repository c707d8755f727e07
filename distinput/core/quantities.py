# SPDX-License-Identifier: Apache-2.0
"""Seconds, bytes and numbers as people read them."""

__all__ = ["bytes_text", "number_text", "seconds_text"]


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
