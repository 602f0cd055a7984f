// SPDX-License-Identifier: Apache-2.0
/// @file
/// What tells the pages of one tier from those of another in a store that both use: a digest of all
/// that gives a page's bytes their meaning.
#pragma once

#include <kvarts/kvt.hpp>
#include <kvarts/sha256.hpp>
#include <kvarts/tier/geometry.hpp>
#include <kvarts/transform.hpp>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace kvarts::tier {

/// Version of the fields and the payload of page files.
inline constexpr std::uint16_t page_version = 1;

/// All that gives the bytes of a tier's pages their meaning; does not own what it points to.
struct page_config {
  geometry shape{};
  dtype source = dtype::bf16;  ///< of the rows before encoding
  /// Transforms of each layer's first segment; none at all, or one a layer.
  std::span<transform_view const> keys{};
  std::span<transform_view const> values{};
  std::string_view model{};  ///< the caller's name of weights and revision

  constexpr std::span<transform_view const> transforms(side s) const noexcept {
    return s == side::keys ? keys : values;
  }
};

/// First fault of a configuration: its geometry, how many transforms there are, their numbers.
inline problem check(page_config const& c) noexcept {
  if (auto const p = check(c.shape)) return p;
  for (side const s : {side::keys, side::values}) {
    auto const all = c.transforms(s);
    if (!all.empty() && std::ssize(all) != c.shape.layers) {
      return {status::bad_transform, "there are {} transforms for {} layers", std::ssize(all),
              c.shape.layers};
    }
    for (int layer = 0; layer < std::ssize(all); ++layer) {
      row_segments const& rows = c.shape.rows(s, layer);
      if (rows.count == 0) continue;
      auto const p = check(all[static_cast<std::size_t>(layer)], c.shape.heads, rows[0].head_dim);
      if (p) return p;
    }
  }
  return {};
}

namespace detail {

/// Numbers and texts in an order of their own, so that no two configurations give one message.
class digest_of {
 public:
  template <class... Numbers>
  void numbers(Numbers... all) noexcept {
    (hash_.update(static_cast<std::uint64_t>(all)), ...);
  }

  void text(std::string_view t) noexcept {
    numbers(t.size());
    hash_.update(std::as_bytes(std::span(t)));
  }

  /// Exact bits of rows that lie `stride` elements apart; null is told from zeros.
  void floats(float const* x, std::int64_t stride, int rows, int columns) noexcept {
    numbers(x != nullptr);
    for (int i = 0; x != nullptr && i < rows; ++i) {
      hash_.update(std::as_bytes(std::span(x + i * stride, static_cast<std::size_t>(columns))));
    }
  }

  void rows(row_segments const& r) noexcept {
    numbers(r.count);
    for (int i = 0; i < r.count; ++i) {
      codec_info const& c = r[i].codec;
      text(std::string_view(c.name));
      numbers(c.bits, c.grouped_along, group_of(r[i]), c.scale_bytes, c.scale_type, c.zero_bytes,
              c.plain, r[i].head_dim);
    }
  }

  void transform(transform_view const& t, int heads, int head_dim) noexcept {
    floats(t.center, t.head_stride, heads, head_dim);
    floats(t.norm, t.head_stride, heads, head_dim);
    rotation const& r = t.rotate;
    floats(r.dense, head_dim, head_dim, head_dim);
    if (r.dense == nullptr) numbers(r.rounds, r.rounds > 0 ? r.seed : 0);
  }

  sha256_digest finish() noexcept { return hash_.finish(); }

 private:
  sha256 hash_;
};

}  // namespace detail

/// Key of a tier's pages in a store: changes with codec, bits, group, scale type, heads, head_dim,
/// records, alignment, host layout, the numbers of a transform, the rows' type, the model's name
/// and the format's version. For a configuration that `check` accepts. Reads every transform: make
/// it once.
///
/// SHA-256 of numbers of eight bytes, texts (their length, then they) and fp32 bits: "kvarts page",
/// format and page version, model, source, layers, heads, page tokens, record kind, order of heads,
/// alignment, host layout; then for K, layer by layer, and for V: the number of segments, of each
/// its codec's name, bits, axis, group (0 of rows), bytes and type of a scale, bytes of a
/// zero-point, whether it is plain, head_dim; then center, norm and dense rotation, each 0 or 1 and
/// its numbers, and without a dense one rounds and seed (0 without rounds).
inline sha256_digest namespace_digest(page_config const& c) noexcept {
  geometry const& g = c.shape;
  detail::digest_of d;
  d.text("kvarts page");
  d.numbers(kvarts::detail::kvt_version, page_version);
  d.text(c.model);
  d.numbers(c.source, g.layers, g.heads, g.page_tokens, g.record, g.head_order, g.alignment,
            g.placement);
  for (side const s : {side::keys, side::values}) {
    auto const transforms = c.transforms(s);
    for (int layer = 0; layer < g.layers; ++layer) {
      row_segments const& rows = g.rows(s, layer);
      d.rows(rows);
      if (rows.count == 0) continue;
      transform_view const none{};
      auto const i = static_cast<std::size_t>(layer);
      d.transform(transforms.empty() ? none : transforms[i], g.heads, rows[0].head_dim);
    }
  }
  return d.finish();
}

}  // namespace kvarts::tier
