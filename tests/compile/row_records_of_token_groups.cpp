// SPDX-License-Identifier: Apache-2.0
// expect: row records hold single tokens
#include <kvarts/make_layout.hpp>
#include <kvarts/quantizer.hpp>

using keys = kvarts::codec<kvarts::affine<2>, kvarts::axis::token, 32>;
int main() { return kvarts::plan_row_records<keys>(8, 128, 64).heads; }
