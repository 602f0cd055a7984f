// SPDX-License-Identifier: Apache-2.0
// expect: success
// The control of encode_into_const.cpp: the same call with a writable view.
#include <kvarts/encode.hpp>
#include <kvarts/quantizer.hpp>

int main() {
  kvarts::view<kvarts::row_codec<kvarts::int8_head>, std::byte> const writers{};
  return static_cast<int>(encode(writers, kvarts::source_view{}, {0, 0}).code);
}
