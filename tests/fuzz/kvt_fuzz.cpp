// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .kvt file, as they are and with their checksums made right, since no mutation
// finds those: an error, or a header that serializes to the bytes that it came from.
#include "fuzz_support.hpp"
#include "kvt_file.hpp"

#include <kvarts/bits.hpp>
#include <kvarts/crc32c.hpp>
#include <kvarts/kvt.hpp>

#include <algorithm>
#include <vector>

namespace {

using namespace kvarts;

void check(std::span<std::byte const> file) {
  auto const contents = fuzz::accepted(tool::parse_kvt_file, file);
  if (!contents) return;
  fuzz::touch(contents->payload);
  auto const header = serialize(contents->header);
  fuzz::require(std::equal(header.begin(), header.end(), file.begin()));
  std::size_t const floats = contents->center.size() + contents->norm.size();
  fuzz::require(header.size() + floats * sizeof(float) + contents->payload.size() == file.size());
}

void seal(std::vector<std::byte>& file, std::size_t offset, std::span<std::byte const> section) {
  store_unaligned(&file[offset], crc32c(section));
}

/// Sets the header's CRC and, where the sections lie within the file, theirs.
void make_checksums_right(std::vector<std::byte>& file) {
  auto const bytes = std::span<std::byte const>(file);
  auto const header = bytes.first(252);
  seal(file, 252, header);
  kvt_header const read = parse_kvt_header(bytes).header;
  if (check_kvt_header(read) || read.file_bytes() != static_cast<std::int64_t>(file.size())) return;
  auto const payload = static_cast<std::size_t>(read.payload_bytes);
  seal(file, 92, bytes.subspan(256, file.size() - 256 - payload));
  seal(file, 104, bytes.last(payload));
  seal(file, 252, header);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  auto const file = fuzz::input(data, size);
  check(file);
  if (size < 256) return 0;
  std::vector<std::byte> sealed(file.begin(), file.end());
  make_checksums_right(sealed);
  check(sealed);
  return 0;
}
