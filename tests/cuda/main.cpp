// SPDX-License-Identifier: Apache-2.0
// Without a device these tests are skipped: they exit with 77.
#define CATCH_CONFIG_RUNNER
#include "support/catch.hpp"
#include "support/cuda/device_memory.hpp"

int main(int argc, char** argv) {
  if (!kvarts::test::find_device()) return 77;
  return Catch::Session().run(argc, argv);
}
