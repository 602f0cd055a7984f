// SPDX-License-Identifier: Apache-2.0
// expect: a tensor's elements are half, bfloat16 or float
#include <kvarts/tensor.hpp>

int main() {
  double x[8] = {};
  return kvarts::make_tensor(x, 1, 8, 1).map.heads;
}
