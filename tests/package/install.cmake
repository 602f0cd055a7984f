# SPDX-License-Identifier: Apache-2.0
# cmake -D SOURCE=<kvarts> -D WORK=<folder> -D TOOLCHAIN=<flags> -D OTHER_DIRS=<flags>
# -P install.cmake
# Leaves WORK/moved, WORK/moved-other (installed with OTHER_DIRS) and WORK/kvarts.tar.gz.
file(REMOVE_RECURSE ${WORK})
file(MAKE_DIRECTORY ${WORK})

# Installs with the given flags and moves the result to `final`.
function(install_moved final)
  set(build ${WORK}/build-${final})
  execute_process(
    COMMAND
      ${CMAKE_COMMAND} -S ${SOURCE} -B ${build} ${TOOLCHAIN} -D KVARTS_TESTS=OFF -D KVARTS_BENCH=OFF
      -D KVARTS_EXAMPLES=OFF -D CMAKE_INSTALL_LIBDIR=lib ${ARGN}
      COMMAND_ERROR_IS_FATAL ANY)
  execute_process(COMMAND ${CMAKE_COMMAND} --install ${build} --prefix ${WORK}/staged
                          COMMAND_ERROR_IS_FATAL ANY)
  file(RENAME ${WORK}/staged ${WORK}/${final})
endfunction()

install_moved(moved)
install_moved(moved-other ${OTHER_DIRS})

execute_process(COMMAND ${CMAKE_COMMAND} -E tar czf ${WORK}/kvarts.tar.gz CMakeLists.txt cmake
                        include kernels WORKING_DIRECTORY ${SOURCE} COMMAND_ERROR_IS_FATAL ANY)
