// SPDX-License-Identifier: Apache-2.0
// expect: symmetric quantizers have 2, 3, 4 or 8 bits
#include <kvarts/quantizer.hpp>

int main() { return kvarts::symmetric<5, kvarts::range::narrow>::bits; }
