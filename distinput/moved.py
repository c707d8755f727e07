# SPDX-License-Identifier: Apache-2.0
"""Modules that moved: the old path stays importable for one release, with a warning that names the new one."""

import warnings
from functools import partial
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["moved_spec", "new_path"]

_MOVED_TO = {
    "": "core distribute.cross_device distribute.strategies partition",
    "columns.column": "core.bytes_objects core.strings",
    "columns.rows": "core.rows",
    "columns.state": "core.state",
    "data.dataset": "data.transformation",
    "data.file_datasets": (
        "data.file_datasets.array_record data.file_datasets.arrow data.file_datasets.fixed_length_record "
        "data.file_datasets.json_lines data.file_datasets.npy data.file_datasets.npz data.file_datasets.parquet "
        "data.file_datasets.text_line data.file_datasets.tf_record"
    ),
    "data.file_datasets.reading": "data.file_datasets.file",
    "data.file_datasets.samples": "data.file_datasets.image_folder data.file_datasets.web",
    "data.iterator": "data.element data.optional",
    "distribute.collectives.call_sequence": "distribute.collectives.device_calls",
    "distribute.collectives.channel": "distribute.collectives.fold distribute.collectives.message",
    "distribute.collectives.membership": (
        "distribute.collectives.deadline distribute.collectives.operation_id distribute.collectives.process_identity"
    ),
    "distribute.collectives.multi_worker_strategy": "distribute.device_exchange distribute.strategies.multi_worker_mirrored",
    "distribute.collectives.peers": "distribute.peers",
    "distribute.coordinator.closures": (
        "distribute.coordinator.closure distribute.coordinator.closure_queue distribute.coordinator.remote_value "
        "distribute.coordinator.resources"
    ),
    "distribute.coordinator.parameter_server": "distribute.input.unbuilt distribute.strategies.parameter_server",
    "distribute.coordinator.per_worker": "distribute.variables.per_worker",
    "distribute.coordinator.servers": "distribute.variables.holder distribute.variables.server_store",
    "distribute.coordinator.worker_seat": "distribute.coordinator.slots",
    "distribute.core.array_arithmetic": (
        "distribute.core.arithmetic distribute.exact_sum distribute.reduce_op distribute.reduction"
    ),
    "distribute.core.contexts": "distribute.modes distribute.replica_context distribute.run distribute.value_context",
    "distribute.core.current": "distribute.context distribute.strategies.default",
    "distribute.core.mirrored": (
        "distribute.cross_device.all_reduce distribute.cross_device.arithmetic distribute.cross_device.cross_device_ops "
        "distribute.cross_device.orders distribute.cross_device.to_one_device distribute.strategies.central_storage "
        "distribute.strategies.mirrored"
    ),
    "distribute.core.one_device": "distribute.strategies.one_device",
    "distribute.core.options": "distribute.communication distribute.input.input_context distribute.input.options",
    "distribute.core.rendezvous": "distribute.collectives.call_site distribute.creations distribute.rendezvous",
    "distribute.core.replica_reducer": (
        "distribute.arithmetic distribute.core.reduce distribute.cross_replica distribute.ragged_values "
        "distribute.sliced_values distribute.variables.indexed_slices"
    ),
    "distribute.core.replicas": "distribute.input.consumer distribute.missing distribute.replicas",
    "distribute.core.strategy": "distribute.strategy distribute.strategy_extended",
    "distribute.core.values": "distribute.operators distribute.values",
    "distribute.devices": (
        "distribute.device_name distribute.devices.choice distribute.devices.devices distribute.devices.names"
    ),
    "distribute.devices.jax": "distribute.devices.jax_arrays distribute.devices.jax_settings",
    "distribute.devices.torch": (
        "distribute.devices.pinned_copies distribute.devices.torch_arrays distribute.devices.torch_modes"
    ),
    "distribute.engines": "distribute.engines.installed",
    "distribute.engines.background": "distribute.engines.attempt distribute.engines.hosted_board",
    "distribute.engines.torch": "distribute.engines.torch_tensors distribute.engines.torch_works",
    "distribute.input.comparison": "distribute.input.facts distribute.input.names",
    "distribute.input.dealing": "distribute.input.drawing distribute.input.spec distribute.input.step_builder",
    "distribute.input.delivery": "distribute.input.steps_ahead",
    "distribute.input.distributed_dataset": "distribute.input.explanation distribute.input.saved distribute.input.watched",
    "distribute.input.distribution": "distribute.input.checks",
    "distribute.input.located": "lineage.located lineage.records",
    "distribute.input.sources": "distribute.input.own_batches distribute.input.step_source distribute.input.terms",
    "distribute.rpc.client": "distribute.rpc.encoding distribute.rpc.status",
    "distribute.seats.links": "distribute.seats.messages",
    "distribute.seats.local_cluster": "distribute.seats.dask_process",
    "distribute.seats.packing": "distribute.seats.importable",
    "distribute.seats.remote_seats": "distribute.seats.pulse",
    "distribute.tpu.engine": "distribute.tpu.logical_devices",
    "distribute.tpu.mesh": "distribute.tpu.device_values distribute.tpu.mesh_devices distribute.tpu.turns",
    "distribute.tpu.padding_rules": "distribute.tpu.equal_programs distribute.tpu.flat_program",
    "distribute.tpu.strategy": "distribute.run_counts distribute.strategies.tpu",
    "distribute.variables.kinds": (
        "distribute.variables.aggregate distribute.variables.aggregating_variable "
        "distribute.variables.distributed_variable distribute.variables.initial_value "
        "distribute.variables.resource_variable"
    ),
    "distribute.variables.store": "distribute.variables.updates",
    "distribute.variables.variable": (
        "distribute.variables.reference distribute.variables.row_methods distribute.variables.variable_slice"
    ),
    "files.manifest": "files.table",
    "formats": "formats.named",
    "functions.vectorized.answers": "functions.vectorized.stand_in",
    "functions.vectorized.whole_block": "functions.vectorized.transplant",
    "functions.workers": "functions.parts",
    "interop.jax.batches": "interop.jax.placement",
    "interop.torch.loader": "interop.torch.device_copies",
    "kernels.checksums": "kernels.tfrecord",
    "kernels.example_values": "kernels.example_columns",
    "kernels.random_orders": "kernels.shuffle",
    "kernels.spans": "kernels.ragged",
    "lineage.history": "distribute.input.kept_records distribute.input.ledger_view lineage.entries lineage.state_changes",
    "lineage.numbered": "lineage.reached lineage.record_numbers",
    "lineage.step_records": (
        "distribute.input.located_rows distribute.input.replayed distribute.input.skipped distribute.input.step_records"
    ),
    "ops.group_by_window": "streaming.groups",
    "ops.map": "ops.random_keys",
    "ops.rebatch": "ops.unbatch",
    "ops.snapshot": "streaming.kept_on_disk",
    "plan.families": "core.random plan.seeds values.randomness",
    "plan.options": "plan.policy plan.skip_errors",
    "run.processes": "core.processes",
    "run.run": "core.run",
    "sharding.policies": "sharding.policies.data sharding.policies.file",
    "sharding.policies.balanced": "partition.file_assignment sharding.file_assignment",
    "testing.collectives.checks": (
        "testing.collectives.agreement testing.collectives.groups testing.collectives.outcome testing.collectives.parts "
        "testing.collectives.reductions testing.collectives.refusals testing.collectives.transfers"
    ),
    "testing.collectives.suite": (
        "testing.collectives.command testing.collectives.faults testing.collectives.processes testing.collectives.threads"
    ),
    "testing.devices": "testing.recycled_buffers",
    "testing.elements": "testing.law testing.shuffles testing.turns",
    "testing.judge.delivery": "testing.judge.batch",
    "testing.judge.loaders.known": "testing.judge.loaders.cases",
    "testing.judge.loaders.libraries": (
        "testing.judge.loaders.accelerate testing.judge.loaders.grain testing.judge.loaders.huggingface "
        "testing.judge.loaders.mosaicml testing.judge.loaders.ray testing.judge.loaders.tensorflow "
        "testing.judge.loaders.torch testing.judge.loaders.webdataset"
    ),
    "testing.judge.play": "testing.judge.states",
    "testing.judge.processes": "testing.judge.watch",
    "testing.judge.report": "testing.judge.finding testing.judge.tables",
    "testing.laws.elements": (
        "testing.laws.blocks testing.laws.facts testing.laws.rewrites testing.laws.same_as testing.laws.spec"
    ),
    "testing.laws.restarts": "testing.laws.nothing_left testing.laws.positions testing.laws.processes testing.laws.restart",
    "testing.laws.shares": "testing.laws.distributed testing.laws.policies testing.laws.shards",
    "testing.ops.batching": "testing.ops.packing testing.ops.stacking",
    "testing.ops.mapping": "testing.ops.choosing testing.ops.passing testing.ops.random_maps testing.ops.shuffling",
    "testing.ops.several": "testing.ops.balanced testing.ops.flattening",
    "testing.pipeline": "testing.functions testing.ops.arguments",
    "testing.seats": "testing.parameter_server",
    "testing.sources.memory": "testing.sources.arrays",
    "testing.sources.records": "testing.sources.parts testing.sources.written",
    "testing.sources.tables": "testing.sources.databases testing.sources.text_rows",
    "tf.datasets": "data.numpy_iterator",
    "tf.tensors": "tf.python_function",
    "tpu.topology": "tpu.hardware_feature",
    "values.buffers": "core.buffers",
    "values.nest": "core.nest",
    "values.sparse_tensor": "core.sparse_tensor",
    "values.spec": "core.spec",
}
"""Each new place, and the old paths of what stands there; those of "" are packages that are no more."""

