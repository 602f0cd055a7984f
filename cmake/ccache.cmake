# SPDX-License-Identifier: Apache-2.0
# Compiles through ccache where it is installed and nobody chose another launcher.
if(PROJECT_IS_TOP_LEVEL AND NOT DEFINED CMAKE_CXX_COMPILER_LAUNCHER)
  find_program(KVARTS_CCACHE ccache)
  mark_as_advanced(KVARTS_CCACHE)
  if(KVARTS_CCACHE)
    set(CMAKE_CXX_COMPILER_LAUNCHER "${KVARTS_CCACHE}")
  endif()
endif()
