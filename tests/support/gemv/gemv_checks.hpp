// SPDX-License-Identifier: Apache-2.0
/// @file
/// Products of kernels in the emulator against plain float64 loops over decoded numbers.
#pragma once

#include "support/catch.hpp"
#include "support/gemv/coded_batch.hpp"
#include "support/misses.hpp"
#include "support/simt/for_each_schedule.hpp"

#include <kvarts/kernels/gemv.cuh>

#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::test {

inline constexpr float untouched = -12345.0f;

inline std::string where(int sequence, int head, std::int64_t item) {
  return "sequence " + std::to_string(sequence) + ", query head " + std::to_string(head) +
         ", item " + std::to_string(item);
}

/// Twice the bound of uniform levels where levels are rounded too, or where a zero-point cancels
/// most of a code.
template <class Codec>
constexpr double bound_factor() {
  if constexpr (Codec::plain) {
    return 1.0;
  } else {
    return kernels::levels_of<typename Codec::quantizer_type> == kernels::levels::uniform ? 1.0
                                                                                          : 2.0;
  }
}

/// What an error is measured by: the number itself, or with zero-points, which codes nearly cancel,
/// the largest of its group.
template <class Codec, class Batch>
double magnitude(Batch const& b, int sequence, std::int64_t token, int head, int channel) {
  if constexpr (!Codec::plain) {
    double largest = 0.0;
    gemv_shape const& s = b.shape;
    if constexpr (Codec::zero_bytes != 0 && Codec::grouped_along == axis::channel) {
      int const first = channel / s.group * s.group;
      for (int d = first; d < std::min(first + s.group, s.head_dim); ++d) {
        largest = std::max(largest, std::fabs(b.at(sequence, token, head, d)));
      }
      return largest;
    } else if constexpr (Codec::zero_bytes != 0) {
      std::int64_t const first = token / s.group * s.group;
      for (std::int64_t t = first; t < std::min(first + s.group, s.end(sequence)); ++t) {
        largest = std::max(largest, std::fabs(b.at(sequence, t, head, channel)));
      }
      return largest;
    }
  }
  return std::fabs(b.at(sequence, token, head, channel));
}

/// Scores of random queries, heads of very different sizes, against float64.
template <class Codec, class Packing>
void check_qk(gemv_shape const& s, std::uint64_t seed) {
  CAPTURE(s.head_dim, s.heads, s.query_heads, s.tile_tokens, s.group, s.page_tokens);
  random_source random(seed);
  coded_batch<Codec, Packing> const keys(
      s, [&](int i) { return awkward_rows(random, s.heads, s.head_dim, s.end(i)); });
  REQUIRE(keys.ok());
  auto const rows_of_q = static_cast<std::size_t>(s.sequences() * s.query_heads);
  std::vector<float> queries(rows_of_q * static_cast<std::size_t>(s.head_dim)), bias(rows_of_q);
  for (std::size_t i = 0; i < queries.size(); ++i) {
    int const head = static_cast<int>(i) / s.head_dim;
    queries[i] =
        head % 7 == 6 ? 0.0f : static_cast<float>(std::ldexp(random.normal(), head % 5 * 7 - 14));
  }
  for (auto& b : bias) b = static_cast<float>(random.normal());
  auto const batch = keys.batch();
  auto const size = rows_of_q * static_cast<std::size_t>(batch.max_tokens);

  std::vector<float> first;
  kernels::simt::for_each_schedule([&](auto const&) {
    std::vector<float> scores(size, untouched);
    REQUIRE(cuda::gemv_qk(keys.codes(), batch, s.query_heads, queries.data(), bias.data(),
                          scores.data(), nullptr) == cudaSuccess);
    if (first.empty()) first = scores;
    REQUIRE(scores == first);
  });

  misses found;
  int const shared = s.query_heads / s.heads;
  for (int i = 0; i < s.sequences(); ++i) {
    for (int h = 0; h < s.query_heads; ++h) {
      auto const row = static_cast<std::size_t>(i * s.query_heads + h);
      float const* const q = queries.data() + row * static_cast<std::size_t>(s.head_dim);
      for (std::int64_t item = 0; item < batch.max_tokens; ++item) {
        std::int64_t const t = s.begin(i) + item;
        float const score = first[row * static_cast<std::size_t>(batch.max_tokens) +
                                  static_cast<std::size_t>(item)];
        if (t >= s.end(i)) {
          found.compare(score, untouched, 0.0, where(i, h, item));
          continue;
        }
        double sum = 0.0, sizes = 0.0, largest = 0.0;
        for (int d = 0; d < s.head_dim; ++d) {
          sum += double{q[d]} * keys.at(i, t, h / shared, d);
          double const size_of =
              std::fabs(double{q[d]}) * magnitude<Codec>(keys, i, t, h / shared, d);
          sizes += size_of;
          largest = std::max(largest, size_of);
        }
        double const bound =
            bound_factor<Codec>() * (0x1p-11 * sizes + s.head_dim * 0x1p-20 * largest) +
            0x1p-22 * std::fabs(bias[row]) + 1e-30;
        found.compare(score, sum + double{bias[row]}, bound, where(i, h, item));
      }
    }
  }
  found.require_none();
}

