# SPDX-License-Identifier: Apache-2.0
"""DLIO trains on small files with our entrant, to the last step of each epoch, on one rank and on two."""

import json
import shutil
from pathlib import Path

import pytest

from tests.outside.dlio_speed import ENTRANT, dlio, write_examples

pytest.importorskip("dlio_benchmark", reason="left out: dlio_benchmark is not installed")
FILES, RECORDS, BYTES, BATCH, EPOCHS = 20, 5, 4096, 2, 2  # DLIO leaves out files that do not fill a step of all ranks


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
            *(tmp_path, 1, FILES, BYTES, f"workload={workload}"),
            "++workload.workflow.generate_data=True",
            "++workload.workflow.train=False",
        )
    else:
        write_examples(tmp_path / "data" / "train", FILES, RECORDS, BYTES)
    dlio(
        *(tmp_path, ranks, FILES, BYTES, f"workload={workload}", *ENTRANT),
        f"++workload.dataset.num_samples_per_file={records}",
        f"++workload.reader.batch_size={BATCH}",
        f"++workload.train.epochs={EPOCHS}",
        "++workload.train.computation_time=0.001",
    )
    assert steps(tmp_path, ranks) == [FILES * records // BATCH // ranks] * EPOCHS * ranks
