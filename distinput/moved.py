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

_MOVED = {
    "core": "",
    "core.buffers": "values.buffers",
    "core.bytes_objects": "columns.column",
    "core.nest": "values.nest",
    "core.processes": "run.processes",
    "core.random": "values.randomness",
    "core.rows": "columns.rows",
    "core.run": "run.run",
    "core.sparse_tensor": "values.sparse_tensor",
    "core.spec": "values.spec",
    "core.state": "columns.state",
    "core.strings": "columns.column",
    "data.element": "data.iterator",
    "data.file_datasets.array_record": "data.file_datasets",
    "data.file_datasets.arrow": "data.file_datasets",
    "data.file_datasets.file": "data.file_datasets.reading",
    "data.file_datasets.fixed_length_record": "data.file_datasets",
    "data.file_datasets.image_folder": "data.file_datasets.samples",
    "data.file_datasets.json_lines": "data.file_datasets",
    "data.file_datasets.npy": "data.file_datasets",
    "data.file_datasets.npz": "data.file_datasets",
    "data.file_datasets.parquet": "data.file_datasets",
    "data.file_datasets.text_line": "data.file_datasets",
    "data.file_datasets.tf_record": "data.file_datasets",
    "data.file_datasets.web": "data.file_datasets.samples",
    "data.optional": "data.iterator",
    "data.transformation": "data.dataset",
    "distribute.arithmetic": "distribute.core.replica_reducer",
    "distribute.collectives.call_site": "distribute.core.rendezvous",
    "distribute.collectives.deadline": "distribute.collectives.membership",
    "distribute.collectives.device_calls": "distribute.collectives.call_sequence",
    "distribute.collectives.fold": "distribute.collectives.channel",
    "distribute.collectives.message": "distribute.collectives.channel",
    "distribute.collectives.operation_id": "distribute.collectives.membership",
    "distribute.collectives.process_identity": "distribute.collectives.membership",
    "distribute.communication": "distribute.core.options",
    "distribute.context": "distribute.core.current",
    "distribute.coordinator.closure": "distribute.coordinator.closures",
    "distribute.coordinator.closure_queue": "distribute.coordinator.closures",
    "distribute.coordinator.remote_value": "distribute.coordinator.closures",
    "distribute.coordinator.resources": "distribute.coordinator.closures",
    "distribute.coordinator.slots": "distribute.coordinator.worker_seat",
    "distribute.core.arithmetic": "distribute.core.array_arithmetic",
    "distribute.core.reduce": "distribute.core.replica_reducer",
    "distribute.creations": "distribute.core.rendezvous",
    "distribute.cross_device": "",
    "distribute.cross_device.all_reduce": "distribute.core.mirrored",
    "distribute.cross_device.arithmetic": "distribute.core.mirrored",
    "distribute.cross_device.cross_device_ops": "distribute.core.mirrored",
    "distribute.cross_device.orders": "distribute.core.mirrored",
    "distribute.cross_device.to_one_device": "distribute.core.mirrored",
    "distribute.cross_replica": "distribute.core.replica_reducer",
    "distribute.device_exchange": "distribute.collectives.multi_worker_strategy",
    "distribute.device_name": "distribute.devices",
    "distribute.devices.choice": "distribute.devices",
    "distribute.devices.devices": "distribute.devices",
    "distribute.devices.jax_arrays": "distribute.devices.jax",
    "distribute.devices.jax_settings": "distribute.devices.jax",
    "distribute.devices.names": "distribute.devices",
    "distribute.devices.pinned_copies": "distribute.devices.torch",
    "distribute.devices.torch_arrays": "distribute.devices.torch",
    "distribute.devices.torch_modes": "distribute.devices.torch",
    "distribute.engines.attempt": "distribute.engines.background",
    "distribute.engines.hosted_board": "distribute.engines.background",
    "distribute.engines.installed": "distribute.engines",
    "distribute.engines.torch_tensors": "distribute.engines.torch",
    "distribute.engines.torch_works": "distribute.engines.torch",
    "distribute.exact_sum": "distribute.core.array_arithmetic",
    "distribute.input.checks": "distribute.input.distribution",
    "distribute.input.consumer": "distribute.core.replicas",
    "distribute.input.drawing": "distribute.input.dealing",
    "distribute.input.explanation": "distribute.input.distributed_dataset",
    "distribute.input.facts": "distribute.input.comparison",
    "distribute.input.input_context": "distribute.core.options",
    "distribute.input.kept_records": "lineage.history",
    "distribute.input.ledger_view": "lineage.history",
    "distribute.input.located_rows": "lineage.step_records",
    "distribute.input.names": "distribute.input.comparison",
    "distribute.input.options": "distribute.core.options",
    "distribute.input.own_batches": "distribute.input.sources",
    "distribute.input.replayed": "lineage.step_records",
    "distribute.input.saved": "distribute.input.distributed_dataset",
    "distribute.input.skipped": "lineage.step_records",
    "distribute.input.spec": "distribute.input.dealing",
    "distribute.input.step_builder": "distribute.input.dealing",
    "distribute.input.step_records": "lineage.step_records",
    "distribute.input.step_source": "distribute.input.sources",
    "distribute.input.steps_ahead": "distribute.input.delivery",
    "distribute.input.terms": "distribute.input.sources",
    "distribute.input.unbuilt": "distribute.coordinator.parameter_server",
    "distribute.input.watched": "distribute.input.distributed_dataset",
    "distribute.missing": "distribute.core.replicas",
    "distribute.modes": "distribute.core.contexts",
    "distribute.operators": "distribute.core.values",
    "distribute.peers": "distribute.collectives.peers",
    "distribute.ragged_values": "distribute.core.replica_reducer",
    "distribute.reduce_op": "distribute.core.array_arithmetic",
    "distribute.reduction": "distribute.core.array_arithmetic",
    "distribute.rendezvous": "distribute.core.rendezvous",
    "distribute.replica_context": "distribute.core.contexts",
    "distribute.replicas": "distribute.core.replicas",
    "distribute.rpc.encoding": "distribute.rpc.client",
    "distribute.rpc.status": "distribute.rpc.client",
    "distribute.run": "distribute.core.contexts",
    "distribute.run_counts": "distribute.tpu.strategy",
    "distribute.seats.dask_process": "distribute.seats.local_cluster",
    "distribute.seats.importable": "distribute.seats.packing",
    "distribute.seats.messages": "distribute.seats.links",
    "distribute.seats.pulse": "distribute.seats.remote_seats",
    "distribute.sliced_values": "distribute.core.replica_reducer",
    "distribute.strategies": "",
    "distribute.strategies.central_storage": "distribute.core.mirrored",
    "distribute.strategies.default": "distribute.core.current",
    "distribute.strategies.mirrored": "distribute.core.mirrored",
    "distribute.strategies.multi_worker_mirrored": "distribute.collectives.multi_worker_strategy",
    "distribute.strategies.one_device": "distribute.core.one_device",
    "distribute.strategies.parameter_server": "distribute.coordinator.parameter_server",
    "distribute.strategies.tpu": "distribute.tpu.strategy",
    "distribute.strategy": "distribute.core.strategy",
    "distribute.strategy_extended": "distribute.core.strategy",
    "distribute.tpu.device_values": "distribute.tpu.mesh",
    "distribute.tpu.equal_programs": "distribute.tpu.padding_rules",
    "distribute.tpu.flat_program": "distribute.tpu.padding_rules",
    "distribute.tpu.logical_devices": "distribute.tpu.engine",
    "distribute.tpu.mesh_devices": "distribute.tpu.mesh",
    "distribute.tpu.turns": "distribute.tpu.mesh",
    "distribute.value_context": "distribute.core.contexts",
    "distribute.values": "distribute.core.values",
    "distribute.variables.aggregate": "distribute.variables.kinds",
    "distribute.variables.aggregating_variable": "distribute.variables.kinds",
    "distribute.variables.distributed_variable": "distribute.variables.kinds",
    "distribute.variables.holder": "distribute.coordinator.servers",
    "distribute.variables.indexed_slices": "distribute.core.replica_reducer",
    "distribute.variables.initial_value": "distribute.variables.kinds",
    "distribute.variables.per_worker": "distribute.coordinator.per_worker",
    "distribute.variables.reference": "distribute.variables.variable",
    "distribute.variables.resource_variable": "distribute.variables.kinds",
    "distribute.variables.row_methods": "distribute.variables.variable",
    "distribute.variables.server_store": "distribute.coordinator.servers",
    "distribute.variables.updates": "distribute.variables.store",
    "distribute.variables.variable_slice": "distribute.variables.variable",
    "files.table": "files.manifest",
    "formats.named": "formats",
    "interop.jax.placement": "interop.jax.batches",
    "interop.torch.device_copies": "interop.torch.loader",
    "functions.parts": "functions.workers",
    "functions.vectorized.stand_in": "functions.vectorized.answers",
    "functions.vectorized.transplant": "functions.vectorized.whole_block",
    "kernels.example_columns": "kernels.example_values",
    "kernels.ragged": "kernels.spans",
    "kernels.shuffle": "kernels.random_orders",
    "kernels.tfrecord": "kernels.checksums",
    "lineage.entries": "lineage.history",
    "lineage.located": "distribute.input.located",
    "lineage.reached": "lineage.numbered",
    "lineage.record_numbers": "lineage.numbered",
    "lineage.records": "distribute.input.located",
    "lineage.state_changes": "lineage.history",
    "ops.random_keys": "ops.map",
    "ops.unbatch": "ops.rebatch",
    "partition": "",
    "partition.file_assignment": "sharding.policies.balanced",
    "plan.policy": "plan.options",
    "plan.seeds": "plan.families",
    "plan.skip_errors": "plan.options",
    "sharding.file_assignment": "sharding.policies.balanced",
    "sharding.policies.data": "sharding.policies",
    "sharding.policies.file": "sharding.policies",
    "streaming.groups": "ops.group_by_window",
    "streaming.kept_on_disk": "ops.snapshot",
    "testing.collectives.agreement": "testing.collectives.checks",
    "testing.collectives.command": "testing.collectives.suite",
    "testing.collectives.faults": "testing.collectives.suite",
    "testing.collectives.groups": "testing.collectives.checks",
    "testing.collectives.outcome": "testing.collectives.checks",
    "testing.collectives.parts": "testing.collectives.checks",
    "testing.collectives.processes": "testing.collectives.suite",
    "testing.collectives.reductions": "testing.collectives.checks",
    "testing.collectives.refusals": "testing.collectives.checks",
    "testing.collectives.threads": "testing.collectives.suite",
    "testing.collectives.transfers": "testing.collectives.checks",
    "testing.functions": "testing.pipeline",
    "testing.judge.batch": "testing.judge.delivery",
    "testing.judge.finding": "testing.judge.report",
    "testing.judge.loaders.accelerate": "testing.judge.loaders.libraries",
    "testing.judge.loaders.cases": "testing.judge.loaders.known",
    "testing.judge.loaders.grain": "testing.judge.loaders.libraries",
    "testing.judge.loaders.huggingface": "testing.judge.loaders.libraries",
    "testing.judge.loaders.mosaicml": "testing.judge.loaders.libraries",
    "testing.judge.loaders.ray": "testing.judge.loaders.libraries",
    "testing.judge.loaders.tensorflow": "testing.judge.loaders.libraries",
    "testing.judge.loaders.torch": "testing.judge.loaders.libraries",
    "testing.judge.loaders.webdataset": "testing.judge.loaders.libraries",
    "testing.judge.states": "testing.judge.play",
    "testing.judge.tables": "testing.judge.report",
    "testing.judge.watch": "testing.judge.processes",
    "testing.law": "testing.elements",
    "testing.laws.blocks": "testing.laws.elements",
    "testing.laws.distributed": "testing.laws.shares",
    "testing.laws.facts": "testing.laws.elements",
    "testing.laws.nothing_left": "testing.laws.restarts",
    "testing.laws.policies": "testing.laws.shares",
    "testing.laws.positions": "testing.laws.restarts",
    "testing.laws.processes": "testing.laws.restarts",
    "testing.laws.restart": "testing.laws.restarts",
    "testing.laws.rewrites": "testing.laws.elements",
    "testing.laws.same_as": "testing.laws.elements",
    "testing.laws.shards": "testing.laws.shares",
    "testing.laws.spec": "testing.laws.elements",
    "testing.ops.arguments": "testing.pipeline",
    "testing.ops.balanced": "testing.ops.several",
    "testing.ops.choosing": "testing.ops.mapping",
    "testing.ops.flattening": "testing.ops.several",
    "testing.ops.packing": "testing.ops.batching",
    "testing.ops.passing": "testing.ops.mapping",
    "testing.ops.random_maps": "testing.ops.mapping",
    "testing.ops.shuffling": "testing.ops.mapping",
    "testing.ops.stacking": "testing.ops.batching",
    "testing.parameter_server": "testing.seats",
    "testing.recycled_buffers": "testing.devices",
    "testing.shuffles": "testing.elements",
    "testing.sources.arrays": "testing.sources.memory",
    "testing.sources.databases": "testing.sources.tables",
    "testing.sources.parts": "testing.sources.records",
    "testing.sources.text_rows": "testing.sources.tables",
    "testing.sources.written": "testing.sources.records",
    "testing.turns": "testing.elements",
    "tf.python_function": "tf.tensors",
    "tpu.hardware_feature": "tpu.topology",
}
"""Below `distinput`: each old path, and the new one; empty for a package that is no more, so that its modules can be named."""


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
