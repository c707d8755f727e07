# SPDX-License-Identifier: Apache-2.0
"""`python -m distinput.testing.collectives`."""

import sys

from distinput.testing.collectives.suite import main

if __name__ == "__main__":
    sys.exit(main())
