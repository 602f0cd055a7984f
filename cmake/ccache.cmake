# SPDX-License-Identifier: Apache-2.0
# Compiles through ccache where it is installed and nobody chose another launcher.
if(PROJECT_IS_TOP_LEVEL)
  find_program(KVARTS_CCACHE ccache)
  mark_as_advanced(KVARTS_CCACHE)
  foreach(language IN ITEMS CXX CUDA)
    if(KVARTS_CCACHE AND NOT DEFINED CMAKE_${language}_COMPILER_LAUNCHER)
      set(CMAKE_${language}_COMPILER_LAUNCHER "${KVARTS_CCACHE}")
    endif()
  endforeach()
endif()
