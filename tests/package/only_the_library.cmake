# A project that adds kvarts to its own build gets the library: no targets, tests, installed files
# or flags of ours.
get_property(targets DIRECTORY ${kvarts_SOURCE_DIR} PROPERTY BUILDSYSTEM_TARGETS)
if(NOT targets STREQUAL "kvarts;kvarts_kernels")
  message(FATAL_ERROR "kvarts adds targets of its own: ${targets}")
endif()
get_property(tests DIRECTORY ${kvarts_SOURCE_DIR} PROPERTY TESTS)
if(tests OR KVARTS_INSTALL OR CMAKE_BUILD_TYPE)
  message(FATAL_ERROR "kvarts adds tests (${tests}), installs or sets a build type")
endif()
