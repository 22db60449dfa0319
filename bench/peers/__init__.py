# SPDX-License-Identifier: MIT
"""The parts of bench/run_peers.py: one program probed with many tools, in one run."""
