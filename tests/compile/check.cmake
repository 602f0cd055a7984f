# SPDX-License-Identifier: Apache-2.0
# cmake -D CXX=<compiler> -D INCLUDE=<folder> -D SOURCE=<file> -P check.cmake
file(STRINGS ${SOURCE} expected REGEX "^// expect: .")
if(expected STREQUAL "")
  message(FATAL_ERROR "${SOURCE} has no line `// expect: ...`")
endif()
string(REPLACE "// expect: " "" expected "${expected}")
file(STRINGS ${SOURCE} flags REGEX "^// flags: .")
string(REPLACE "// flags: " "" flags "${flags}")
separate_arguments(flags UNIX_COMMAND "${flags}")

execute_process(
  COMMAND ${CXX} -std=c++20 -Wall -Wextra -fsyntax-only -I ${INCLUDE} -I ${INCLUDE}/../kernels
          ${flags} ${SOURCE}
  RESULT_VARIABLE code
  OUTPUT_VARIABLE output
  ERROR_VARIABLE output)
if(expected STREQUAL "success")
  if(NOT code EQUAL 0)
    message(FATAL_ERROR "must compile, but:\n${output}")
  endif()
  return()
endif()
if(code EQUAL 0)
  message(FATAL_ERROR "compiles, but must be refused with: ${expected}")
endif()
string(FIND "${output}" "${expected}" position)
if(position EQUAL -1)
  message(FATAL_ERROR "is refused without saying `${expected}`:\n${output}")
endif()
