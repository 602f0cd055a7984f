// SPDX-License-Identifier: Apache-2.0
// Any bytes as a page file of a tier, as they are and with their checksums made right, since no
// mutation finds those: an error that leaves the tier as it was, or a page that is written again as
// the same bytes. The tier is that of tests/fuzz/corpus/page.
#include "fuzz_support.hpp"

#include <kvarts/scheme.hpp>
#include <kvarts/tier/page_file.hpp>

#include <algorithm>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;

constexpr int pages = 2;

geometry tier_of_corpus() {
  using three = codec<symmetric<3, range::wide>, axis::channel>;
  geometry g =
      uniform_geometry(3, 2, segment_of<three>(20, 8), segment_of<row_codec<int8_head>>(20));
  g.page_tokens = 2;
  g.alignment = 16;
  g.placement = host_layout::page_first;
  return g;
}

void check(page_format const& format, std::span<std::byte const> file) {
  auto const [header, error] = parse_page_header(file);
  if (error) return;
  auto const bytes = serialize(header);
  fuzz::require(std::equal(bytes.begin(), bytes.end(), file.begin()));
  auto const room = static_cast<std::size_t>(size_bytes(format.shape, header.place.which, pages));
  std::vector<std::byte> memory(room, std::byte{0x5A});
  if (restore_page(format, header.place, file, memory, 1)) {
    auto const untouched = [](std::byte b) { return b == std::byte{0x5A}; };
    fuzz::require(std::all_of(memory.begin(), memory.end(), untouched));
    return;
  }
  std::vector<std::byte> again(file.size());
  fuzz::require(!write_page(format, header.place, memory, 1, again));
  fuzz::require(std::equal(again.begin(), again.end(), file.begin(), file.end()));
}

void make_checksums_right(std::vector<std::byte>& file) {
  auto const bytes = std::span<std::byte const>(file);
  store_unaligned(&file[104], crc32c(bytes.subspan(kvt_header_bytes)));
  store_unaligned(&file[252], crc32c(bytes.first(252)));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(std::uint8_t const* data, std::size_t size) {
  static page_format const format{page_config{tier_of_corpus()}};
  auto const file = fuzz::input(data, size);
  check(format, file);
  if (size < kvt_header_bytes) return 0;
  std::vector<std::byte> sealed(file.begin(), file.end());
  make_checksums_right(sealed);
  check(format, sealed);
  return 0;
}
