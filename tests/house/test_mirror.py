# SPDX-License-Identifier: Apache-2.0
"""Tests mirror the package: `distinput/ops/shard.py` has `tests/ops/test_shard.py`."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "distinput"

# What tests the modules that have no test file of their name: the list may only get shorter.
ELSEWHERE: dict[str, tuple[str, ...]] = {
    "tests/cli runs the commands as users do": (
        "cli/command",
        "cli/files",
        "cli/job",
        "cli/pipelines",
        "cli/resume",
        "cli/training",
        "cli/worker",
    ),
    "tests/cluster/test_resolver.py makes the environments of all launchers": (
        "cluster/jax",
        "cluster/mpi",
        "cluster/torchrun",
    ),
    "tests/house/test_surface.py, tests/docs and tests/typing: tables of public names": (
        "data/element",
        "data/extension",
        "data/transformations",
        "dtypes",
        "errors",
        "extend",
        "io",
    ),
    "tests/distribute, tests/testing/test_devices.py and the golden answers": (
        "distribute/cluster_resolver",
        "distribute/cross_replica",
        "distribute/devices/threads",
        "distribute/experimental",
        "distribute/replica_context",
        "distribute/strategies/central_storage",
        "distribute/strategies/default",
        "distribute/strategies/mirrored",
        "distribute/strategies/multi_worker_mirrored",
        "distribute/strategies/one_device",
        "distribute/strategy",
        "distribute/strategy_extended",
        "distribute/value_context",
    ),
    "tests/distribute/engines/test_conformance.py and tests/engines run every engine, in threads and in processes": (
        "distribute/collectives/channel",
        "distribute/collectives/operation_id",
        "distribute/collectives/operations",
        "distribute/engines/jax",
        "distribute/engines/mpi",
        "distribute/engines/torch",
    ),
    "tests/distribute/input and test_input, test_exactly_once, test_multi_worker": (
        "distribute/input/checks",
        "distribute/input/comparison",
        "distribute/input/consumer",
        "distribute/input/cut_batches",
        "distribute/input/dealt_elements",
        "distribute/input/delivery",
        "distribute/input/distributed_dataset",
        "distribute/input/distributed_iterator",
        "distribute/input/distribution",
        "distribute/input/explanation",
        "distribute/input/input_context",
        "distribute/input/options",
        "distribute/input/own_pieces",
        "distribute/input/source",
        "distribute/input/spec",
        "distribute/input/step_builder",
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
        "kernels/example_columns",
        "kernels/example_keys",
        "kernels/example_values",
        "kernels/gather",
        "kernels/machine",
        "kernels/protobuf",
        "kernels/row_loop",
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
        "testing/ops/batching",
        "testing/ops/choosing",
        "testing/ops/flattening",
        "testing/ops/grouping",
        "testing/ops/mapping",
        "testing/ops/passing",
        "testing/ops/several",
        "testing/ops/shuffling",
        "testing/ops/stacking",
        "testing/pipeline",
        "testing/pipelines",
        "testing/sources/arrays",
        "testing/sources/memory",
        "testing/sources/parts",
        "testing/sources/records",
        "testing/sources/tables",
        "testing/sources/written",
    ),
}


def modules() -> set[str]:
    """Every module with code of its own, as a path below the package without its ending."""
    return {
        path.relative_to(PACKAGE).with_suffix("").as_posix()
        for path in PACKAGE.rglob("*.py")
        if path.name not in ("__init__.py", "__main__.py")
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
