# SPDX-License-Identifier: Apache-2.0
# KVARTS_VERSION from include/kvarts/config.hpp, the one place that states it.
set(config_header "${CMAKE_CURRENT_LIST_DIR}/../include/kvarts/config.hpp")
file(STRINGS "${config_header}" version_lines
     REGEX "^#define KVARTS_VERSION_(MAJOR|MINOR|PATCH) [0-9]+$")
list(TRANSFORM version_lines REPLACE "^.* " "")
list(JOIN version_lines "." KVARTS_VERSION)
if(NOT KVARTS_VERSION MATCHES "^[0-9]+\\.[0-9]+\\.[0-9]+$")
  message(FATAL_ERROR "include/kvarts/config.hpp does not define the version as expected")
endif()
# A changed version takes effect at the next build, without a manual configure.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS "${config_header}")
