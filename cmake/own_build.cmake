# SPDX-License-Identifier: Apache-2.0
# kvarts_own_build: what our own programs and tests compile with. Never exported.
include(${CMAKE_CURRENT_LIST_DIR}/warnings.cmake)
include(${CMAKE_CURRENT_LIST_DIR}/sanitizers.cmake)

set(CMAKE_CXX_EXTENSIONS OFF)
add_library(kvarts_own_build INTERFACE)
target_link_libraries(kvarts_own_build INTERFACE kvarts::kvarts Threads::Threads)
target_compile_options(kvarts_own_build INTERFACE ${KVARTS_WARNING_FLAGS} ${KVARTS_SANITIZER_FLAGS})
target_link_options(kvarts_own_build INTERFACE ${KVARTS_SANITIZER_FLAGS})

# kvarts_executable(<target> <source>...): an executable of ours, warnings and sanitizers included.
function(kvarts_executable target)
  add_executable(${target} ${ARGN})
  target_link_libraries(${target} PRIVATE kvarts_own_build)
endfunction()
