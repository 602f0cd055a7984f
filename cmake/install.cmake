# SPDX-License-Identifier: Apache-2.0
# Installs headers, the CMake package `kvarts` and kvarts.pc. All three find each other by relative
# paths, so an installed tree can be moved.
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

set(package_dir "${CMAKE_INSTALL_LIBDIR}/cmake/kvarts")
install(TARGETS kvarts kvarts_kernels EXPORT kvartsTargets
        INCLUDES DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}")
install(
  DIRECTORY include/kvarts kernels/kvarts
  DESTINATION "${CMAKE_INSTALL_INCLUDEDIR}"
  FILES_MATCHING
  PATTERN "*.hpp"
  PATTERN "*.cuh")
install(FILES LICENSE DESTINATION "${CMAKE_INSTALL_DOCDIR}")
install(
  EXPORT kvartsTargets
  NAMESPACE kvarts::
  DESTINATION "${package_dir}")
# In a file of its own: only who asks for the component needs the CUDA runtime.
if(KVARTS_CUDA)
  install(TARGETS kvarts_cuda EXPORT kvartsCudaTargets
          ARCHIVE DESTINATION "${CMAKE_INSTALL_LIBDIR}")
  install(
    EXPORT kvartsCudaTargets
    NAMESPACE kvarts::
    DESTINATION "${package_dir}")
endif()

configure_package_config_file(
  cmake/kvartsConfig.cmake.in kvartsConfig.cmake
  INSTALL_DESTINATION "${package_dir}"
  NO_SET_AND_CHECK_MACRO)
set(independent ARCH_INDEPENDENT)
if(KVARTS_CUDA)
  set(independent "")
endif()
write_basic_package_version_file(
  kvartsConfigVersion.cmake
  COMPATIBILITY SameMinorVersion
  ${independent})
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kvartsConfig.cmake"
              "${CMAKE_CURRENT_BINARY_DIR}/kvartsConfigVersion.cmake"
        DESTINATION "${package_dir}")

# An absolute CMAKE_INSTALL_*DIR is the packager's decision against moving; then paths are fixed.
if(IS_ABSOLUTE "${CMAKE_INSTALL_LIBDIR}")
  set(pc_prefix "${CMAKE_INSTALL_PREFIX}")
else()
  string(REGEX REPLACE "[^/]+" ".." up "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
  set(pc_prefix "\${pcfiledir}/${up}")
endif()
cmake_path(APPEND pc_include "\${prefix}" "${CMAKE_INSTALL_INCLUDEDIR}")
configure_file(cmake/kvarts.pc.in kvarts.pc @ONLY)
install(FILES "${CMAKE_CURRENT_BINARY_DIR}/kvarts.pc"
        DESTINATION "${CMAKE_INSTALL_LIBDIR}/pkgconfig")
