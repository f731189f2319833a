# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# What only the tests need: GoogleTest and Google Benchmark.
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
# Debian's own Python: the modules of the package list are installed for it and for no other.
set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Python with the listed packages")
find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(GoogleTest)
