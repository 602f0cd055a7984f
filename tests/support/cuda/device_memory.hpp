// SPDX-License-Identifier: Apache-2.0
/// @file
/// Device memory for tests and benchmarks. A fault of the CUDA runtime ends the program with its
/// name.
#pragma once

#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cuda_runtime_api.h>
#include <utility>
#include <vector>

namespace kvarts::test {

/// Whether there is a device that kernels can run on; one sentence says why not.
inline bool find_device() {
  int devices = 0;
  auto const code = cudaGetDeviceCount(&devices);
  if (code == cudaSuccess && devices > 0) return true;
  std::printf("This needs a CUDA device and found none: %s.\n",
              code == cudaSuccess ? "there are 0" : cudaGetErrorString(code));
  return false;
}

inline void must(cudaError_t code) {
  if (code == cudaSuccess) return;
  std::fprintf(stderr, "%s: %s\n", cudaGetErrorName(code), cudaGetErrorString(code));
  std::exit(1);
}

/// `size` values on the device, 256-byte aligned, which move but are not copied.
template <class T>
class device_array {
 public:
  explicit device_array(std::size_t size) : size_(size) {
    if (size != 0) must(cudaMalloc(&data_, size * sizeof(T)));
  }
  device_array(T const* from, std::size_t size) : device_array(size) {
    must(cudaMemcpy(data_, from, size * sizeof(T), cudaMemcpyHostToDevice));
  }
  explicit device_array(std::vector<T> const& from) : device_array(from.data(), from.size()) {}
  device_array(device_array&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(other.size_) {}
  device_array& operator=(device_array&&) = delete;
  ~device_array() { cudaFree(data_); }

  /// Null for no values.
  T* data() const { return static_cast<T*>(data_); }
  std::size_t size() const { return size_; }

  /// The values, once everything before is done.
  std::vector<T> host() const {
    std::vector<T> values(size_);
    must(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  void* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace kvarts::test
