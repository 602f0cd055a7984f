// SPDX-License-Identifier: Apache-2.0
/// @file
/// Awkward inputs of an encoder: rows of every kind, in every type, behind every transform.
#pragma once

#include <kvarts/transform.hpp>

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <support/group_data.hpp>
#include <support/random.hpp>
#include <support/rows.hpp>
#include <support/simt/schedule.hpp>
#include <vector>

namespace kvarts::test {

/// Rows that differ in kind from head to head and from token to token; some numbers are not finite.
inline rows awkward_rows(random_source& random, int heads, int head_dim, std::int64_t tokens,
                         bool nonfinite) {
  constexpr float odd[] = {std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity()};
  rows r(heads, head_dim, tokens);
  for (std::int64_t t = 0; t < tokens; ++t) {
    for (int h = 0; h < heads; ++h) {
      auto const kind = row_data[static_cast<std::size_t>(random.between(0, 11))];
      auto const x = draw_group(random, kind, head_dim);
      for (int d = 0; d < head_dim; ++d) {
        bool const is_odd = nonfinite && random.between(0, 99) == 0;
        r.at(t, h, d) = is_odd ? odd[random.between(0, 2)] : x[static_cast<std::size_t>(d)];
      }
    }
  }
  return r;
}

/// A transform with the memory that it points to.
struct owned_transform {
  std::vector<float> center;
  std::vector<float> norm;
  std::vector<float> dense;
  transform_view view{};
};

/// Kinds of transforms: none, one round, several rounds, norm, center and norm and a round, a dense
/// matrix (of any numbers).
inline constexpr int transform_kinds = 6;

inline owned_transform make_transform(random_source& random, int kind, int heads, int head_dim) {
  owned_transform t;
  bool const has_norm = kind == 3 || kind == 4;
  for (int i = 0; i < heads * head_dim; ++i) {
    if (kind == 4) t.center.push_back(static_cast<float>(3.0 * random.normal()));
    if (has_norm) t.norm.push_back(static_cast<float>(0.05 + std::fabs(random.normal())));
  }
  for (int i = 0; kind == 5 && i < head_dim * head_dim; ++i) {
    t.dense.push_back(static_cast<float>(random.normal() / std::sqrt(head_dim)));
  }
  t.view.center = t.center.empty() ? nullptr : t.center.data();
  t.view.norm = t.norm.empty() ? nullptr : t.norm.data();
  t.view.head_stride = head_dim;
  if (kind == 1 || kind == 4) t.view.rotate = {1, 1};
  if (kind == 2) t.view.rotate = {random.between(2, max_rotation_rounds), 7};
  if (kind == 5) t.view.rotate = {0, 1, t.dense.data()};
  return t;
}

/// The n-th element type and order of a tensor's strides; rows may be apart.
inline plain_memory nth_tensor(rows const& r, int n) {
  constexpr dtype types[] = {dtype::f16, dtype::bf16, dtype::f32};
  dtype const type = types[n % 3];
  std::int64_t const row = r.head_dim + (n / 3 % 2) * 8;
  std::int64_t const size = static_cast<std::int64_t>(element_size(type));
  bool const head_major = n / 6 % 2 != 0;
  tensor_strides const strides =
      head_major ? tensor_strides{row, row * r.tokens, 0} : tensor_strides{row * r.heads, row, 0};
  return strided(r, type, strides, static_cast<std::size_t>(size * (n % 5)));
}

/// The n-th schedule of the emulator.
inline kernels::simt::schedule nth_schedule(int n) {
  return kernels::simt::all_schedules()[static_cast<std::size_t>(n % 3)];
}

}  // namespace kvarts::test
