# SPDX-License-Identifier: Apache-2.0
# All options; a project that adds kvarts as a subdirectory gets the library and nothing else.
option(KVARTS_TESTS "Build the tests (Catch2)" ${PROJECT_IS_TOP_LEVEL})
option(KVARTS_BENCH "Build the benchmarks (Google Benchmark)" ${PROJECT_IS_TOP_LEVEL})
option(KVARTS_EXAMPLES "Build the examples and the kvarts program" ${PROJECT_IS_TOP_LEVEL})
option(KVARTS_INSTALL "Install headers, CMake package and kvarts.pc" ${PROJECT_IS_TOP_LEVEL})
option(KVARTS_WERROR "Treat warnings in own programs and tests as errors" ${PROJECT_IS_TOP_LEVEL})
option(KVARTS_FUZZ "Build the libFuzzer targets of the file parsers (clang)" OFF)
set(KVARTS_SANITIZE "" CACHE STRING "Sanitizers of own programs: address,undefined or thread")

get_property(multi_config GLOBAL PROPERTY GENERATOR_IS_MULTI_CONFIG)
if(PROJECT_IS_TOP_LEVEL AND NOT multi_config AND NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release CACHE STRING "Build type" FORCE)
endif()
