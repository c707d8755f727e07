# SPDX-License-Identifier: Apache-2.0
"""All attacks; in `make test` without those that take long."""

from tests.depth import DEEP
from tests.formats.hostile.attacks import archives, bombs, changing, deep, moving, pickled, tables
from tests.formats.hostile.kept_attacks import decoded, kept

_EVERY = [*pickled(), *deep(), *changing(), *moving(), *archives(), *tables(), *kept(), *decoded(), *bombs()]

ATTACKS = [attack for attack in _EVERY if DEEP or not attack.long]
"""What is tried."""
