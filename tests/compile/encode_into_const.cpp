// SPDX-License-Identifier: Apache-2.0
// expect: no matching function for call to
// A reader's view is no destination.
#include <kvarts/encode.hpp>
#include <kvarts/quantizer.hpp>

int main() {
  kvarts::view<kvarts::row_codec<kvarts::int8_head>, std::byte const> const readers{};
  return static_cast<int>(encode(readers, kvarts::source_view{}, {0, 0}).code);
}
