// SPDX-License-Identifier: Apache-2.0
/// @file
/// Products of the shipped kernels on the device.
#pragma once

#include "support/cuda/device_memory.hpp"
#include "support/gemv/gemv_oracle.hpp"

#include <kvarts/cuda/gemv.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::test {

/// A coded batch in device memory.
template <class Codec, class Packing>
class device_batch {
 public:
  explicit device_batch(coded_batch<Codec, Packing> const& on_host)
      : bytes_(on_host.codes().data, on_host.size_bytes()),
        ends_(on_host.shape.lengths),
        begins_(on_host.shape.begins),
        tables_(on_host.batch().block_tables, on_host.table_entries()),
        codes_{bytes_.data(), on_host.codes().map, {}},
        batch_(on_host.batch()) {
    batch_.ends = ends_.data();
    batch_.begins = begins_.data();
    batch_.block_tables = tables_.data();
  }

  view<Codec, std::byte const, Packing> codes() const { return codes_; }
  cuda::batch batch() const { return batch_; }

 private:
  device_array<std::byte> bytes_;
  device_array<std::int64_t> ends_;
  device_array<std::int64_t> begins_;
  device_array<std::int32_t> tables_;
  view<Codec, std::byte const, Packing> codes_;
  cuda::batch batch_;
};

/// Both products of a codec that `kvarts::cuda` has kernels for on that side.
template <class Codec>
void check_keys(gemv_shape const& s, std::uint64_t seed) {
  CAPTURE(std::string(std::string_view(Codec::name())));
  using packing = fragment<operand::keys>;
  check_scores<Codec, packing>(s, seed, [&](auto const& keys, auto const& q, auto const& b) {
    device_batch<Codec, packing> const batch(keys);
    device_array<float> const queries(q), bias(b);
    std::vector<float> const nothing(b.size() * static_cast<std::size_t>(batch.batch().max_tokens),
                                     untouched);
    device_array<float> const scores(nothing);
    REQUIRE(cuda::gemv_qk(batch.codes(), batch.batch(), s.query_heads, queries.data(), bias.data(),
                          scores.data(), nullptr) == cudaSuccess);
    return scores.host();
  });
}

template <class Codec>
void check_values(gemv_shape const& s, std::uint64_t seed, int splits) {
  CAPTURE(std::string(std::string_view(Codec::name())));
  using packing = fragment<operand::values>;
  check_sums<Codec, packing>(
      s, seed, splits, [&](auto const& values, auto const& p, cuda::gemv_plan const& plan) {
        device_batch<Codec, packing> const batch(values);
        auto const size = static_cast<std::size_t>(s.sequences()) *
                          static_cast<std::size_t>(s.query_heads * s.head_dim);
        device_array<float> const weights(p), output(size);
        device_array<float> const scratch(size * static_cast<std::size_t>(splits));
        REQUIRE(cuda::gemv_pv(batch.codes(), batch.batch(), s.query_heads, weights.data(),
                              output.data(), plan, scratch.data(), nullptr) == cudaSuccess);
        return output.host();
      });
}

}  // namespace kvarts::test
