# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# What the libraries and the program need. The installed package configuration includes this file
# as well, so every package is named once.
if(NOT DEFINED KVSIM_BUILD_CLI OR KVSIM_BUILD_CLI)
  find_package(CLI11 REQUIRED)
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
