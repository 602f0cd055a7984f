// SPDX-License-Identifier: Apache-2.0
/// @file
/// Products of kernels in the emulator, in several schedules that must agree.
#pragma once

#include "support/gemv/gemv_oracle.hpp"
#include "support/simt/for_each_schedule.hpp"

#include <kvarts/kernels/gemv.cuh>

#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::test {

template <class Codec, class Packing>
void check_qk(gemv_shape const& s, std::uint64_t seed) {
  check_scores<Codec, Packing>(
      s, seed, [&](auto const& keys, auto const& queries, auto const& bias) {
        auto const batch = keys.batch();
        std::vector<float> first;
        kernels::simt::for_each_schedule([&](auto const&) {
          std::vector<float> scores(bias.size() * static_cast<std::size_t>(batch.max_tokens),
                                    untouched);
          REQUIRE(cuda::gemv_qk(keys.codes(), batch, s.query_heads, queries.data(), bias.data(),
                                scores.data(), nullptr) == cudaSuccess);
          if (first.empty()) first = scores;
          REQUIRE(scores == first);
        });
        return first;
      });
}

template <class Codec, class Packing>
void check_pv(gemv_shape const& s, std::uint64_t seed, int splits) {
  check_sums<Codec, Packing>(
      s, seed, splits, [&](auto const& values, auto const& p, cuda::gemv_plan const& plan) {
        auto const size = static_cast<std::size_t>(s.sequences()) *
                          static_cast<std::size_t>(s.query_heads * s.head_dim);
        std::vector<float> first, scratch(size * static_cast<std::size_t>(splits), untouched);
        kernels::simt::for_each_schedule([&](auto const&) {
          std::vector<float> output(size, untouched);
          REQUIRE(cuda::gemv_pv(values.codes(), values.batch(), s.query_heads, p.data(),
                                output.data(), plan, scratch.data(), nullptr) == cudaSuccess);
          if (first.empty()) first = output;
          REQUIRE(output == first);
        });
        return first;
      });
}

/// Both products of a codec.
template <class Codec>
void check_products(gemv_shape const& s, std::uint64_t seed, int splits = 2) {
  CAPTURE(std::string(std::string_view(Codec::name())));
  check_qk<Codec, fragment<operand::keys>>(s, seed);
  check_pv<Codec, fragment<operand::values>>(s, seed, splits);
}

}  // namespace kvarts::test
