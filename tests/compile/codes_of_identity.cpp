// SPDX-License-Identifier: Apache-2.0
// expect: the identity codec has values, not codes
#include <kvarts/decode.hpp>

int main() {
  kvarts::view<kvarts::identity<kvarts::half>> const plain{};
  load_codes(plain, 0, 0, nullptr);
}
