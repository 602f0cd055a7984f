// SPDX-License-Identifier: Apache-2.0
// expect: kvarts needs C++20
// flags: -std=c++17
#include <kvarts/config.hpp>

int main() {}
