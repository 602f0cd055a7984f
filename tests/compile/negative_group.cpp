// SPDX-License-Identifier: Apache-2.0
// expect: a group length is positive, or dynamic_group
#include <kvarts/codec.hpp>
#include <kvarts/quantizer.hpp>

int main() { return kvarts::codec<kvarts::affine<2>, kvarts::axis::channel, -32>::bits; }
