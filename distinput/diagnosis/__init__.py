# SPDX-License-Identifier: Apache-2.0
"""What is installed here, what the machine offers, and what would make distinput faster on it."""

from distinput.diagnosis.diagnosis import Advice, Diagnosis, diagnose

__all__ = ["Advice", "Diagnosis", "diagnose"]
