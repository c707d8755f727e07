# SPDX-License-Identifier: Apache-2.0
"""Text of strangers, made visible: a terminal shows it, and does not obey it; secrets of URLs are not shown."""

import re

from distinput.url_secrets import without_secrets

_HIDDEN = "\x7f-\x9f\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\ufff9-\ufffb"
_NO_CHARACTERS = re.compile(f"[\x00-\x1f{_HIDDEN}]")
_NONE_IN_JSON = re.compile(f"[{_HIDDEN}]")
_NONE_IN_LINES = re.compile(f"[\x00-\x08\x0b-\x1f{_HIDDEN}]")


def visible(text: object, lines: bool = False) -> str:
    r"""A text in which what a terminal obeys instead of showing is written out: escapes, C1, marks that turn text around.

    Secrets of the URLs in it are cut out.

    Args:
      text: names of columns and files, say, which strangers may have made.
      lines: whether it may have several lines.

    >>> print(visible("a\x9b31m\u202eb"))
    a\x9b31m\u202eb
    """
    pattern = _NONE_IN_LINES if lines else _NO_CHARACTERS
    return pattern.sub(lambda found: repr(found[0])[1:-1], without_secrets(str(text)))


def visible_json(text: str) -> str:
    r"""JSON that means the same, with escapes in the place of what a terminal would obey.

    >>> print(visible_json('{"a\u202e": 1}'))
    {"a\u202e": 1}
    """
    return _NONE_IN_JSON.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
