# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# Looks for a libtorch, and makes kvsim::torch of it: the libraries torch_cpu and c10 with their
# headers. Sets KVSIM_TORCH_FOUND. PyTorch's own CMake package wants CUDA where the wheel was built
# with it, also for programs that use none, so it is not asked.
set(KVSIM_TORCH "" CACHE STRING
  "Folder of a libtorch of version 2.11 or later (torch/ of a Python package, with include/ and \
lib/); empty: what scripts/torch/install has put into the cache folder; OFF: none")

set(KVSIM_TORCH_FOUND OFF)
set(folder "${KVSIM_TORCH}")
if(folder STREQUAL "" AND NOT PROJECT_IS_TOP_LEVEL)
  return()  # an embedder gets it on request
elseif(folder STREQUAL "")
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/torch/install" --where
    OUTPUT_VARIABLE folder OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  if(folder STREQUAL "")
    return()
  endif()
elseif(NOT folder)
  return()
endif()

set(version_header "${folder}/include/torch/headeronly/version.h")
foreach(part "${version_header}" "${folder}/include/ATen/ATen.h" "${folder}/lib/libtorch_cpu.so"
    "${folder}/lib/libc10.so")
  if(NOT EXISTS "${part}")
    message(FATAL_ERROR "KVSIM_TORCH=${folder} holds no libtorch of version 2.11 or later: "
      "${part} is missing")
  endif()
endforeach()
file(STRINGS "${version_header}" lines REGEX "^#define TORCH_VERSION_(MAJOR|MINOR) [0-9]+")
string(REGEX REPLACE "[^0-9]*([0-9]+)[^0-9]+([0-9]+)" "\\1.\\2" version "${lines}")
if(version VERSION_LESS 2.11)
  message(FATAL_ERROR "KVSIM_TORCH=${folder} is torch ${version}; 2.11 or later is needed")
endif()

if(NOT TARGET kvsim::torch)
  add_library(kvsim::torch INTERFACE IMPORTED)
  foreach(library c10 torch_cpu)
    add_library(kvsim::torch_${library} SHARED IMPORTED)
    set_target_properties(kvsim::torch_${library} PROPERTIES
      IMPORTED_LOCATION "${folder}/lib/lib${library}.so"
      INTERFACE_INCLUDE_DIRECTORIES "${folder}/include")
    target_link_libraries(kvsim::torch INTERFACE kvsim::torch_${library})
  endforeach()
endif()
set(KVSIM_TORCH_FOUND ON)
message(STATUS "torch ${version}: ${folder}")
