// SPDX-License-Identifier: Apache-2.0
// expect: kvarts stores the same bytes everywhere
// flags: -ffast-math
#include <kvarts/config.hpp>

int main() {}
