# SPDX-License-Identifier: Apache-2.0
"""Decoding the members of a sample, each by its decoder; errors name the archive and the key."""

from functools import partial
from typing import Any

import numpy as np

from distinput.decoders import DECODERS, decoder_for
from distinput.decoders.json import decode_json
from distinput.errors import DistinputError, InvalidArgumentError
from distinput.names.lazy import dataclass
from distinput.values.spec import TensorSpec


@dataclass(frozen=True, eq=False)
class MemberDecoder:
    """The function of one sample, a dict of bytes.

    Args:
      decode: True: each member by the table of extensions; or a dict from names of members to names of decoders, to specs of
        JSON, or True for the table; others stay bytes.
      extensions: the extension of each member that has another name.
      key: the member that is the key of the sample.
      url: the member that is the name of the archive.
      hidden: members that are left out of the result.

    Raises:
      InvalidArgumentError: there is no such decoder.
    """

    decode: Any
    extensions: dict[str, str]
    key: str
    url: str
    hidden: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, chosen in ({} if self.decode is True else self.decode).items():
            self._decoder(name, chosen)

    def __call__(self, sample: dict[str, Any]) -> dict[str, Any]:
        """The sample with its members decoded.

        Raises:
          DistinputError: a member cannot be decoded; the message begins with the archive and the key.
        """
        values = {}
        for name, contents in sample.items():
            if name in self.hidden:
                continue
            chosen = True if self.decode is True else self.decode.get(name)
            if chosen is None or not isinstance(contents, bytes) or name in (self.key, self.url):
                values[name] = contents
                continue
            try:
                values[name] = self._decoder(name, chosen)(contents)
            except DistinputError as error:
                where = f"{sample[self.url].decode()}: sample {sample[self.key].decode(errors='replace')!r}: member {name!r}"
                raise type(error)(f"{where}: {error}") from error
        return values

    def _decoder(self, name: str, chosen: Any) -> Any:
        if chosen is True:
            return DECODERS.find(decoder_for(self.extensions.get(name, name)))
        if isinstance(chosen, str):
            return DECODERS.find(chosen)
        if isinstance(chosen, dict | TensorSpec):
            return partial(decode_json, spec=chosen)
        raise InvalidArgumentError(
            f"WebDataset: decode must give the name of a decoder, True, or a spec for JSON for member {name!r}, got "
            f"{chosen!r}; use map for functions of your own"
        )


# ----------------------------------------------------------------------------
# Text and numbers that are written as text.
# ----------------------------------------------------------------------------


def decode_bytes(contents: bytes) -> bytes:
    """The bytes themselves."""
    return contents


def decode_text(contents: bytes) -> bytes:
    """Text, which stays bytes, as texts are in elements; checked to be UTF-8.

    Raises:
      InvalidArgumentError: it is not.
    """
    try:
        contents.decode()
    except UnicodeDecodeError as error:
        raise InvalidArgumentError(f"it is not UTF-8: {error}; decode it as 'bytes'") from None
    return contents


def decode_class(contents: bytes) -> np.int64:
    r"""An integer in decimal digits.

    Raises:
      InvalidArgumentError: it is none, or does not fit into 64 bits.

    >>> decode_class(b" 7\n")
    np.int64(7)
    """
    text = contents.strip()
    if not 0 < len(text) < 21 or not text.removeprefix(b"-").isdigit() or not -(1 << 63) <= int(text) < 1 << 63:
        raise InvalidArgumentError(f"it must be an integer of 64 bits, got {contents[:40]!r}; decode it as 'bytes'")
    return np.int64(int(text))
