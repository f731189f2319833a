# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# Fills build_info.cc.in. Without git, or outside a repository, the commit is "unknown".
set(KVSIM_COMMIT unknown)
find_program(git git)
if(git AND EXISTS "${SOURCE_DIR}/.git")
  execute_process(COMMAND "${git}" -C "${SOURCE_DIR}" describe --always --dirty --abbrev=12
    OUTPUT_VARIABLE described OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE status)
  if(status EQUAL 0)
    set(KVSIM_COMMIT "${described}")
  endif()
endif()
configure_file("${INPUT}" "${OUTPUT}" @ONLY)
