# SPDX-License-Identifier: Apache-2.0
"""Floor 8: TensorFlow's names that are no part of what the library is made of; nothing below imports them."""
