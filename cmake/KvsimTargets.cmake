# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# The helpers with which each folder's CMakeLists.txt lists what it holds.

# kvsim_precompile(TARGET library|text|test): the target reads the standard headers, fmt and
# nlohmann-json (a test GoogleTest too) from a precompiled header, which is made once per build.
# Targets of one kind have equal flags. Only clang: g++ 12 gains little by it and then warns about
# the insides of the standard library.
function(kvsim_precompile target kind)
  if(NOT KVSIM_PRECOMPILE OR NOT CMAKE_CXX_COMPILER_ID MATCHES Clang)
    return()
  endif()
  set(headers kvsim_${kind}_headers)
  if(NOT TARGET ${headers})
    set(empty "${PROJECT_BINARY_DIR}/${headers}.cc")
    file(CONFIGURE OUTPUT "${empty}" CONTENT "")
    add_library(${headers} STATIC "${empty}")
    target_link_libraries(${headers} PRIVATE kvsim_flags fmt::fmt nlohmann_json::nlohmann_json)
    target_precompile_headers(${headers} PRIVATE <algorithm> <array> <bit> <charconv> <cmath>
      <cstddef> <cstdint> <cstring> <functional> <limits> <map> <memory> <optional> <set> <span>
      <string> <string_view> <utility> <variant> <vector> <fmt/format.h> <nlohmann/json.hpp>)
    if(kind STREQUAL test)
      target_link_libraries(${headers} PRIVATE GTest::gmock)
      target_compile_options(${headers} PRIVATE ${KVSIM_TEST_OPTIMISATION})
      target_precompile_headers(${headers} PRIVATE <filesystem> <fstream> <random> <sstream>
        <gmock/gmock.h> <gtest/gtest.h>)
    else()
      set_target_properties(${headers} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    endif()
    if(kind STREQUAL text)
      target_compile_options(${headers} PRIVATE ${KVSIM_TEXT_OPTIMISATION})
    endif()
  endif()
  target_precompile_headers(${target} REUSE_FROM ${headers})
  # A precompiled header forgets that the library itself switches this off around std::stable_sort.
  target_compile_options(${target} PRIVATE -Wno-deprecated-declarations)
endfunction()

# kvsim_unity(TARGET): with KVSIM_UNITY the target's sources are compiled a dozen at a time, as one
# source that includes them, and the headers are read once for all. Sources that declare the same
# name at the start of a line, where clang-format puts what stands outside functions and classes,
# are kept apart; so are sources that Highway compiles once per instruction set.
function(kvsim_unity target)
  if(NOT KVSIM_UNITY)
    return()
  endif()
  set(most 12)
  get_target_property(sources ${target} SOURCES)
  set(groups 0)
  foreach(source IN LISTS sources)
    cmake_path(ABSOLUTE_PATH source OUTPUT_VARIABLE path)
    if(NOT path MATCHES "\\.cc$" OR NOT EXISTS "${path}")
      continue()
    endif()
    file(READ "${path}" text)
    if(text MATCHES "foreach_target\\.h")
      set_source_files_properties(${source} PROPERTIES SKIP_UNITY_BUILD_INCLUSION ON)
      continue()
    endif()
    # Up to the first character that can't stand before the declared name.
    string(REGEX MATCHALL "\n[A-Za-z_][A-Za-z0-9_:<>,*& ]*" lines "${text}")
    set(names "")
    foreach(line IN LISTS lines)
      if(line MATCHES "^\n(namespace|template|return|TEST|TYPED_TEST|INSTANTIATE|MATCHER)")
        continue()
      elseif(line MATCHES "^\n(struct|class|enum class) ([A-Za-z0-9_]+)")
        list(APPEND names ${CMAKE_MATCH_2})
      elseif(line MATCHES "^\nusing ([A-Za-z0-9_]+) *$")
        list(APPEND names ${CMAKE_MATCH_1})
      elseif(line MATCHES "[ *&]([A-Za-z0-9_]+) *$")
        list(APPEND names ${CMAKE_MATCH_1})
      endif()
    endforeach()
    list(REMOVE_DUPLICATES names)
    set(group 0)
    while(group LESS groups)
      set(fits ON)
      if(size_${group} GREATER_EQUAL most)
        set(fits OFF)
      else()
        foreach(name IN LISTS names)
          if(name IN_LIST names_${group})
            set(fits OFF)
            break()
          endif()
        endforeach()
      endif()
      if(fits)
        break()
      endif()
      math(EXPR group "${group} + 1")
    endwhile()
    if(group EQUAL groups)
      math(EXPR groups "${groups} + 1")
      set(names_${group} "")
      set(size_${group} 0)
    endif()
    list(APPEND names_${group} ${names})
    math(EXPR size_${group} "${size_${group}} + 1")
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${group})
    # A name that is new may move a source to another group.
    set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${path}")
  endforeach()
  set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
