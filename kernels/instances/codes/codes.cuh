// SPDX-License-Identifier: Apache-2.0
/// @file
/// Instances of the launches that move rows to codes and back, in both packings of their side.
#pragma once

#include <kvarts/kernels/decode.cuh>
#include <kvarts/kernels/encode.cuh>
#include <kvarts/kernels/repack.cuh>
#include <kvarts/quantizer.hpp>

#include <tuple>

namespace kvarts::kernels {

/// `template struct code_instances<packing, codec, ...>;` puts encode, append and decode of these
/// codecs in one packing into an object file.
template <class Packing, class... Codecs>
struct code_instances {
  static constexpr std::tuple explain{&cuda::explain_encode<Codecs, Packing>...,
                                      &cuda::explain_append<Codecs, Packing>...,
                                      &cuda::explain_decode<Codecs, Packing>...};
  static constexpr std::tuple encode{&cuda::encode<Codecs, Packing>...};
  static constexpr std::tuple append{&cuda::append<Codecs, Packing>...};
  static constexpr std::tuple decode{&cuda::decode<Codecs, Packing>...};
};

/// Repacks of these codecs between the linear packing and that of one side.
template <class Packing, class... Codecs>
struct repack_instances {
  static constexpr std::tuple explain{&cuda::explain_repack<Codecs, linear, Packing>...,
                                      &cuda::explain_repack<Codecs, Packing, linear>...};
  static constexpr std::tuple to{&cuda::repack<Codecs, linear, Packing>...};
  static constexpr std::tuple back{&cuda::repack<Codecs, Packing, linear>...};
};

}  // namespace kvarts::kernels
