// SPDX-License-Identifier: Apache-2.0
/// @file
/// Instances of the launches, for callers that nvcc does not compile. Codecs that share a
/// `format_of` share kernels: they belong into one file, so that none is compiled twice.
#pragma once

#include <kvarts/kernels/gemv.cuh>
#include <kvarts/quantizer.hpp>

#include <tuple>

namespace kvarts::kernels {

/// `template struct keys_instances<codec, ...>;` puts q.K^T of these codecs into an object file.
template <class... Codecs>
struct keys_instances {
  using packing = fragment<operand::keys>;
  static constexpr std::tuple explain{&cuda::explain_gemv<Codecs, packing>...};
  static constexpr std::tuple qk{&cuda::gemv_qk<Codecs, packing>...};
};

/// p.V of these codecs.
template <class... Codecs>
struct values_instances {
  using packing = fragment<operand::values>;
  static constexpr std::tuple explain{&cuda::explain_gemv<Codecs, packing>...};
  static constexpr std::tuple pv{&cuda::gemv_pv<Codecs, packing>...};
};

/// Both products of plain rows, which have no packing and accept views with any.
template <class... Codecs>
struct row_instances {
  static constexpr std::tuple explain{&cuda::explain_gemv<Codecs, linear>...};
  static constexpr std::tuple qk{&cuda::gemv_qk<Codecs, linear>...};
  static constexpr std::tuple pv{&cuda::gemv_pv<Codecs, linear>...};
};

/// A quantizer along one axis, in groups of 32 and of a length that the layout gives.
template <class Quantizer, axis Along>
using grouped = codec<Quantizer, Along, 32>;
template <class Quantizer, axis Along>
using any_group = codec<Quantizer, Along>;

}  // namespace kvarts::kernels
