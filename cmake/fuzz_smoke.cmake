# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# Runs a libFuzzer program over a corpus and then over so many mutations of it, with a fixed seed:
#
#   cmake -DPROGRAM=fuzz_order -DCORPUS=folder -DRUNS=1000 -DSCRATCH=folder -P fuzz_smoke.cmake
#
# The inputs are named in a list, not as a folder, because libFuzzer writes into its first folder.
file(GLOB inputs "${CORPUS}/*")
list(LENGTH inputs count)
if(count EQUAL 0)
  message(FATAL_ERROR "no corpus files found in ${CORPUS}")
endif()
list(JOIN inputs "," list)
file(MAKE_DIRECTORY "${SCRATCH}")
file(WRITE "${SCRATCH}/inputs" "${list}")
math(EXPR runs "${count} + ${RUNS}")
execute_process(
  COMMAND "${PROGRAM}" -seed=1 -runs=${runs} -timeout=60 -verbosity=0 -print_final_stats=1
    "-seed_inputs=@${SCRATCH}/inputs" "-artifact_prefix=${SCRATCH}/"
  RESULT_VARIABLE result)
if(NOT result EQUAL 0)
  message(FATAL_ERROR "${PROGRAM} found an input, which lies in ${SCRATCH}: exit ${result}")
endif()
message(STATUS "${count} inputs replayed, ${RUNS} mutations tried")
