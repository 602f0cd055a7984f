# SPDX-License-Identifier: Apache-2.0
# cmake -D PROJECT=<folder> -D BUILD=<folder> -D FLAGS=<of configure> -D REFUSAL=<message or empty>
# -P consume.cmake
file(REMOVE_RECURSE ${BUILD})
set(configure ${CMAKE_COMMAND} -S ${PROJECT} -B ${BUILD} ${FLAGS})
if(REFUSAL)
  execute_process(
    COMMAND ${configure}
    RESULT_VARIABLE code
    OUTPUT_VARIABLE output
    ERROR_VARIABLE output)
  string(REGEX REPLACE "[ \n]+" " " text "${output}")  # CMake wraps its messages
  string(FIND "${text}" "${REFUSAL}" position)
  if(code EQUAL 0 OR position EQUAL -1)
    message(FATAL_ERROR "must be refused with `${REFUSAL}`, but:\n${output}")
  endif()
  return()
endif()
execute_process(COMMAND ${configure} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${CMAKE_COMMAND} --build ${BUILD} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ${BUILD}/consumer COMMAND_ERROR_IS_FATAL ANY)
