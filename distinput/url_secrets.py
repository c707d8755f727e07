# SPDX-License-Identifier: Apache-2.0
"""Secrets in URLs: signatures, tokens and passwords are cut out wherever a text is made, and are no part of a file's name.

Errors, warnings, plans, reports, states and files of records name files. This is the one place that says which parts of a URL
must not be in them.
"""

import re
from contextlib import suppress
from functools import cache
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from logging import LogRecord

T = TypeVar("T")

CUT = "***"
"""What stands in the place of what was cut out."""

_URL = r"""[A-Za-z][A-Za-z0-9+.-]*://[^\s'"<>`\\\x00]+"""
_SECRET = (
    r"(?i)^sig$|signature|^sign$|token(?!iz|s$)|secret|passw|passphrase|^pwd$|^pass$|credential|^creds?$|^auth(?!or)|^bearer$"
    r"|session|^jwt$|^ticket$|^otp$|^code$|(?:access|account|api|private|shared|subscription).?key"
)
"""Names of parts of a query that are secret."""
_KEY = r"(?i)key=[^/.]{8,}"
"""A key to a service, rather than that of an object."""
_OF_SIGNATURES = (
    r"(?i)x-(?:amz|goog|oss|cos|obs|ms|bz)-.*|awsaccesskeyid|googleaccessid|ossaccesskeyid|key-pair-id|policy|expires"
    r"|s[terpvrs]|spr|srt|sip|sdd|sk[tesv]|skoid|sktid"
)
"""Names of what goes with a signature, and changes with it: when it was made, for how long, and for whom."""
_LONG = 6
"""Shorter values are cut out where their names stand before them."""
_USER = r"[^/?#@]*@"


def without_secrets(text: str) -> str:
    """A text with the secrets of all URLs in it cut out.

    >>> without_secrets("cannot read https://me:pass@host/a.txt?versionId=3&X-Amz-Signature=0f3a&X-Amz-Date=2024: gone")
    'cannot read https://***@host/a.txt?versionId=3&***: gone'
    >>> without_secrets("s3://bucket/a.txt"), without_secrets("abfs://container@account/a.txt?part=1")
    ('s3://bucket/a.txt', 'abfs://container@account/a.txt?part=1')
    """
    return re.sub(_URL, lambda found: _cut(found[0], CUT), text) if "://" in text else text


def public_url(url: str) -> str:
    """The URL of the same file for everybody: without secrets, and without a sign of them.

    >>> public_url("https://host/a.txt?X-Amz-Signature=0f3a&X-Amz-Expires=60"), public_url("https://me@host/a.txt?part=1")
    ('https://host/a.txt', 'https://host/a.txt?part=1')
    """
    return re.sub(_URL, lambda found: _cut(found[0], ""), url) if "://" in url else url


def printed_without_secrets(kind: type[T]) -> type[T]:
    """Make a class whose objects print the names of files print them without secrets; put it above `@dataclass`."""
    plain = kind.__repr__
    kind.__repr__ = lambda self: without_secrets(plain(self))  # type: ignore[method-assign]
    return kind


def _cut(url: str, mark: str) -> str:
    scheme, _, rest = url.partition("://")
    user = re.match(_USER, rest)
    if user is not None and (":" in user[0] or scheme.lower().startswith(("http", "ftp", "git", "ssh", "sftp"))):
        rest = (f"{mark}@" if mark else "") + rest[user.end() :]
    address, asks, query = rest.partition("?")
    if not asks:
        return f"{scheme}://{rest}"
    query, closing = _closed(query)
    parts = query.split("&")
    secret = [part for part in parts if _is_secret(part)]
    if not secret:
        return f"{scheme}://{rest}"
    kept = [part for part in parts if part not in secret and not re.fullmatch(_OF_SIGNATURES, part.partition("=")[0])]
    kept += [mark] if mark else []
    return f"{scheme}://{address}{'?' if kept else ''}{'&'.join(kept)}{closing}"


def _closed(query: str) -> tuple[str, str]:
    """A query, and what a sentence puts behind it."""
    end = len(query.rstrip(".,;:!)]}"))
    return query[:end], query[end:]


def _is_secret(part: str) -> bool:
    name, _, value = part.partition("=")
    return value not in ("", CUT) and bool(re.search(_SECRET, name) or re.fullmatch(_KEY, part))


def of_url(error: BaseException, url: str) -> BaseException:
    """An error of another package about a URL, or one in its place if it shows secrets of the URL, however it writes them."""
    from urllib.parse import quote

    _, _, query = url.partition("?")
    secret = [part for part in query.split("&") if _is_secret(part)]
    values = [part.partition("=")[2] for part in secret]
    shown = [*secret, *[value for value in values if len(value) >= _LONG]]
    text = f"{type(error).__name__}: {error}"
    cut = text
    for form in sorted({*shown, *[quote(each, "") for each in shown], *map(quote, shown)}, key=len, reverse=True):
        cut = cut.replace(form, CUT)
    return error if cut == text else RuntimeError(without_secrets(cut))


def scrub(error: BaseException) -> None:
    """Cut secrets out of an error, of what caused it, and of their notes; those of other packages too.

    An error that still shows one, since it makes its text anew, is taken out of the chain of causes.
    """
    seen: set[int] = set()
    while id(error) not in seen:
        seen.add(id(error))
        _scrub_one(error)
        for name in ("__cause__", "__context__"):
            other = getattr(error, name)
            if other is None or id(other) in seen:
                continue
            _scrub_one(other)
            if _shows(other):
                setattr(error, name, _told(other) if name == "__cause__" else None)
        following = error.__cause__ or error.__context__
        if following is None:
            return
        error = following


@cache
def cut_from_logs() -> None:
    """Cut secrets out of what the packages that open URLs write to their logs."""
    import logging  # takes long, and most programs need none of it

    for name in ("fsspec", "fsspec.http", "s3fs", "gcsfs", "adlfs", "aiohttp.client", "urllib3.connectionpool"):
        logging.getLogger(name).addFilter(_cut_from_record)


def _cut_from_record(record: "LogRecord") -> bool:
    text = record.getMessage()
    cut = without_secrets(text)
    if cut != text:
        record.msg, record.args = cut, None
    error = record.exc_info[1] if record.exc_info else None
    if error is not None:
        scrub(error)
        if _shows(error):
            told = _told(error)
            record.exc_info = type(told), told, None
    return True


def _scrub_one(error: BaseException) -> None:
    notes = getattr(error, "__notes__", None)
    if isinstance(notes, list):
        notes[:] = [without_secrets(note) if isinstance(note, str) else note for note in notes]
    if not _shows(error):
        return
    with suppress(Exception):  # of other packages, which may not let themselves be changed
        error.args = tuple([_clean(each) for each in error.args])
    for name in ("filename", "filename2", "strerror", "msg", "message", "reason", "url"):
        with suppress(Exception):
            value = getattr(error, name, None)
            if isinstance(value, str) and "://" in value:
                setattr(error, name, without_secrets(value))


def _clean(value: Any) -> Any:
    return without_secrets(value) if isinstance(value, str) else value


def _shows(error: BaseException) -> bool:
    try:
        text = f"{error}{error!r}"
    except Exception:  # noqa: BLE001 - an error that cannot be printed
        return False
    return without_secrets(text) != text


def _told(error: BaseException) -> BaseException:
    made = RuntimeError(without_secrets(f"{type(error).__name__}: {error}"))
    made.__suppress_context__ = True
    return made
