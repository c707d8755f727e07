# SPDX-License-Identifier: Apache-2.0
"""Writes litdata_answers.json: folders that LitData writes, and the items that its own reader gives of them.

Run it where the packages litdata and zstd are installed: python tests/formats/litdata_writes.py
"""

import base64
import json
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

ANSWERS = Path(__file__).with_name("litdata_answers.json")


def told(value: Any) -> Any:
    """An item as JSON."""
    if isinstance(value, dict):
        return {"dict": {key: told(inner) for key, inner in value.items()}}
    if isinstance(value, list | tuple):
        return {"tuple": [told(inner) for inner in value]}
    if isinstance(value, bytes | memoryview):
        return {"bytes": bytes(value).hex()}
    if isinstance(value, str):
        return {"bytes": value.encode().hex()}
    array = np.asarray(value)
    return {"dtype": array.dtype.name, "shape": list(array.shape), "data": array.tobytes().hex()}


def main() -> None:
    import torch
    from litdata import StreamingDataset
    from litdata.streaming.item_loader import TokensLoader
    from litdata.streaming.writer import BinaryWriter
    from PIL import Image

    def values(i: int) -> dict[str, Any]:
        return {
            "int": i - 3,
            "float": i / 4,
            "bool": i % 2 == 0,
            "text": "é" * i,
            "bytes": b"\xff" * i,
            "flat": np.arange(i, dtype=np.int16),
            "array": np.arange(2 * (i % 3 + 1), dtype=np.float32).reshape(-1, 2),
            "tensor": torch.arange(i),
            "deep": {"image": torch.full((2, i % 2, 1), i, dtype=torch.uint8), "pair": (i, [i, str(i)])},
        }

    def small(i: int) -> dict[str, Any]:
        return {"i": i, "flat": np.arange(i), "text": "y" * i}

    folders: dict[str, tuple[list[Any], dict[str, Any]]] = {
        "values": ([values(i) for i in range(7)], {}),
        "single": ([i * i for i in range(5)], {}),
        "pil": ([Image.fromarray(np.full((2, 3, 3), i, np.uint8)) for i in range(3)], {}),
        "text": ([{"i": i, "text": str(i) * i} for i in range(5)], {}),
        "nested": ([{"i": i, "list": ["a", "b"][: i % 3], "deep": {"k": i}} for i in range(5)], {}),
        "whole": ([small(i) for i in range(5)], {"compression": "zstd", "compression_level": "chunk"}),
        "level": ([small(i) for i in range(5)], {"compression": "zstd:3", "compression_level": "chunk"}),
        "frames": ([small(i) for i in range(5)], {"compression": "zstd", "compression_batch_size": 2}),
        "samples": ([small(i) for i in range(5)], {"compression": "zstd", "compression_level": "sample"}),
        "compressed text": ([{"i": i, "text": str(i)} for i in range(5)], {"compression": "zstd"}),
        "tokens": ([torch.arange(i, 3 * i + 2, dtype=torch.int32) for i in range(6)], {"item_loader": TokensLoader()}),
    }
    answers: dict[str, Any] = {}
    for name, (items, options) in folders.items():
        with tempfile.TemporaryDirectory() as folder:
            size = {"chunk_bytes": 64} if name == "tokens" else {"chunk_size": 3}
            writer = BinaryWriter(folder, **size, **options)
            for number, item in enumerate(items):
                writer[number] = item
            writer.done()
            writer.merge()
            files = {path.name: base64.b64encode(path.read_bytes()).decode() for path in sorted(Path(folder).iterdir())}
            read = StreamingDataset(folder, item_loader=TokensLoader(4) if name == "tokens" else None)
            answers[name] = {"files": files, "items": [told(read[number]) for number in range(len(read))]}
    ANSWERS.write_text(json.dumps(answers, indent=1, sort_keys=True) + "\n")


if __name__ == "__main__":
    sys.exit(main())
