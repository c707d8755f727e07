# SPDX-License-Identifier: Apache-2.0
"""Tests mirror the package: `distinput/ops/shard.py` has `tests/ops/test_shard.py`."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"

# What tests the modules that have no test file of their name: the list may only get shorter.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "tests/cli runs the commands as users do": (
        "cli/commands",
        "cli/exit_status",
        "cli/cluster/start",
        "cli/cluster/worker",
        "cli/demo/files",
        "cli/demo/job",
        "cli/demo/pipelines",
        "cli/demo/resume",
        "cli/demo/training",
        "cli/demo/worker",
    ),
    "tests/cluster/test_resolver.py makes the environments of all launchers": (
        "cluster/jax",
        "cluster/mpi",
        "cluster/torchrun",
    ),
    "tests/data/file_datasets/test_reading.py and tests/formats": (
        "data/file_datasets/arrow",
        "data/file_datasets/file",
        "data/file_datasets/fixed_length_record",
        "data/file_datasets/npy",
        "data/file_datasets/parquet",
        "data/file_datasets/text_line",
        "data/file_datasets/tf_record",
    ),
    "tests/house/test_surface.py, tests/docs and tests/typing: tables of public names": (
        "data/element",
        "data/extension",
        "data/transformations",
        "dtypes",
        "extend",
        "io",
    ),
    "the formats that use them: tests/formats, its hostile files, and tests/testing/test_format.py": (
        "formats/arrow_file",
        "formats/arrow_messages",
        "formats/example_encoding",
        "formats/example_lists",
        "formats/format",
        "formats/parquet_file",
        "formats/portion",
        "formats/record_index",
        "formats/table_format",
    ),
    "tests/kernels/test_reference.py holds every kernel to its reference": (
        "kernels/balance",
        "kernels/compiler",
        "kernels/even_deal",
        "kernels/example_columns",
        "kernels/example_keys",
        "kernels/example_unknown",
        "kernels/example_values",
        "kernels/fair_choice",
        "kernels/gather",
        "kernels/machine",
        "kernels/protobuf",
        "kernels/row_loop",
        "kernels/tar_member",
        "kernels/token_batches",
        "kernels/windows",
    ),
    "tests/sharding (test_ops_of_others, test_laws, test_decision) and tests/ops": (
        "ops/bucket_by_sequence_length",
        "plan/needs",
        "plan/one_for_one",
        "plan/same_elements",
        "sharding/policies/auto",
        "sharding/policies/off",
    ),
    "tests/testing/judge/loaders/test_known.py and test_cases.py: the loaders of other libraries": (
        "testing/judge/loaders/accelerate",
        "testing/judge/loaders/grain",
        "testing/judge/loaders/huggingface",
        "testing/judge/loaders/ours",
        "testing/judge/loaders/tensorflow",
        "testing/judge/loaders/torch",
        "testing/judge/loaders/webdataset",
    ),
    "tests/outside/test_judged.py: loaders whose ranks are processes or threads": (
        "testing/judge/loaders/mosaicml",
        "testing/judge/loaders/ray",
    ),
    "tests/testing/judge/test_processes.py: ranks in processes, and those that are killed": (
        "testing/judge/laws/killed",
        "testing/judge/laws/worker_killed",
        "testing/judge/player",
    ),
    "tests/testing/judge/test_judging.py: the judge on loaders that break one law each": (
        "testing/judge/delivery",
        "testing/judge/finding",
        "testing/judge/laws/elastic",
        "testing/judge/laws/restart_twice",
        "testing/judge/laws/epochs",
        "testing/judge/laws/equal_steps",
        "testing/judge/laws/exactly_once",
        "testing/judge/laws/left_behind",
        "testing/judge/laws/partial_batches",
        "testing/judge/laws/restart",
        "testing/judge/laws/same_order",
        "testing/judge/laws/seeds",
        "testing/judge/laws/workers",
        "testing/judge/states",
        "testing/judge/trial",
        "testing/left_behind",
    ),
    "tests/testing runs the suites on ops of ours and on ops that are wrong on purpose; tests/laws draws from the pipelines": (
        "testing/collectives/agreement",
        "testing/collectives/checks",
        "testing/collectives/command",
        "testing/collectives/faults",
        "testing/collectives/groups",
        "testing/collectives/outcome",
        "testing/collectives/parts",
        "testing/collectives/processes",
        "testing/collectives/reductions",
        "testing/collectives/refusals",
        "testing/collectives/threads",
        "testing/collectives/transfers",
        "testing/functions",
        "testing/laws/blocks",
        "testing/laws/distributed",
        "testing/laws/facts",
        "testing/laws/nothing_left",
        "testing/laws/policies",
        "testing/laws/positions",
        "testing/laws/processes",
        "testing/laws/restart",
        "testing/laws/rewrites",
        "testing/laws/same_as",
        "testing/laws/shards",
        "testing/laws/spec",
        "testing/laws/trace",
        "testing/ops/arguments",
        "testing/ops/balanced",
        "testing/ops/batching",
        "testing/ops/choosing",
        "testing/ops/flattening",
        "testing/ops/grouping",
        "testing/ops/mapping",
        "testing/ops/packing",
        "testing/ops/passing",
        "testing/ops/random_maps",
        "testing/ops/several",
        "testing/ops/shuffling",
        "testing/ops/stacking",
        "testing/pipeline",
        "testing/pipelines",
        "testing/sources/arrays",
        "testing/sources/memory",
        "testing/sources/parts",
        "testing/sources/records",
        "testing/sources/databases",
        "testing/sources/tables",
        "testing/sources/text_rows",
        "testing/sources/written",
        "testing/strategy/checkpoints",
        "testing/strategy/comparing",
        "testing/strategy/contexts",
        "testing/strategy/numbers",
        "testing/strategy/training",
        "testing/strategy/variables",
    ),
}


def modules() -> set[str]:
    """Every module with code of its own, as a path below the package without its ending."""
    return {
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
        and path.relative_to(PACKAGE).parts[0] not in ("distribute", "lineage")  # whose tests stand by what they prove
    }


def its_test(module: str) -> Path:
    """Where the tests of a module are."""
    folder, _, name = module.rpartition("/")
    return ROOT / "tests" / folder / f"test_{name}.py"


def test_every_module_has_a_test_of_its_name() -> None:
    missing = {module for module in modules() if not its_test(module).exists()}
    assert sorted(missing - set(_elsewhere())) == [], "write a test file of this name"


def test_what_is_tested_elsewhere_has_no_test_of_its_own() -> None:
    assert sorted(set(_elsewhere()) - modules()) == [], "no such module"
    assert sorted(module for module in _elsewhere() if its_test(module).exists()) == [], (
        "it has a test now; drop the line"
    )


def _elsewhere() -> list[str]:
    return [module for modules_there in ELSEWHERE.values() for module in modules_there]
