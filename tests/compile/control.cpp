// SPDX-License-Identifier: Apache-2.0
// expect: success
// Shows that the flags and folders of these tests are right: refusals elsewhere have their own cause.
#include <kvarts/kvarts.hpp>

static_assert(float(kvarts::half(1.5f)) == 1.5f);
int main() {}
