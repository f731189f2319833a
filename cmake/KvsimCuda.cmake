# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# Looks for an nvcc that compiles our kernels. Sets KVSIM_NVCC, or leaves it empty: then everything
# else is built, and what needs a GPU says how to get one.
set(KVSIM_CUDA "" CACHE STRING
  "Folder of a CUDA toolkit of version 13 or later (with bin/nvcc); empty: CUDA_HOME, an installed \
one, or what scripts/cuda/install has put into the cache folder; OFF: none")

set(KVSIM_NVCC "")
# From A100 to RTX Blackwell. a of 90a: Hopper's own instructions; f of 120f: those of sm_120 and
# sm_121.
set(KVSIM_CUDA_ARCHITECTURES "")
foreach(architecture 80 86 89 90a 100 120f)
  list(APPEND KVSIM_CUDA_ARCHITECTURES -gencode
    "arch=compute_${architecture},code=sm_${architecture}")
endforeach()
if(KVSIM_CUDA STREQUAL "" AND NOT PROJECT_IS_TOP_LEVEL)
  return()  # an embedder gets it on request
elseif(KVSIM_CUDA STREQUAL "")
  execute_process(COMMAND "${PROJECT_SOURCE_DIR}/scripts/cuda/install" --where
    OUTPUT_VARIABLE installed OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  set(folders "$ENV{CUDA_HOME}" /usr/local/cuda "${installed}")
elseif(NOT KVSIM_CUDA)
  return()
else()
  set(folders "${KVSIM_CUDA}")
endif()

foreach(folder IN LISTS folders)
  if(folder STREQUAL "" OR NOT EXISTS "${folder}/bin/nvcc")
    continue()
  endif()
  execute_process(COMMAND "${folder}/bin/nvcc" --version OUTPUT_VARIABLE version ERROR_QUIET)
  if(version MATCHES "release ([0-9]+\\.[0-9]+)" AND CMAKE_MATCH_1 VERSION_GREATER_EQUAL 13)
    set(KVSIM_NVCC "${folder}/bin/nvcc")
    message(STATUS "nvcc ${CMAKE_MATCH_1}: ${folder}")
    return()
  endif()
endforeach()
if(KVSIM_CUDA)
  message(FATAL_ERROR "KVSIM_CUDA=${KVSIM_CUDA} holds no CUDA toolkit of version 13 or later")
endif()
message(STATUS "no nvcc: kernels for GPUs are left out (scripts/cuda/install gets one)")
