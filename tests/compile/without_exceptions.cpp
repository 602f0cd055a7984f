// SPDX-License-Identifier: Apache-2.0
// expect: success
// flags: -fno-exceptions -fno-rtti
// Engines without exceptions or RTTI use `check_*` and `status`.
#include <kvarts/kvarts.hpp>

int main() { return static_cast<int>(kvarts::status::ok); }
