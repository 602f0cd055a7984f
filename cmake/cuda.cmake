# SPDX-License-Identifier: Apache-2.0
# kvarts::kernels: the kernels as headers, for sources that nvcc compiles. With KVARTS_CUDA also
# kvarts::cuda: those of the shipped codecs, compiled, for plain C++ sources.
add_library(kvarts_kernels INTERFACE)
add_library(kvarts::kernels ALIAS kvarts_kernels)
set_target_properties(kvarts_kernels PROPERTIES EXPORT_NAME kernels)
target_link_libraries(kvarts_kernels INTERFACE kvarts)
target_include_directories(kvarts_kernels
                           INTERFACE $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/kernels>)
target_compile_options(kvarts_kernels
                       INTERFACE $<$<COMPILE_LANGUAGE:CUDA>:--expt-relaxed-constexpr>)
if(NOT KVARTS_CUDA)
  return()
endif()

# CMake 3.25 does not know that nvcc compiles C++20.
set(CMAKE_CUDA20_STANDARD_COMPILE_OPTION "-std=c++20")
set(CMAKE_CUDA20_EXTENSION_COMPILE_OPTION "-std=c++20")
if(NOT CMAKE_CUDA_COMPILER AND NOT DEFINED ENV{CUDACXX} AND KVARTS_NVCC)
  set(CMAKE_CUDA_COMPILER "${KVARTS_NVCC}")
endif()
if(NOT CMAKE_CUDA_ARCHITECTURES AND NOT DEFINED ENV{CUDAARCHS})
  set(CMAKE_CUDA_ARCHITECTURES 80-real 90)
endif()
enable_language(CUDA)
find_package(CUDAToolkit REQUIRED)

# Encode and decode of one codec, and attention of one family, are always there: a bounded build
# compiles each launch, too.
file(GLOB sources CONFIGURE_DEPENDS kernels/instances/*.cu)
file(GLOB codes CONFIGURE_DEPENDS kernels/instances/codes/*.cu)
if(NOT KVARTS_CUDA_CODES)
  set(codes kernels/instances/codes/midrise3.cu)
endif()
file(GLOB attention CONFIGURE_DEPENDS kernels/instances/attention/*.cu)
if(NOT KVARTS_CUDA_ATTENTION)
  set(attention kernels/instances/attention/midrise3.cu)
endif()
add_library(kvarts_cuda STATIC ${sources} ${codes} ${attention})
add_library(kvarts::cuda ALIAS kvarts_cuda)
set_target_properties(
  kvarts_cuda
  PROPERTIES EXPORT_NAME cuda
             POSITION_INDEPENDENT_CODE ON
             CUDA_STANDARD 20
             CUDA_STANDARD_REQUIRED ON
             CUDA_RUNTIME_LIBRARY None)
target_link_libraries(
  kvarts_cuda
  PUBLIC kvarts CUDA::cudart_static
  PRIVATE $<BUILD_INTERFACE:kvarts_kernels>)
# A register that is spilled, or an array in local memory, is a fault of a kernel.
target_compile_options(kvarts_cuda PRIVATE "-Xptxas=-warn-spills,-warn-lmem-usage"
                                           $<$<BOOL:${KVARTS_WERROR}>:-Werror=all-warnings>)
foreach(shape IN ITEMS HEAD_DIMS BLOCKS CHANNEL_GROUPS COLUMN_TILES WINDOW_TYPES)
  list(JOIN KVARTS_CUDA_${shape} "\\," values) # nvcc splits a value at plain commas
  target_compile_definitions(kvarts_cuda PRIVATE KVARTS_${shape}=${values})
endforeach()
