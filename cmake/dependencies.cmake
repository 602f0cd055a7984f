# SPDX-License-Identifier: Apache-2.0
# Libraries of our own programs and tests. The library itself needs none.
find_package(Threads REQUIRED)

# kvarts_find(<package> <Debian package> <option that needs it>): finds it or says how to go on.
function(kvarts_find package debian option)
  find_package(${package} QUIET GLOBAL)
  if(NOT ${package}_FOUND)
    message(FATAL_ERROR "${option} needs ${package}: install it (Debian: ${debian}), "
                        "or configure with -D${option}=OFF")
  endif()
endfunction()
