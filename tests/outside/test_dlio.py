# SPDX-License-Identifier: Apache-2.0
"""DLIO trains on small files with our entrant, to the last step of each epoch, on one rank and on two."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import distinput as di

pytest.importorskip("dlio_benchmark", reason="left out: dlio_benchmark is not installed")
FILES, RECORDS, BATCH, EPOCHS = 20, 5, 2, 2  # DLIO leaves out files that do not fill a step of all ranks


def dlio(folder: Path, ranks: int, *words: str) -> None:
    program = [sys.executable, "-m", "dlio_benchmark.main", *words, f"hydra.run.dir={folder}/out"]
    given = [
        f"++workload.dataset.data_folder={folder}/data",
        f"++workload.dataset.num_files_train={FILES}",
        "++workload.dataset.record_length_bytes=4096",
        "++workload.dataset.record_length_bytes_stdev=0",
    ]
    many = ["mpirun", "--oversubscribe", "-n", str(ranks)] if ranks > 1 else []
    paths = [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH", "")]
    done = subprocess.run(
        [*many, *program, *given],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths))},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-2000:]


def steps(folder: Path, ranks: int) -> list[int]:
    """The steps that each rank had in each epoch, as DLIO counted what came."""
    told = [json.loads((folder / "out" / f"{rank}_output.json").read_text()) for rank in range(ranks)]
    return [len(epoch["load"]["block1"]) for rank in told for epoch in map(rank.get, map(str, range(1, EPOCHS + 1)))]


@pytest.mark.parametrize("ranks", [1, 2])
@pytest.mark.parametrize("workload, records", [("unet3d_a100", 1), ("resnet50_a100", RECORDS)])
def test_epochs_of_small_files(tmp_path: Path, workload: str, records: int, ranks: int) -> None:
    if ranks > 1 and shutil.which("mpirun") is None:
        pytest.skip("left out: mpirun is not on the PATH")
    if records == 1:
        dlio(
            tmp_path,
            1,
            f"workload={workload}",
            "++workload.workflow.generate_data=True",
            "++workload.workflow.train=False",
        )
    else:
        write_examples(tmp_path / "data" / "train")
    dlio(
        tmp_path,
        ranks,
        f"workload={workload}",
        "++workload.framework=pytorch",
        "++workload.workflow.checkpoint=False",
        f"++workload.dataset.num_samples_per_file={records}",
        "++workload.reader.data_loader=synthetic",
        "++workload.reader.data_loader_classname=tests.outside.dlio_entrant.Entrant",
        "++workload.reader.data_loader_sampler=iterative",
        f"++workload.reader.batch_size={BATCH}",
        f"++workload.train.epochs={EPOCHS}",
        "++workload.train.computation_time=0.001",
    )
    assert steps(tmp_path, ranks) == [FILES * records // BATCH // ranks] * EPOCHS * ranks


def write_examples(folder: Path) -> None:
    """Files of TFRecord as DLIO makes them, which needs TensorFlow for it."""
    folder.mkdir(parents=True)
    (folder.parent / "valid").mkdir()
    for number in range(FILES):
        with di.io.TFRecordWriter(folder / f"img_{number}_of_{FILES}.tfrecord") as writer:
            for _ in range(RECORDS):
                writer.write(di.io.encode_example({"image": bytes(4096), "size": 4096}))
