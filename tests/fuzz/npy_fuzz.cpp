// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npy file: an error, or an array that comes back the same from a file we write.
#include "fuzz_support.hpp"
#include "npy.hpp"

#include <string>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace kvarts;
  auto const array = fuzz::accepted(tool::parse_npy, fuzz::input(data, size));
  if (!array) return 0;
  fuzz::touch(array->bytes);
  std::string copy = tool::npy_prologue(array->dtype, array->shape, "copy");
  copy.append(reinterpret_cast<char const*>(array->bytes.data()), array->bytes.size());
  auto const again = fuzz::accepted(tool::parse_npy, std::as_bytes(std::span(copy)));
  fuzz::require(again && again->dtype == array->dtype && again->shape == array->shape);
  return 0;
}
