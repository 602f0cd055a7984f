// SPDX-License-Identifier: Apache-2.0
// expect: hybrid quantizers are narrow or wide
#include <kvarts/quantizer.hpp>

int main() { return kvarts::hybrid<2, kvarts::range::searched>::bits; }
