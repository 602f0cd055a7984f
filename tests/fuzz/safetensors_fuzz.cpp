// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .safetensors file: an error, or tensors whose bytes make up the file's data.
#include "fuzz_support.hpp"
#include "safetensors.hpp"

#include <kvarts/bits.hpp>

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  using namespace kvarts;
  auto const file = fuzz::input(data, size);
  auto const contents = fuzz::accepted(tool::parse_safetensors, file);
  if (!contents) return 0;
  std::size_t bytes = 8 + load_unaligned<std::uint64_t>(file.data());
  for (auto const& [name, tensor] : contents->tensors) {
    fuzz::touch(tensor.bytes);
    bytes += tensor.bytes.size();
  }
  fuzz::require(bytes == size);
  return 0;
}
