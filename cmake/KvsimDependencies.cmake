# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# What the libraries and the program need. The installed package configuration includes this file
# as well, so every package is named once.
if(NOT DEFINED KVSIM_BUILD_CLI OR KVSIM_BUILD_CLI)
  find_package(CLI11 REQUIRED)
  if(NOT TARGET kvsim::toml)
    # Used without its library: the header is all.
    find_path(KVSIM_TOML_INCLUDE_DIR toml++/toml.h)
    mark_as_advanced(KVSIM_TOML_INCLUDE_DIR)
    if(NOT KVSIM_TOML_INCLUDE_DIR)
      message(FATAL_ERROR "kvsim needs toml++/toml.h: install libtomlplusplus-dev (Debian's name), "
        "or set KVSIM_TOML_INCLUDE_DIR")
    endif()
    add_library(kvsim::toml INTERFACE IMPORTED)
    target_include_directories(kvsim::toml SYSTEM INTERFACE "${KVSIM_TOML_INCLUDE_DIR}")
  endif()
endif()
find_package(Threads REQUIRED)
find_package(fmt REQUIRED)
find_package(nlohmann_json REQUIRED)
find_package(Boost REQUIRED)  # headers only: no COMPONENTS
find_package(hwy REQUIRED)

if(NOT TARGET kvsim::hwy)
  add_library(kvsim::hwy INTERFACE IMPORTED)
  target_link_libraries(kvsim::hwy INTERFACE hwy::hwy)
endif()

# kvsim_find_plain_library(NAME pcre2 HEADER pcre2.h LIBRARY pcre2-8 PACKAGE libpcre2-dev) makes
# kvsim::<NAME> of a library that brings no CMake package of its own.
function(kvsim_find_plain_library)
  cmake_parse_arguments(PARSE_ARGV 0 arg "" "NAME;HEADER;LIBRARY;PACKAGE" "")
  if(TARGET kvsim::${arg_NAME})
    return()
  endif()
  string(TOUPPER "KVSIM_${arg_NAME}" variable)
  find_path(${variable}_INCLUDE_DIR ${arg_HEADER})
  find_library(${variable}_LIBRARY ${arg_LIBRARY})
  mark_as_advanced(${variable}_INCLUDE_DIR ${variable}_LIBRARY)
  if(NOT ${variable}_INCLUDE_DIR OR NOT ${variable}_LIBRARY)
    message(FATAL_ERROR "kvsim needs ${arg_HEADER} and the library ${arg_LIBRARY}: install "
      "${arg_PACKAGE} (Debian's name), or set ${variable}_INCLUDE_DIR and ${variable}_LIBRARY")
  endif()
  add_library(kvsim::${arg_NAME} UNKNOWN IMPORTED GLOBAL)
  set_target_properties(kvsim::${arg_NAME} PROPERTIES
    IMPORTED_LOCATION "${${variable}_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${${variable}_INCLUDE_DIR}")
endfunction()
kvsim_find_plain_library(NAME pcre2 HEADER pcre2.h LIBRARY pcre2-8 PACKAGE libpcre2-dev)
kvsim_find_plain_library(NAME sentencepiece HEADER sentencepiece_processor.h LIBRARY sentencepiece
  PACKAGE libsentencepiece-dev)
kvsim_find_plain_library(NAME utf8proc HEADER utf8proc.h LIBRARY utf8proc PACKAGE libutf8proc-dev)
if(KVSIM_BUILD_CLI OR KVSIM_BUILD_TESTS OR KVSIM_BUILD_FUZZERS)
  # Of fuzz/ and the tests, not of what is installed.
  kvsim_find_plain_library(NAME mpfr HEADER mpfr.h LIBRARY mpfr PACKAGE libmpfr-dev)
  kvsim_find_plain_library(NAME gmp HEADER gmp.h LIBRARY gmp PACKAGE libgmp-dev)
  set_property(TARGET kvsim::mpfr APPEND PROPERTY INTERFACE_LINK_LIBRARIES kvsim::gmp)
endif()
