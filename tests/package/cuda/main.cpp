// SPDX-License-Identifier: Apache-2.0
// An engine without CUDA sources launches the kernels of a shipped codec.
#include "../gemv_on_device.hpp"

int main() { return gemv_on_device<kvarts::row_codec<kvarts::midrise<3>>>(); }
