// SPDX-License-Identifier: Apache-2.0
// expect: take one scale a row: use axis::row
#include <kvarts/codec.hpp>
#include <kvarts/quantizer.hpp>

int main() { return kvarts::codec<kvarts::midrise<3>, kvarts::axis::channel, 32>::bits; }
