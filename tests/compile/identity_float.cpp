// SPDX-License-Identifier: Apache-2.0
// expect: the identity codec stores half or bfloat16
#include <kvarts/codec.hpp>

int main() { return kvarts::identity<float>::bits; }
