# SPDX-License-Identifier: Apache-2.0
# SPDX-FileCopyrightText: The kvsim authors
# Installs what find_package(kvsim) reads. The targets are installed where they are made.
include(CMakePackageConfigHelpers)
set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kvsim")
install(EXPORT kvsim-targets NAMESPACE kvsim:: DESTINATION "${package_dir}")
configure_package_config_file("${PROJECT_SOURCE_DIR}/cmake/kvsim-config.cmake.in"
  "${PROJECT_BINARY_DIR}/kvsim-config.cmake" INSTALL_DESTINATION "${package_dir}")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/kvsim-config-version.cmake"
  COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_BINARY_DIR}/kvsim-config.cmake"
  "${PROJECT_BINARY_DIR}/kvsim-config-version.cmake"
  "${PROJECT_SOURCE_DIR}/cmake/KvsimDependencies.cmake" DESTINATION "${package_dir}")