endfunction()

# kvsim_library(NAME softfloat [INTERNAL] [TEXT] SOURCES … HEADERS … LINKS …) makes kvsim_<NAME>
# with the alias kvsim::<NAME>; without SOURCES it is a header-only library. It is installed unless
# INTERNAL is given. TEXT: it reads and prints more than it computes.
function(kvsim_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "INTERNAL;TEXT" "NAME" "SOURCES;HEADERS;LINKS")
  set(target kvsim_${arg_NAME})
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}"
    OUTPUT_VARIABLE folder)
  set(scope PUBLIC)
  if(arg_SOURCES)
    add_library(${target} STATIC ${arg_SOURCES} ${arg_HEADERS})
    target_link_libraries(${target} PRIVATE $<BUILD_INTERFACE:kvsim_flags>)
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(kvsim::${arg_NAME} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${arg_NAME} POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${target} ${scope} "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}>"
    "$<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}/kvsim>")
  target_compile_features(${target} ${scope} cxx_std_20)
  target_compile_options(${target} ${scope} "$<$<COMPILE_LANGUAGE:CXX>:${KVSIM_ARITHMETIC_FLAGS}>")
  target_link_libraries(${target} ${scope} ${arg_LINKS})
  if(arg_SOURCES)
    kvsim_unity(${target})
    target_compile_options(${target} PRIVATE ${KVSIM_COVERAGE_FLAGS})
  endif()
  if(arg_SOURCES AND arg_TEXT)
    target_compile_options(${target} PRIVATE ${KVSIM_TEXT_OPTIMISATION})
    kvsim_precompile(${target} text)
  elseif(arg_SOURCES AND "fmt::fmt" IN_LIST arg_LINKS)
    kvsim_precompile(${target} library)
  endif()
  if(KVSIM_INSTALL AND NOT arg_INTERNAL)
    install(TARGETS ${target} EXPORT kvsim-targets
      ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
    foreach(header IN LISTS arg_HEADERS)
      cmake_path(GET header PARENT_PATH subfolder)
      install(FILES ${header}
        DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}/kvsim/${folder}/${subfolder}")
    endforeach()
  endif()
endfunction()

# kvsim_test(NAME … SOURCES … LINKS … [LABEL unit] [TIMEOUT seconds] [SERIAL] [NEEDS fixture])
# makes a GoogleTest program and one ctest for each of its tests. Labels, and where they run:
#   unit        everywhere
#   slow, cli   the g++ build of ./check
#   device      the same; skipped where there is no GPU
#   models      the same: tests of SmolLM2, which the fixture smollm2 fetches
#   gemma       only ./check --gemma --accept-terms: tests of Gemma 3, fixture gemma3
#   exhaustive  the same, alone on all cores
#   long        only ./check --exhaustive, alone on all cores
#   fuzz        the g++ build and the sanitizer build
function(kvsim_test)
  cmake_parse_arguments(PARSE_ARGV 0 arg "SERIAL" "NAME;LABEL;TIMEOUT;NEEDS"
    "SOURCES;LINKS")
  if(NOT arg_LABEL)
    set(arg_LABEL unit)
  endif()
  set(allowed unit slow cli device models gemma exhaustive long fuzz)
  if(NOT arg_LABEL IN_LIST allowed)
    message(FATAL_ERROR "kvsim_test ${arg_NAME}: label ${arg_LABEL} is not one of ${allowed}")
  endif()
  # A sanitizer build runs only these; what it does not run it does not compile.
  if(KVSIM_SANITIZE AND NOT arg_LABEL MATCHES "^(unit|fuzz)$")
    return()
  endif()
  if(arg_LABEL MATCHES "^(models|gemma)$" AND NOT CMAKE_CXX_COMPILER_ID STREQUAL GNU)
    return()  # as tests/cli, which makes the fixtures
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 300)
  endif()
  set(serial ${arg_SERIAL})  # for a test that measures time
  if(arg_LABEL MATCHES "^(exhaustive|long)$")
    set(serial ON)
  endif()
  add_executable(${arg_NAME} ${arg_SOURCES})
  target_include_directories(${arg_NAME} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_compile_definitions(${arg_NAME} PRIVATE KVSIM_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  target_link_libraries(${arg_NAME} PRIVATE kvsim_flags ${arg_LINKS} fmt::fmt GTest::gmock
    GTest::gtest_main)
  if(arg_LABEL STREQUAL unit)
    kvsim_unity(${arg_NAME})  # g++ inlines less of a long source, which makes sweeps slow
  endif()
  # tests_<folder> builds the tests of one folder.
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_SOURCE_DIR BASE_DIRECTORY "${PROJECT_SOURCE_DIR}/tests"
    OUTPUT_VARIABLE folder)
  string(REGEX REPLACE "/.*" "" folder "${folder}")
  set(folder_tests tests_${folder})
  if(NOT TARGET ${folder_tests})
    add_custom_target(${folder_tests})
  endif()
  add_dependencies(${folder_tests} ${arg_NAME})
  # clang's precompiled header has the flags of the unit tests; ./check runs nothing else with it.
  if(arg_LABEL MATCHES "^(unit|fuzz)$" OR CMAKE_CXX_COMPILER_ID MATCHES Clang)
    target_compile_options(${arg_NAME} PRIVATE ${KVSIM_TEST_OPTIMISATION})
    kvsim_precompile(${arg_NAME} test)
  endif()
  gtest_discover_tests(${arg_NAME} TEST_PREFIX "${arg_NAME}." DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS ${arg_LABEL} TIMEOUT ${arg_TIMEOUT} RUN_SERIAL ${serial}
      FIXTURES_REQUIRED "${arg_NEEDS}")
endfunction()

# kvsim_fuzz_target(NAME order SOURCE order.cc LINKS … CORPUS folder [RUNS n]) The source defines
# LLVMFuzzerTestOneInput. With libFuzzer it becomes fuzz_<NAME>; in the sanitizer build that, too,
# and a test that runs it over each file of the corpus and over n mutations. In every other build it
# becomes fuzz_<NAME>_replay and a test that runs it over each file of the corpus.
function(kvsim_fuzz_target)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;SOURCE;CORPUS;RUNS" "LINKS")
  set(target fuzz_${arg_NAME})
  set(sources ${arg_SOURCE})
  if(NOT arg_RUNS)
    set(arg_RUNS 2000)
  endif()
  set(with_libfuzzer ${KVSIM_BUILD_FUZZERS})
  if(KVSIM_SANITIZE AND CMAKE_CXX_COMPILER_ID MATCHES Clang)
    set(with_libfuzzer ON)
  endif()
  if(NOT with_libfuzzer)
    string(APPEND target _replay)
    list(APPEND sources "${PROJECT_SOURCE_DIR}/cmake/fuzz_replay_main.cc")
  endif()
  add_executable(${target} ${sources})
  target_include_directories(${target} PRIVATE "${PROJECT_SOURCE_DIR}")
  target_link_libraries(${target} PRIVATE kvsim_flags ${arg_LINKS})
  target_compile_options(${target} PRIVATE ${KVSIM_COVERAGE_FLAGS})
  if(KVSIM_FUZZING_ENGINE)
    separate_arguments(engine UNIX_COMMAND "${KVSIM_FUZZING_ENGINE}")
    target_link_options(${target} PRIVATE ${engine})
  elseif(with_libfuzzer)
    target_link_options(${target} PRIVATE -fsanitize=fuzzer)
  endif()
  if(NOT KVSIM_BUILD_TESTS)
    return()
  endif()
  cmake_path(ABSOLUTE_PATH arg_CORPUS OUTPUT_VARIABLE corpus)
  if(with_libfuzzer)
    set(test fuzz_smoke.${arg_NAME})
    add_test(NAME ${test} COMMAND "${CMAKE_COMMAND}" "-DPROGRAM=$<TARGET_FILE:${target}>"
      "-DCORPUS=${corpus}" -DRUNS=${arg_RUNS} "-DSCRATCH=${CMAKE_CURRENT_BINARY_DIR}/${test}"
      -P "${PROJECT_SOURCE_DIR}/cmake/fuzz_smoke.cmake")
  else()
    set(test fuzz_replay.${arg_NAME})
    add_test(NAME ${test} COMMAND ${target} "${corpus}")
  endif()
  set_tests_properties(${test} PROPERTIES LABELS fuzz TIMEOUT 120)
endfunction()
