// SPDX-License-Identifier: Apache-2.0
/// @file
/// A batch of sequences in the memory that kernels read, and the numbers that it stands for, which
/// come from linear rows of each sequence alone: the reference shares no layout with the kernel.
#pragma once

#include "support/rows.hpp"

#include <kvarts/cuda/batch.hpp>
#include <kvarts/kvarts.hpp>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <numeric>
#include <vector>

namespace kvarts::test {

/// What a test of products asks for.
struct gemv_shape {
  int heads = 2;
  int query_heads = 2;
  int head_dim = 128;
  int tile_tokens = 32;
  int group = 32;
  int page_tokens = 0;
  std::vector<std::int64_t> lengths{77};
  std::vector<std::int64_t> begins{};  ///< of the spans; none: 0

  int sequences() const { return static_cast<int>(lengths.size()); }
  std::int64_t begin(int i) const {
    return begins.empty() ? 0 : begins[static_cast<std::size_t>(i)];
  }
  std::int64_t end(int i) const { return lengths[static_cast<std::size_t>(i)]; }
  std::int64_t longest() const { return *std::max_element(lengths.begin(), lengths.end()); }
};

/// The batch, coded. All bytes that no code or parameter owns are 0xFF: NaN as scales.
template <class Codec, class Packing>
class coded_batch {
 public:
  /// `make_rows(sequence)` gives the plain rows of a sequence.
  template <class F>
  coded_batch(gemv_shape const& s, F&& make_rows) : shape(s) {
    tile_options const o{.tile_tokens = s.tile_tokens, .group = s.group};
    std::int64_t const room = std::max<std::int64_t>(s.longest(), 1);
    if (s.page_tokens > 0) {
      table_stride_ = ceil_div(room, s.page_tokens);
      // One page more than needed; the pool is used from its end, every third page first.
      pages_ = table_stride_ * s.sequences() + 1;
      map_ = make_pages<Codec, Packing>(s.heads, s.head_dim, pages_, s.page_tokens, o);
      fill_tables();
    } else {
      map_ = make_head_tiles<Codec, Packing>(s.heads, s.head_dim, room, o);
      sequence_stride_ = round_up(map_.size_bytes(), 256);
    }
    std::int64_t const size =
        s.page_tokens > 0 ? map_.size_bytes() : sequence_stride_ * s.sequences();
    bytes_.resize(static_cast<std::size_t>(size / 16 + 1), {~0ull, ~0ull});
    for (int i = 0; i < s.sequences(); ++i) code(i, make_rows(i));
  }

  view<Codec, std::byte const, Packing> codes() const {
    return {reinterpret_cast<std::byte const*>(bytes_.data()), map_, {}};
  }

  cuda::batch batch() const {
    return {shape.sequences(),
            shape.longest(),
            shape.begins.empty() ? nullptr : shape.begins.data(),
            shape.lengths.data(),
            shape.page_tokens > 0 ? tables_.data() : nullptr,
            table_stride_,
            sequence_stride_};
  }

  /// The decoded number of a token of a sequence.
  double at(int sequence, std::int64_t token, int head, int channel) const {
    return decoded_[static_cast<std::size_t>(sequence)].at(token, head, channel);
  }

  gemv_shape shape;

 private:
  struct alignas(16) chunk {
    std::uint64_t low;
    std::uint64_t high;
  };

  void fill_tables() {
    tables_.resize(static_cast<std::size_t>(table_stride_ * shape.sequences()));
    std::int64_t page = 0;
    for (auto& entry : tables_) {
      entry = static_cast<std::int32_t>(pages_ - 1 - page);
      page += 3;
      if (page >= pages_) page = page % 3 + 1;
    }
    // A permutation, whatever the number of pages.
    std::vector<bool> used(static_cast<std::size_t>(pages_));
    for (auto& entry : tables_) {
      while (used[static_cast<std::size_t>(entry)]) {
        entry = static_cast<std::int32_t>((entry + 1) % pages_);
      }
      used[static_cast<std::size_t>(entry)] = true;
    }
  }

  void code(int sequence, rows const& x) {
    token_range const range{0, shape.end(sequence)};
    auto* const base = reinterpret_cast<std::byte*>(bytes_.data());
    view<Codec, std::byte, Packing> to{base + sequence * sequence_stride_, map_, {}};
    if (shape.page_tokens > 0) {
      to.data = base;
      to.table = {tables_.data() + sequence * table_stride_, table_stride_};
    }
    done_ = done_ && encode(to, x.source(), range).code == status::ok;

    tile_options const o{.tile_tokens = shape.tile_tokens, .group = shape.group};
    layout const m = make_head_tiles<Codec>(shape.heads, shape.head_dim,
                                            std::max<std::int64_t>(range.end, 1), o);
    std::vector<std::byte> linear_bytes(static_cast<std::size_t>(m.size_bytes()));
    view<Codec, std::byte> const linear_view{linear_bytes.data(), m, {}};
    done_ = done_ && encode(linear_view, x.source(), range).code == status::ok;
    rows decoded(shape.heads, shape.head_dim, range.end);
    for (int h = 0; h < shape.heads; ++h) {
      for (std::int64_t t = 0; t < range.end; ++t) {
        view<Codec, std::byte const> const readable = linear_view;
        decode_row(readable, h, t, &decoded.at(t, h, 0));
      }
    }
    decoded_.push_back(std::move(decoded));
  }

 public:
  /// Whether all rows could be encoded.
  bool ok() const { return done_; }

 private:
  layout map_{};
  std::int64_t pages_ = 0;
  std::int64_t table_stride_ = 0;
  std::int64_t sequence_stride_ = 0;
  std::vector<std::int32_t> tables_;
  std::vector<chunk> bytes_;
  std::vector<rows> decoded_;
  bool done_ = true;
};

/// Rows with what real keys have: an offset and a size for each channel, one outlier channel.
inline rows awkward_rows(random_source& random, int heads, int head_dim, std::int64_t tokens) {
  rows r = normal_rows(random, heads, head_dim, tokens);
  for (int h = 0; h < heads; ++h) {
    for (int d = 0; d < head_dim; ++d) {
      auto const offset = static_cast<float>(0.7 * random.normal());
      float const size = d == 5 ? 20.0f : 0.5f + static_cast<float>(random.uniform());
      for (std::int64_t t = 0; t < tokens; ++t) r.at(t, h, d) = r.at(t, h, d) * size + offset;
    }
  }
  return r;
}

}  // namespace kvarts::test