/// Weighted sums, weights of either sign and of very different sizes, against float64.
template <class Codec, class Packing>
void check_pv(gemv_shape const& s, std::uint64_t seed, int splits) {
  CAPTURE(s.head_dim, s.heads, s.query_heads, s.tile_tokens, s.group, s.page_tokens, splits);
  random_source random(seed);
  coded_batch<Codec, Packing> const values(
      s, [&](int i) { return awkward_rows(random, s.heads, s.head_dim, s.end(i)); });
  REQUIRE(values.ok());
  auto const batch = values.batch();
  auto const rows_of_q = static_cast<std::size_t>(s.sequences() * s.query_heads);
  auto const tokens = static_cast<std::size_t>(batch.max_tokens);
  std::vector<float> p(rows_of_q * tokens);
  for (std::size_t i = 0; i < p.size(); ++i) {
    int const head = static_cast<int>(i / tokens);
    double const size = std::ldexp(std::pow(random.uniform(), 4.0), head % 5 * 9 - 18);
    p[i] = static_cast<float>(random.bits() % 4 == 0 ? -size : size);
  }
  auto const size = rows_of_q * static_cast<std::size_t>(s.head_dim);
  auto plan = cuda::plan_gemv_pv(values.codes().map, batch, s.query_heads, 1);
  plan.splits = splits;
  std::vector<float> first, scratch(size * static_cast<std::size_t>(splits), untouched);
  kernels::simt::for_each_schedule([&](auto const&) {
    std::vector<float> output(size, untouched);
    REQUIRE(cuda::gemv_pv(values.codes(), batch, s.query_heads, p.data(), output.data(), plan,
                          scratch.data(), nullptr) == cudaSuccess);
    if (first.empty()) first = output;
    REQUIRE(output == first);
  });

  misses found;
  int const shared = s.query_heads / s.heads;
  for (int i = 0; i < s.sequences(); ++i) {
    for (int h = 0; h < s.query_heads; ++h) {
      auto const row = static_cast<std::size_t>(i * s.query_heads + h);
      double largest = 0.0;
      for (int d = 0; d < s.head_dim; ++d) {
        for (std::int64_t t = s.begin(i); t < s.end(i); ++t) {
          double const weight = p[row * tokens + static_cast<std::size_t>(t - s.begin(i))];
          largest = std::max(largest, std::fabs(weight * values.at(i, t, h / shared, d)));
        }
      }
      for (int d = 0; d < s.head_dim; ++d) {
        double sum = 0.0, sizes = 0.0;
        for (std::int64_t t = s.begin(i); t < s.end(i); ++t) {
          double const weight = p[row * tokens + static_cast<std::size_t>(t - s.begin(i))];
          sum += weight * values.at(i, t, h / shared, d);
          sizes += std::fabs(weight) * magnitude<Codec>(values, i, t, h / shared, d);
        }
        double const count = static_cast<double>(s.end(i) - s.begin(i));
        double const bound =
            bound_factor<Codec>() * (0x1p-11 * sizes + count * 0x1p-20 * largest) + 1e-30;
        found.compare(
            first[row * static_cast<std::size_t>(s.head_dim) + static_cast<std::size_t>(d)], sum,
            bound, where(i, h, d));
      }
    }
  }
  found.require_none();
}

/// Both products of a codec.
template <class Codec>
void check_products(gemv_shape const& s, std::uint64_t seed, int splits = 2) {
  CAPTURE(std::string(std::string_view(Codec::name())));
  check_qk<Codec, fragment<operand::keys>>(s, seed);
  check_pv<Codec, fragment<operand::values>>(s, seed, splits);
}

}  // namespace kvarts::test
