# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# kvsim_build_info: what cli/build_info.h declares. The commit is read at build time; the source
# is written only when its text changes, so an unchanged tree recompiles nothing.
string(TOUPPER "${CMAKE_BUILD_TYPE}" build_type)
string(JOIN " " KVSIM_BUILD_FLAGS ${CMAKE_CXX_FLAGS} ${CMAKE_CXX_FLAGS_${build_type}} -std=c++20
  ${KVSIM_ARITHMETIC_FLAGS} ${KVSIM_SANITIZER_FLAGS})
set(build_info_source "${PROJECT_BINARY_DIR}/build_info.cc")
add_custom_target(kvsim_build_info_source
  COMMAND "${CMAKE_COMMAND}"
    "-DINPUT=${PROJECT_SOURCE_DIR}/cmake/build_info.cc.in" "-DOUTPUT=${build_info_source}"
    "-DSOURCE_DIR=${PROJECT_SOURCE_DIR}" "-DKVSIM_VERSION=${PROJECT_VERSION}"
    "-DKVSIM_COMPILER=${CMAKE_CXX_COMPILER_ID} ${CMAKE_CXX_COMPILER_VERSION}"
    "-DKVSIM_BUILD_FLAGS=${KVSIM_BUILD_FLAGS}"
    -P "${PROJECT_SOURCE_DIR}/cmake/write_build_info.cmake"
  BYPRODUCTS "${build_info_source}"
  COMMENT "Reading the commit" VERBATIM)
add_library(kvsim_build_info STATIC "${build_info_source}")
add_dependencies(kvsim_build_info kvsim_build_info_source)
target_include_directories(kvsim_build_info PUBLIC "${PROJECT_SOURCE_DIR}")
target_link_libraries(kvsim_build_info PRIVATE kvsim_flags)
target_compile_features(kvsim_build_info PUBLIC cxx_std_20)
