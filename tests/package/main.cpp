// SPDX-License-Identifier: Apache-2.0
// The program of all consumer projects here: it uses the installed library as an engine would.
#include <kvarts/kvarts.hpp>

#include <cstdio>

int main() {
  float const back = kvarts::half(1.0f / 3.0f);
  std::printf("kvarts %d.%d.%d: half(1/3) = %.10f\n", KVARTS_VERSION_MAJOR, KVARTS_VERSION_MINOR,
              KVARTS_VERSION_PATCH, static_cast<double>(back));
  return back == 0x1.554p-2f ? 0 : 1;
}
