# SPDX-License-Identifier: Apache-2.0
# KVARTS_WARNING_FLAGS for GCC and clang.
# Sign conversions are clang's own idea of -Wconversion: without them both compilers ask the same.
set(KVARTS_WARNING_FLAGS -Wall -Wextra -Wpedantic -Wconversion -Wno-sign-conversion -Wshadow)
if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  list(APPEND KVARTS_WARNING_FLAGS -Wno-restrict)  # GCC 12 warns falsely of "literal" + std::string
endif()
if(KVARTS_WERROR)
  list(APPEND KVARTS_WARNING_FLAGS -Werror)
endif()
