# SPDX-License-Identifier: Apache-2.0
"""Runs DLIO; as a program it prints how many samples a second DLIO counts with TensorFlow's loader and with our entrant."""

import importlib.util
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from statistics import median

import distinput as di

__all__ = ["ENTRANT", "dlio", "write_examples"]

ENTRANT = (
    "++workload.framework=pytorch",
    "++workload.reader.data_loader=synthetic",
    "++workload.reader.data_loader_classname=dlio_entrant.Entrant",
    "++workload.reader.data_loader_sampler=iterative",
)
_TENSORFLOW = ("++workload.framework=tensorflow", "++workload.reader.data_loader=tensorflow")
_FILES, _RECORDS, _BYTES, _BATCH, _EPOCHS, _RUNS = 200, 10, 114_000, 20, 4, 2


def dlio(folder: Path, ranks: int, files: int, length: int, *words: str) -> None:
    """Runs DLIO on `folder/data`; what it finds goes to `folder/out`.

    Raises:
      AssertionError: it failed; its last words.
    """
    program = [sys.executable, "-m", "dlio_benchmark.main", *words, f"hydra.run.dir={folder}/out"]
    given = [
        f"++workload.dataset.data_folder={folder}/data",
        f"++workload.dataset.num_files_train={files}",
        f"++workload.dataset.record_length_bytes={length}",
        "++workload.dataset.record_length_bytes_stdev=0",
        "++workload.workflow.checkpoint=False",
    ]
    many = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    here = Path(__file__).parent
    # The entrant by its file alone: packages of DLIO bring a package `tests` of theirs.
    paths = [str(here.parents[1]), str(here), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*many, *program, *given],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    if done.returncode != 0:
        raise AssertionError(done.stdout[-3000:] + done.stderr[-2000:])


def write_examples(folder: Path, files: int, records: int, length: int) -> None:
    """Files of TFRecord as DLIO makes them, which needs TensorFlow for it."""
    folder.mkdir(parents=True)
    (folder.parent / "valid").mkdir()
    for number in range(files):
        with di.io.TFRecordWriter(folder / f"img_{number}_of_{files}.tfrecord") as writer:
            for _ in range(records):
                writer.write(di.io.encode_example({"image": bytes(length), "size": length}))


def main() -> None:
    """DLIO's resnet50 without its computation, each loader in turn."""
    missing = [name for name in ("dlio_benchmark", "tensorflow", "torch") if importlib.util.find_spec(name) is None]
    if missing:
        print(f"DLIO is left out: {', '.join(missing)} is not installed; see tests/outside/README.md")
        return
    speeds: dict[str, list[float]] = {"tf.data": [], "distinput": []}
    with tempfile.TemporaryDirectory(prefix="distinput-dlio-") as name:
        folder = Path(name)
        write_examples(folder / "data" / "train", _FILES, _RECORDS, _BYTES)
        for _ in range(_RUNS):
            for loader, words in zip(speeds, (_TENSORFLOW, ENTRANT), strict=True):
                dlio(
                    *(folder, 1, _FILES, _BYTES, "workload=resnet50_a100", *words),
                    f"++workload.dataset.num_samples_per_file={_RECORDS}",
                    f"++workload.reader.batch_size={_BATCH}",
                    "++workload.reader.read_threads=2",
                    f"++workload.train.epochs={_EPOCHS}",
                    "++workload.train.computation_time=0.0",
                )
                told = json.loads((folder / "out" / "summary.json").read_text())
                speeds[loader] += told["metric"]["train_throughput_samples_per_second"][1:]  # the first epoch warms up
    print(f"DLIO's resnet50, {_FILES} files of {_RECORDS} x {_BYTES:,} bytes, batch {_BATCH}, 2 threads:")
    for loader, found in speeds.items():
        print(
            f"  {loader}: {median(found):,.0f} samples/s, {min(found):,.0f} to {max(found):,.0f} in {len(found)} epochs"
        )


if __name__ == "__main__":
    main()
