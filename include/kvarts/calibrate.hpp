// SPDX-License-Identifier: Apache-2.0
/// @file
/// Where centers and norms of key transforms come from: calibration text, a prefill, or InnerQ's
/// rule. These run once, on the host, and own their memory.
#pragma once

#include <kvarts/rows.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>

#include <cmath>
#include <cstdint>
#include <vector>

namespace kvarts {

/// Keys before this position are left out of calibrations: the first tokens (sinks) look like no
/// other.
inline constexpr std::int64_t calibration_skips = 32;

namespace detail {

/// Count, sum and sum of squares per number, about a shift that keeps float64 exact enough when the
/// center is large against the spread.
class moments {
 public:
  explicit moments(std::size_t size) : shift_(size), sum_(size), squares_(size), count_(size) {}

  void add(std::size_t i, double x, bool about_first) {
    if (count_[i] == 0 && about_first) shift_[i] = x;
    double const d = x - shift_[i];
    sum_[i] += d;
    squares_[i] += d * d;
    ++count_[i];
  }
  bool empty() const noexcept { return count_.empty() || count_[0] == 0; }
  double mean(std::size_t i) const { return shift_[i] + sum_[i] / static_cast<double>(count_[i]); }
  /// Root mean square about the shift (zero unless `about_first`).
  double rms(std::size_t i) const {
    return std::sqrt(squares_[i] / static_cast<double>(count_[i]));
  }
  double deviation(std::size_t i) const {
    double const n = static_cast<double>(count_[i]);
    double const mean = sum_[i] / n;
    double const variance = squares_[i] / n - mean * mean;
    return variance > 0.0 ? std::sqrt(variance) : 0.0;
  }

 private:
  std::vector<double> shift_, sum_, squares_;
  std::vector<std::int64_t> count_;
};

}  // namespace detail

/// Collects keys and queries of one layer, from one or several texts, and makes its transform:
/// center = mean of the keys; norm = sqrt(sd / qr), sd the deviation of the keys about it and qr
/// the root mean square of the queries that read the KV head (1 where either is zero; without
/// queries sqrt(sd)). Sums in float64. The rotation is the caller's choice, one round with seed 1
/// unless set.
class calibrator {
 public:
  calibrator(int heads, int head_dim)
      : heads_(heads), head_dim_(head_dim), keys_(size()), queries_(size()) {}

  /// Keys `[tokens, heads, head_dim]` of one text from position 0 on; the first `skip` are left
  /// out. Non-finite numbers count as encoders count them.
  status add_keys(source_view keys, std::int64_t skip = calibration_skips) {
    if (keys.map.head_dim != head_dim_) return status::bad_head_dim;
    if (keys.map.heads != heads_) return status::bad_heads;
    add(keys_, keys, skip, 1, true);
    return status::ok;
  }

  /// Queries `[queries, query_heads, head_dim]`; query head i reads KV head i / (query_heads /
  /// heads).
  status add_queries(source_view queries) {
    if (queries.map.head_dim != head_dim_) return status::bad_head_dim;
    if (heads_ < 1 || queries.map.heads % heads_ != 0) return status::bad_heads;
    add(queries_, queries, 0, queries.map.heads / heads_, false);
    return status::ok;
  }

  /// The transform; without any keys it is the rotation alone.
  transform finish(rotation rotate = {1, 1}) const {
    transform t{heads_, head_dim_, {}, {}, rotate};
    if (keys_.empty()) return t;
    t.center.resize(size());
    t.norm.resize(size());
    for (std::size_t i = 0; i < size(); ++i) {
      double const deviation = keys_.deviation(i);
      double const reads = queries_.empty() ? 1.0 : queries_.rms(i);
      t.center[i] = static_cast<float>(keys_.mean(i));
      auto const norm = static_cast<float>(std::sqrt(deviation / reads));
      bool const usable = deviation > 0.0 && reads > 0.0 && std::isfinite(norm) && norm > 0.0f;
      t.norm[i] = usable ? norm : 1.0f;
    }
    return t;
  }

 private:
  std::size_t size() const noexcept {
    return static_cast<std::size_t>(heads_) * static_cast<std::size_t>(head_dim_);
  }

  void add(detail::moments& to, source_view rows, std::int64_t skip, int share, bool about_first) {
    float row[max_head_dim];
    for (std::int64_t t = skip; t < rows.map.tokens; ++t) {
      for (int h = 0; h < rows.map.heads; ++h) {
        detail::load_finite(rows, h, t, row);
        auto const base = static_cast<std::size_t>(h / share) * static_cast<std::size_t>(head_dim_);
        for (int d = 0; d < head_dim_; ++d) {
          to.add(base + static_cast<std::size_t>(d), row[d], about_first);
        }
      }
    }
  }

  int heads_;
  int head_dim_;
  detail::moments keys_;
  detail::moments queries_;
};

#if defined(__cpp_exceptions)

/// `calibrator` on one text: keys from token 32 on, and all queries. Throws `error` when they do
/// not fit.
inline transform calibrate(source_view keys, source_view queries, rotation rotate = {1, 1}) {
  calibrator c(keys.map.heads, keys.map.head_dim);
  throw_if({c.add_keys(keys), "the keys do not fit the calibration"});
  throw_if({c.add_queries(queries),
            "queries of {} heads do not fit keys of {} heads, or head_dim differs",
            queries.map.heads, keys.map.heads});
  return c.finish(rotate);
}

#endif

/// InnerQ's norm of keys over the first `tokens` tokens of a prefill (sinks included): sqrt of the
/// largest magnitude of each channel, float32, 1 for an all-zero channel. Source: InnerQ.
inline transform innerq_norm(source_view keys, std::int64_t tokens) {
  transform t{keys.map.heads, keys.map.head_dim, {}, {}, {}};
  t.norm.assign(static_cast<std::size_t>(t.heads) * static_cast<std::size_t>(t.head_dim), 0.0f);
  float row[max_head_dim];
  for (int h = 0; h < t.heads; ++h) {
    float* const norm = t.norm.data() + std::ptrdiff_t{h} * t.head_dim;
    for (std::int64_t i = 0; i < tokens; ++i) {
      detail::load_finite(keys, h, i, row);
      for (int d = 0; d < t.head_dim; ++d) {
        float const magnitude = std::fabs(row[d]);
        norm[d] = magnitude > norm[d] ? magnitude : norm[d];
      }
    }
    for (int d = 0; d < t.head_dim; ++d) norm[d] = norm[d] > 0.0f ? std::sqrt(norm[d]) : 1.0f;
  }
  return t;
}

}  // namespace kvarts
