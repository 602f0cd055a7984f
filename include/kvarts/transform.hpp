// SPDX-License-Identifier: Apache-2.0
/// @file
/// What happens to rows before they are coded, and how queries and outputs take it back.
///
/// Keys are coded as `y = R((k - center) / norm)`; then `q.k = q'.y + q.center` with
/// `q' = R^-T(norm * q)`, so codes, decoders and kernels never see the transform. Values are
/// rotated only, and the output of the coded part is rotated back once per query head. Each part is
/// optional.
#pragma once

#include <kvarts/numerics.hpp>
#include <kvarts/rotation.hpp>
#include <kvarts/status.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

namespace kvarts {

/// A transform of one layer's K or V, not owning. `center` and `norm` are float32 `[heads,
/// head_dim]` with `head_stride` elements between heads; null means none. Trivially copyable.
struct transform_view {
  float const* center = nullptr;
  float const* norm = nullptr;
  std::int64_t head_stride = 0;
  rotation rotate{};
};

/// An owning transform of one layer: `center` and `norm` are `[heads, head_dim]`, or empty.
struct transform {
  int heads = 0;
  int head_dim = 0;
  std::vector<float> center;
  std::vector<float> norm;
  rotation rotate{};

  transform_view view() const noexcept {
    return {center.empty() ? nullptr : center.data(), norm.empty() ? nullptr : norm.data(),
            head_dim, rotate};
  }
};

/// First fault of a transform for `heads` KV heads of `head_dim`: a center that is not finite, a
/// norm that is not finite and positive, or rounds outside 0..max_rotation_rounds.
inline problem check(transform_view const& t, int heads, int head_dim) noexcept {
  if (t.rotate.rounds < 0 || t.rotate.rounds > max_rotation_rounds) {
    return {status::bad_transform, "a rotation has 0 to {} rounds, not {}", max_rotation_rounds,
            t.rotate.rounds};
  }
  for (int h = 0; h < heads; ++h) {
    for (int d = 0; d < head_dim; ++d) {
      if (t.center != nullptr && !std::isfinite(t.center[h * t.head_stride + d])) {
        return {status::bad_transform, "the center of head {}, channel {} is not finite", h, d};
      }
      if (t.norm == nullptr) continue;
      float const n = t.norm[h * t.head_stride + d];
      if (!std::isfinite(n) || !(n > 0.0f)) {
        return {status::bad_transform, "the norm of head {}, channel {} is not finite and positive",
                h, d};
      }
    }
  }
  return {};
}

/// First fault of an owning transform for a cache of `heads` KV heads of `head_dim`.
inline problem check(transform const& t, int heads, int head_dim) noexcept {
  if (t.heads != heads) {
    return {status::bad_transform, "the transform has {} KV heads where the cache has {}", t.heads,
            heads};
  }
  if (t.head_dim != head_dim) {
    return {status::bad_transform, "the transform has head_dim {} where the cache has {}",
            t.head_dim, head_dim};
  }
  auto const expected = static_cast<std::size_t>(heads) * static_cast<std::size_t>(head_dim);
  for (auto const* part : {&t.center, &t.norm}) {
    if (!part->empty() && part->size() != expected) {
      return {status::bad_transform, "a part of the transform has {} numbers where {} are needed",
              static_cast<std::int64_t>(part->size()), static_cast<std::int64_t>(expected)};
    }
  }
  return check(t.view(), heads, head_dim);
}

namespace detail {

/// Rows are clamped to this where they enter a rotation or a row quantizer (fp16's largest value).
inline constexpr float row_limit = 65504.0f;

/// Clamps by magnitude bits, which vectorizes; `limit` > 0.
constexpr float clamp_magnitude(float x, float limit) noexcept {
  auto const bits = std::bit_cast<std::uint32_t>(x);
  auto magnitude = static_cast<std::int32_t>(bits & 0x7FFFFFFFu);
  auto const highest = std::bit_cast<std::int32_t>(limit);
  magnitude = magnitude > highest ? highest : magnitude;
  return std::bit_cast<float>(static_cast<std::uint32_t>(magnitude) | (bits & 0x80000000u));
}

/// A transform made ready for the rows of one head_dim.
class prepared_transform {
 public:
  prepared_transform(transform_view const& t, int head_dim) noexcept
      : view_(t), head_dim_(head_dim), rotation_(t.rotate, head_dim) {}

  /// The first half of the way to coded space: center, norm and clamp, in place. Row quantizers and
  /// rotations take rows clamped to fp16's range; else infinities that the division made count as
  /// the largest float.
  void normalize(int head, float* row, bool clamp_rows) const noexcept {
    if (view_.center != nullptr) {
      float const* const center = view_.center + head * view_.head_stride;
      for (int d = 0; d < head_dim_; ++d) row[d] -= center[d];
    }
    if (view_.norm != nullptr) {
      float const* const norm = view_.norm + head * view_.head_stride;
      for (int d = 0; d < head_dim_; ++d) row[d] /= norm[d];
    }
    if (clamp_rows || !rotation_.identity()) {
      for (int d = 0; d < head_dim_; ++d) row[d] = clamp_magnitude(row[d], row_limit);
    } else if (view_.center != nullptr || view_.norm != nullptr) {
      for (int d = 0; d < head_dim_; ++d) row[d] = clamp_magnitude(row[d], 0x1.FFFFFEp127f);
    }
  }

  /// The second half: the rotation, in place.
  void rotate(float* row) const noexcept { rotation_.forward(row); }

  /// Coded space to model space, in place.
  void to_model(int head, float* row) const noexcept {
    rotation_.inverse(row);
    if (view_.norm != nullptr) {
      float const* const norm = view_.norm + head * view_.head_stride;
      for (int d = 0; d < head_dim_; ++d) row[d] *= norm[d];
      round_products(row);
    }
    if (view_.center != nullptr) {
      float const* const center = view_.center + head * view_.head_stride;
      for (int d = 0; d < head_dim_; ++d) row[d] += center[d];
    }
  }

  /// q' = R^-T(norm * q), in place; returns the bias q.center, summed in float64.
  double fold_query(int head, float* query) const noexcept {
    double bias = 0.0;
    if (view_.center != nullptr) {
      float const* const center = view_.center + head * view_.head_stride;
      for (int d = 0; d < head_dim_; ++d) bias += static_cast<double>(query[d]) * center[d];
    }
    if (view_.norm != nullptr) {
      float const* const norm = view_.norm + head * view_.head_stride;
      for (int d = 0; d < head_dim_; ++d) query[d] *= norm[d];
      round_products(query);
    }
    rotation_.forward_query(query);
    return bias;
  }

  void unrotate(float* output) const noexcept { rotation_.inverse(output); }

 private:
  transform_view view_;
  int head_dim_;
  prepared_rotation<float> rotation_;
};

}  // namespace detail

/// Folds a query of one KV head for products with coded keys: `folded[head_dim]` = R^-T(norm * q),
/// float32 operations rounded by themselves; returns the bias q.center (float64), which is added to
/// scores of coded keys only. `folded` may be `query`.
inline double fold_query(transform_view const& t, int kv_head, int head_dim, float const* query,
                         float* folded) noexcept {
  for (int d = 0; d < head_dim; ++d) folded[d] = query[d];
  return detail::prepared_transform(t, head_dim).fold_query(kv_head, folded);
}

/// Rotates the output of the coded values back, in place: `output[head_dim]`, once per query head.
inline void unrotate(rotation const& r, int head_dim, float* output) noexcept {
  detail::prepared_rotation<float>(r, head_dim).inverse(output);
}

}  // namespace kvarts
