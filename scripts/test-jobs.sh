#!/bin/sh
# SPDX-License-Identifier: MIT
# Prints how many tests ctest should run at once: eight, as most of them wait most of the time; four where starting a program takes two
# milliseconds (as in virtual machines whose page tables the host keeps): there the tests' many small programs fill the processors.
set -eu
from=$(date +%s%N)
for _ in 0 1 2 3 4 5 6 7 8 9; do
	for _ in 0 1 2 3 4 5 6 7 8 9; do /bin/true; done
done
took=$((($(date +%s%N) - from) / 100000)) # microseconds for each of the hundred programs
if [ "$took" -gt 1500 ]; then echo 4; else echo 8; fi
