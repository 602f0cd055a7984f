# SPDX-License-Identifier: Apache-2.0
# KVARTS_SANITIZER_FLAGS, for compiling and linking. A finding ends the program, so a test fails.
set(KVARTS_SANITIZER_FLAGS "")
if(KVARTS_SANITIZE)
  set(KVARTS_SANITIZER_FLAGS -fsanitize=${KVARTS_SANITIZE} -fno-sanitize-recover=all
                             -fno-omit-frame-pointer)
  if(KVARTS_SANITIZE MATCHES "undefined")  # GCC leaves this one out of "undefined"
    list(APPEND KVARTS_SANITIZER_FLAGS -fsanitize=float-cast-overflow)
  endif()
endif()
if(KVARTS_FUZZ)
  if(NOT CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    message(FATAL_ERROR "KVARTS_FUZZ needs clang, not ${CMAKE_CXX_COMPILER}: use the preset fuzz")
  endif()
  list(APPEND KVARTS_SANITIZER_FLAGS -fsanitize=fuzzer-no-link)
endif()
