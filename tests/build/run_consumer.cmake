# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# WAY installed: builds and runs tests/build/consumer on an installation, by find_package(kvsim).
# WAY subdirectory: embeds kvsim by add_subdirectory.
function(run)
  execute_process(COMMAND ${ARGV} COMMAND_ECHO STDOUT COMMAND_ERROR_IS_FATAL ANY)
endfunction()

file(REMOVE_RECURSE "${WORK_DIR}")
set(options "")
if(WAY STREQUAL installed)
  run("${CMAKE_COMMAND}" --install "${BUILD_DIR}" --prefix "${WORK_DIR}/prefix")
  set(options "-DCMAKE_PREFIX_PATH=${WORK_DIR}/prefix")
  foreach(program IN ITEMS bin/kvsim)
    if(NOT EXISTS "${WORK_DIR}/prefix/${program}")
      message(FATAL_ERROR "${program} was not installed")
    endif()
  endforeach()
else()
  set(options "-DKVSIM_SOURCE_DIR=${SOURCE_DIR}")
endif()
run("${CMAKE_COMMAND}" -G Ninja -S "${SOURCE_DIR}/tests/build/consumer" -B "${WORK_DIR}/build"
  "-DCMAKE_CXX_COMPILER=${CXX_COMPILER}" -DCMAKE_BUILD_TYPE=Debug "-DKVSIM_VERSION=${VERSION}"
  ${options})
if(WAY STREQUAL installed)
  run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build")
  run("${WORK_DIR}/build/consumer")
else()
  # One library shows that embedding works; the others would only take their minutes again.
  run("${CMAKE_COMMAND}" --build "${WORK_DIR}/build" --target kvsim_softfloat)
endif()