_MOVED = {old: new for new, paths in _MOVED_TO.items() for old in paths.split()}


def new_path(old: str) -> str | None:
    """Where a module is now; None if it did not move, empty for a package that is no more.

    >>> new_path("distinput.distribute.arithmetic"), new_path("distinput.distribute.core.replica_reducer")
    ('distinput.distribute.core.replica_reducer', None)
    """
    house, _, path = old.partition(".")
    new = _MOVED.get(path) if house == "distinput" else None
    return f"distinput.{new}" if new else new


def moved_spec(name: str) -> ModuleSpec | None:
    """What the import system needs of a moved module; None for others. The old name stands for the very same module."""
    new = new_path(name)
    return None if new is None else ModuleSpec(name, _Alias(new))


class _Alias(Loader):
    """Loads the module of the new path in the place of the old one."""

    def __init__(self, new: str) -> None:
        self._new = new
        self._own_spec: Any = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """The module; of a package a stand-in, so that its modules are looked up in the table one by one."""
        stand_in = ModuleType(spec.name, "A package that moved.")
        if not self._new:
            spec.submodule_search_locations = []
            return stand_in
        warnings.warn(
            f"{spec.name} moved: import {self._new} instead; the old path goes with the next release",
            DeprecationWarning,
            stacklevel=2,
        )
        made = import_module(self._new)
        if hasattr(made, "__path__"):
            spec.submodule_search_locations = []
            stand_in.__getattr__ = partial(getattr, made)  # type: ignore[method-assign]
            return stand_in
        self._own_spec = made.__spec__
        return made

    def exec_module(self, module: ModuleType) -> None:
        """Give the module its own spec back, which the import system has replaced."""
        if self._own_spec is not None:
            module.__spec__ = self._own_spec
