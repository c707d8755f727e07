# SPDX-License-Identifier: Apache-2.0
"""What does a mixture of a hundred small Parquet files cost beside the same files one after the other?"""

from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.checksum import in_any_order
from benchmarks.harness import SEED, Case, Contender, Work, delivering, scaled

QUESTION = "100 Parquet files of texts, drawn evenly, in batches of 64: seconds of the cores beside the files in turn"
FILES, BATCH = 100, 64
ROWS = {20: 1000, 200: 1000, 2000: 300}
"""In a file, by the bytes of a text."""
REACH = {20: 0.5, 200: 0.5, 2000: 1 / 3}
"""What the files in turn take of the time of the mixture, on the cores."""


def prepare(folder: Path, scale: float) -> None:
    """The files, of each width of texts."""
    from distinput.io import write_parquet

    random = np.random.default_rng(SEED)
    for width in ROWS:
        rows = _rows(width, scale)
        for number in range(FILES):
            letters = random.integers(97, 123, 2 * width * rows, np.uint8).tobytes()
            sizes = random.integers(width // 2, width * 3 // 2, rows).tolist()
            texts = [letters[2 * width * row :][:size] for row, size in enumerate(sizes)]
            columns = {"number": np.arange(rows) + number * rows, "text": [text.decode() for text in texts]}
            write_parquet(_path(folder, width, number), columns)


def _rows(width: int, scale: float) -> int:
    return scaled(ROWS[width], scale, 3)


def _path(folder: Path, width: int, number: int) -> str:
    return str(folder / f"{width}-{number}.parquet")


def cases(folder: Path, scale: float) -> list[Case]:
    """Texts of three widths: files that are decoded whole, in two slices, and in several."""
    return [_case(folder, width, scale) for width in ROWS]


def _case(folder: Path, width: int, scale: float) -> Case:
    files = [_path(folder, width, number) for number in range(FILES)]

    def ours(mixed: bool) -> Work:
        import distinput as di

        sources = [di.data.ParquetDataset(file) for file in files]
        mixture = di.data.Dataset.sample_from_datasets(sources, seed=SEED)
        dataset = (mixture if mixed else di.data.ParquetDataset(files)).batch(BATCH)
        return delivering(lambda: dataset.as_numpy_iterator(), plain=_sums, checksum=in_any_order)

    def datasets() -> Work:
        from datasets import interleave_datasets, load_dataset

        sources = [load_dataset("parquet", data_files=file, split="train", streaming=True) for file in files]
        # Of equal lengths, so that none begins again.
        mixture = interleave_datasets(sources, stopping_strategy="all_exhausted")
        return delivering(lambda: mixture.batch(BATCH), plain=_sums, checksum=in_any_order)

    return Case(
        f"texts of {width} bytes",
        {"row": FILES * _rows(width, scale)},
        [
            Contender("distinput", "ours", lambda: ours(True)),
            Contender("the files in turn", "limit", lambda: ours(False), reach_cpu=REACH[width]),
            Contender("datasets, interleaved", "peer", datasets, ("datasets",), 2.0),
        ],
    )


def _sums(batch: dict[str, Any]) -> dict[str, Any]:
    """The numbers of a batch, and a checksum of each text."""
    texts = [text.encode() if isinstance(text, str) else text for text in batch["text"]]
    return {"number": np.asarray(batch["number"]), "text": np.array([crc32(text) for text in texts])}
