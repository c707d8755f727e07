# SPDX-License-Identifier: Apache-2.0
"""The table of policies, each loaded when it is first needed."""

from importlib import import_module

from distinput.errors import InvalidArgumentError
from distinput.names.registry import failures, load_extensions
from distinput.names.words import meant
from distinput.plan.options import AutoShardPolicy, Policy

__all__ = ["POLICIES", "policy_named", "register_policy"]

POLICIES: dict[str, Policy | str] = {
    "AUTO": "distinput.sharding.policies.file:AUTO",
    "BALANCED": "distinput.sharding.policies.balanced:BALANCED",
    "DATA": "distinput.sharding.policies.data:DATA",
    "FILE": "distinput.sharding.policies.file:FILE",
    "HINT": "distinput.sharding.policies.data:HINT",
    "OFF": "distinput.sharding.policies.data:OFF",
}
"""Each policy by its name, or where it is, as `package.module:NAME`."""


def policy_named(name: str) -> Policy:
    """The policy of that name.

    Raises:
      InvalidArgumentError: there is none.
    """
    if name not in POLICIES:
        load_extensions()
    found = POLICIES.get(name)
    if found is None:
        known = meant(name, sorted(POLICIES), "known are")
        raise InvalidArgumentError(f"there is no policy {name!r}; {known}{failures()}")
    if isinstance(found, str):
        module, _, attribute = found.partition(":")
        policy: Policy = getattr(import_module(module), attribute)
        found = POLICIES[name] = policy
    return found


def register_policy(policy: Policy) -> Policy:
    """Add a policy of your own to the known ones.

    Set it as the option `experimental_distribute.auto_shard_policy` of a dataset, or ask `shard_plan` and `explain` about it.
    Workers compare policies by their names, and all of them must register it.

    Args:
      policy: its name is none of the known ones.

    Returns:
      The policy.

    Raises:
      TypeError: it is no `Policy`.
      InvalidArgumentError: another policy has that name, or it is not in capital letters.

    >>> import distinput as di
    >>> from distinput.ops.shard import Shard
    >>> from distinput.plan.options import Policy
    >>> def backwards(node, share):
    ...     return Shard(node, share.num_workers, share.num_workers - 1 - share.index)
    >>> BACKWARDS = register_policy(Policy("BACKWARDS", "every n-th element, the first one to the last worker", backwards))
    >>> options = di.data.Options()
    >>> options.experimental_distribute.auto_shard_policy = BACKWARDS
    >>> ds = di.data.Dataset.range(5).with_options(options)
    >>> di.data.experimental.auto_shard_dataset(ds, num_workers=2, index=0).to_list()
    [1, 3]
    """
    if not isinstance(policy, Policy):
        raise TypeError(f"register_policy: needs a Policy, got {policy!r}")
    if not (policy.name.isidentifier() and policy.name.isupper()):
        raise InvalidArgumentError(
            f"register_policy: the name of a policy must be one word in capital letters, got {policy.name!r}"
        )
    known = POLICIES.get(policy.name)
    taken = known is not None and known != policy
    if taken or policy.name in AutoShardPolicy.__members__:
        raise InvalidArgumentError(f"register_policy: there is a policy {policy.name} already; choose another name")
    POLICIES[policy.name] = policy
    return policy
