# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# What only the tests need: GoogleTest, Google Benchmark, and MPFR as the oracle of the
# arithmetic.
find_package(GTest REQUIRED)
find_package(benchmark REQUIRED)
# Debian's own Python: the modules of the package list are installed for it and for no other.
set(Python3_EXECUTABLE /usr/bin/python3 CACHE FILEPATH "Python with the listed packages")
find_package(Python3 REQUIRED COMPONENTS Interpreter)
include(GoogleTest)

find_path(KVSIM_MPFR_INCLUDE_DIR mpfr.h REQUIRED)
find_library(KVSIM_MPFR_LIBRARY mpfr REQUIRED)
find_library(KVSIM_GMP_LIBRARY gmp REQUIRED)
mark_as_advanced(KVSIM_MPFR_INCLUDE_DIR KVSIM_MPFR_LIBRARY KVSIM_GMP_LIBRARY)
add_library(kvsim::mpfr INTERFACE IMPORTED)
target_include_directories(kvsim::mpfr INTERFACE "${KVSIM_MPFR_INCLUDE_DIR}")
target_link_libraries(kvsim::mpfr INTERFACE "${KVSIM_MPFR_LIBRARY}" "${KVSIM_GMP_LIBRARY}")
