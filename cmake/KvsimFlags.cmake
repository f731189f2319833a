# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# Every compile flag of the project stands here.

# The flags that decide results. No contraction of a*b+c, and each _Float16 operation rounds once.
# They travel with the libraries, because inline functions of the headers are compiled by the
# user's project.
set(KVSIM_ARITHMETIC_FLAGS -ffp-contract=off -fexcess-precision=16)

# Where sources are compiled together, a local name of one may hide a name of another, and g++ takes
# the sources for headers, whose types must not hold what is in an unnamed namespace.
set(KVSIM_SHADOW_FLAGS -Wshadow)
if(KVSIM_UNITY)
  set(KVSIM_SHADOW_FLAGS
    $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local> $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
endif()

# Flags of our own sources only.
add_library(kvsim_flags INTERFACE)
target_compile_features(kvsim_flags INTERFACE cxx_std_20)
target_compile_options(kvsim_flags INTERFACE
  ${KVSIM_ARITHMETIC_FLAGS}
  -Wall -Wextra -Wconversion -Wpedantic
  ${KVSIM_SHADOW_FLAGS}
  $<$<BOOL:${KVSIM_WERROR}>:-Werror>)

if(CMAKE_CXX_COMPILER_ID STREQUAL GNU AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # A false alarm of g++ 12 about "text" + std::string (GCC bug 105651), mended in g++ 13.
  target_compile_options(kvsim_flags INTERFACE -Wno-restrict)
endif()

# Most of what a unit test costs is its compilation. Tests that work through all codes of a format
# keep the level of the build, and what is tested does. Not -O0: reading numbers, which softfloat
# does with Boost.Multiprecision, then takes ten times as long.
set(KVSIM_TEST_OPTIMISATION -O1)
# Libraries of kind TEXT do little that is slow even without optimisation; -O3 takes up to half of
# the time that they compile.
set(KVSIM_TEXT_OPTIMISATION $<IF:$<BOOL:${KVSIM_SANITIZE}>,-O0,-O1>)

set(KVSIM_SANITIZER_FLAGS "")
if(KVSIM_FUZZING_ENGINE)
  # OSS-Fuzz and ClusterFuzzLite: CMAKE_CXX_FLAGS has the sanitizers.
  target_compile_definitions(kvsim_flags INTERFACE KVSIM_SANITIZED)
elseif(KVSIM_SANITIZE OR KVSIM_BUILD_FUZZERS)
  set(KVSIM_SANITIZER_FLAGS -fsanitize=address,undefined -fno-sanitize-recover=all
    -fno-omit-frame-pointer)
endif()
# What libFuzzer sees of the program: all it can in the build that hunts; in the sanitizer build,
# whose tests have to be quick, which edges were taken, in the libraries and the fuzz targets.
set(KVSIM_COVERAGE_FLAGS "")
if(KVSIM_BUILD_FUZZERS AND NOT KVSIM_FUZZING_ENGINE)
  list(APPEND KVSIM_SANITIZER_FLAGS -fsanitize=fuzzer-no-link)
elseif(KVSIM_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
  set(KVSIM_COVERAGE_FLAGS -fsanitize-coverage=inline-8bit-counters,pc-table)
endif()
target_compile_options(kvsim_flags INTERFACE ${KVSIM_SANITIZER_FLAGS})
if(KVSIM_SANITIZER_FLAGS)
  target_compile_definitions(kvsim_flags INTERFACE KVSIM_SANITIZED)
endif()
if(KVSIM_MUTANTS)
  target_compile_definitions(kvsim_flags INTERFACE KVSIM_MUTANTS)
endif()
target_link_options(kvsim_flags INTERFACE ${KVSIM_SANITIZER_FLAGS})

if(PROJECT_IS_TOP_LEVEL)
  set(CMAKE_CXX_EXTENSIONS OFF)
  if(NOT CMAKE_BUILD_TYPE)
    set(CMAKE_BUILD_TYPE Release)
  endif()
endif()
