# SPDX-License-Identifier: Apache-2.0
"""Make the pictures of docs/reports.md: `python docs/pictures/make_report_pictures.py` needs Chromium and Pillow."""

import io
import re
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import distinput as di
from distinput.reports import Recording, graph_of, svg_of

HERE = Path(__file__).parent


def graph() -> str:
    """The graph of a pipeline with two inputs."""
    images = di.data.Dataset.from_tensor_slices({"image": np.zeros((1000, 64), np.uint8)})
    labels = di.data.Dataset.range(1000).map(lambda x: x % 10, name="labels")
    dataset = di.data.Dataset.zip(images, labels).shuffle(500, seed=1).batch(32).prefetch(2)
    return re.sub(r"made at [^<]*", "made in train.py", svg_of(graph_of(dataset)))


def report() -> str:
    """The report of a pass in which a function is slow."""

    def augment(row: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
        noise = np.sort(np.random.default_rng(0).random(12_000))[: row["image"].size]
        return {**row, "image": row["image"] + noise.astype(np.float32)}

    rows = {"image": np.zeros((8000, 64), np.float32), "label": np.arange(8000)}
    dataset = di.data.Dataset.from_tensor_slices(rows).shuffle(1000, seed=1).map(augment, num_parallel_calls=2)
    recording = Recording(dataset.batch(64).prefetch(256))
    for _ in recording:
        time.sleep(0.001)  # as if a model were trained
    with tempfile.TemporaryDirectory() as folder:
        recording.write_report(f"{folder}/report.html")
        page = Path(folder, "report.html").read_text(encoding="utf-8")
    return page.replace(str(Path(__file__)), "train.py")


def photographed(page: str, width: int, height: int) -> bytes:
    """The top of a page as a PNG."""
    chromium = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if chromium is None:
        sys.exit("Chromium is not installed")
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "page.html").write_text(page, encoding="utf-8")
        command = [chromium, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars"]
        command += [f"--window-size={width},{height}", f"--screenshot={folder}/page.png", f"file://{folder}/page.html"]
        subprocess.run(command, check=True, capture_output=True, timeout=100)
        return Path(folder, "page.png").read_bytes()


def main() -> None:
    """Write both pictures beside this file."""
    from PIL import Image

    (HERE / "graph.svg").write_text(graph() + "\n", encoding="utf-8")
    Image.open(io.BytesIO(photographed(report(), 640, 1900))).convert("RGB").save(HERE / "report.webp", quality=80)


if __name__ == "__main__":
    main()
