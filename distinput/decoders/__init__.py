# SPDX-License-Identifier: Apache-2.0
"""Decoders (floor 2): from the bytes of a file to a value, one module a kind, in a table by name and by extension.

Nothing that is decoded is executed: there is no pickle here.
"""

from collections.abc import Callable
from typing import Any

from distinput.names.lazy import Registry

__all__ = ["DECODERS", "EXTENSIONS", "decoder_for"]

DECODERS: "Registry[Callable[[bytes], Any]]" = Registry(
    "decoder",
    {
        "bytes": "distinput.decoders.members:decode_bytes",
        "class": "distinput.decoders.members:decode_class",
        "gray": "distinput.decoders.image:decode_gray",
        "image": "distinput.decoders.image:decode_rgb",
        "json": "distinput.decoders.json:decode_json",
        "npy": "distinput.decoders.arrays:decode_npy",
        "npz": "distinput.decoders.arrays:decode_npz",
        "text": "distinput.decoders.members:decode_text",
    },
)
"""The decoders by name."""

EXTENSIONS: dict[str, str] = {
    **dict.fromkeys(("txt", "text", "transcript"), "text"),
    **dict.fromkeys(("cls", "cls2", "class", "count", "index", "inx", "id"), "class"),
    **dict.fromkeys(("json", "jsn"), "json"),
    **dict.fromkeys(("jpg", "jpeg", "png", "bmp", "webp"), "image"),
    "npy": "npy",
    "npz": "npz",
}
"""The decoder of each extension, as the library webdataset has it; others stay bytes, those of pickles among them."""


def decoder_for(extension: str) -> str:
    """The name of the decoder for an extension, of which the last part counts.

    >>> decoder_for("seg.PNG"), decoder_for("pickle")
    ('image', 'bytes')
    """
    return EXTENSIONS.get(extension.rpartition(".")[2].lower(), "bytes")
