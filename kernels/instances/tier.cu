// SPDX-License-Identifier: Apache-2.0
// The tier's own launch, and its moves on CUDA.
#include <kvarts/kernels/upload.cuh>
#include <kvarts/tier/cuda_device.hpp>
#include <kvarts/tier/page_mover.hpp>

namespace kvarts {

template cudaError_t cuda::upload<>(std::int32_t*, std::int32_t const*, std::int64_t, cudaStream_t);

namespace tier {

static_assert(device<cuda_device>);
template class staging_ring<cuda_device>;
template class layer_events<cuda_device>;
template class page_mover<cuda_device>;

}  // namespace tier
}  // namespace kvarts
