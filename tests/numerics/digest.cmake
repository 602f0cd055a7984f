# SPDX-License-Identifier: Apache-2.0
# cmake -D NAME=<name> -D COMPILE=<compile command> -P digest.cmake: leaves the output in NAME.txt.
execute_process(COMMAND ${COMPILE} -o ${NAME} COMMAND_ERROR_IS_FATAL ANY)
execute_process(COMMAND ./${NAME} OUTPUT_FILE ${NAME}.txt COMMAND_ERROR_IS_FATAL ANY)
