// SPDX-License-Identifier: Apache-2.0
// expect: a row codec has no group length
#include <kvarts/codec.hpp>
#include <kvarts/quantizer.hpp>

int main() { return kvarts::codec<kvarts::int8_head, kvarts::axis::row, 32>::bits; }
