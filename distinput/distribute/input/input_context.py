# SPDX-License-Identifier: Apache-2.0
"""The input pipeline that a dataset function builds: its number, and how many there are."""

__all__ = ["InputContext"]


class InputContext:
    """The argument that `distribute_datasets_from_function` passes to the function.

    Args:
      num_input_pipelines: the number of input pipelines.
      input_pipeline_id: the number of this one, from 0.
      num_replicas_in_sync: the number of replicas that the pipelines feed.

    >>> import distinput as di
    >>> context = di.distribute.InputContext(num_input_pipelines=2, input_pipeline_id=1, num_replicas_in_sync=4)
    >>> context.get_per_replica_batch_size(32)
    8
    >>> print(context)
    tf.distribute.InputContext(input pipeline id 1, total: 2)

    Source: `tf.distribute.InputContext`.
    """

    __slots__ = ("_input_pipeline_id", "_num_input_pipelines", "_num_replicas_in_sync")

    def __init__(self, num_input_pipelines: int = 1, input_pipeline_id: int = 0, num_replicas_in_sync: int = 1) -> None:
        self._num_input_pipelines = num_input_pipelines
        self._input_pipeline_id = input_pipeline_id
        self._num_replicas_in_sync = num_replicas_in_sync

    @property
    def num_input_pipelines(self) -> int:
        """The number of input pipelines."""
        return self._num_input_pipelines

    @property
    def input_pipeline_id(self) -> int:
        """The number of this pipeline, from 0."""
        return self._input_pipeline_id

    @property
    def num_replicas_in_sync(self) -> int:
        """The number of replicas that the pipelines feed."""
        return self._num_replicas_in_sync

    def get_per_replica_batch_size(self, global_batch_size: int) -> int:
        """The global batch size divided by the number of replicas.

        Raises:
          ValueError: it is not divisible.

        Source: `tf.distribute.InputContext.get_per_replica_batch_size`.
        """
        if global_batch_size % self._num_replicas_in_sync:
            raise ValueError(
                f"The `global_batch_size` {global_batch_size!r} is not divisible by `num_replicas_in_sync` "
                f"{self._num_replicas_in_sync!r}; batch by it yourself, or use experimental_distribute_dataset, which "
                "cuts any size"
            )
        return global_batch_size // self._num_replicas_in_sync

    def __str__(self) -> str:
        pipeline, total = self._input_pipeline_id, self._num_input_pipelines
        return f"tf.distribute.InputContext(input pipeline id {pipeline}, total: {total})"

    def __repr__(self) -> str:
        return (
            f"InputContext(num_input_pipelines={self._num_input_pipelines}, "
            f"input_pipeline_id={self._input_pipeline_id}, "
            f"num_replicas_in_sync={self._num_replicas_in_sync})"
        )
