// SPDX-License-Identifier: Apache-2.0
/// @file
/// Tensors that the `kvarts` program has encoded, of several codecs and awkward shapes, and what a
/// second reader makes of the bytes.
#pragma once

#include "support/catch.hpp"
#include "support/coded_reader.hpp"
#include "support/program.hpp"
#include "support/random.hpp"
#include "support/rows.hpp"
#include "transform_file.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <string>
#include <vector>

namespace kvarts::test {

using arguments = std::vector<std::string>;

enum class wanted { nothing, rotation, everything };

struct example {
  std::string codec;
  int bits;
  std::string along;  ///< "row", "channel" or "token"
  int group, heads, head_dim;
  std::int64_t tokens;
  int align;
  dtype type;
  wanted transform;
};

inline std::vector<example> const examples = {
    {"symmetric3_searched", 3, "channel", 32, 2, 80, 37, 128, dtype::f16, wanted::nothing},
    {"symmetric2_narrow", 2, "token", 32, 3, 24, 45, 128, dtype::f16, wanted::nothing},
    {"affine2", 2, "token", 5, 2, 40, 71, 64, dtype::f32, wanted::everything},
    {"affine4", 4, "channel", 7, 1, 33, 9, 1, dtype::bf16, wanted::everything},
    {"hybrid2_wide", 2, "token", 48, 2, 64, 100, 16, dtype::f16, wanted::rotation},
    {"hybrid3_narrow", 3, "channel", 16, 5, 96, 11, 256, dtype::bf16, wanted::nothing},
    {"midrise3", 3, "row", 0, 3, 96, 50, 128, dtype::f16, wanted::everything},
    {"midrise2", 2, "row", 0, 2, 128, 33, 4, dtype::bf16, wanted::rotation},
    {"int8_head", 8, "row", 0, 8, 128, 6, 128, dtype::bf16, wanted::nothing},
    {"int8_head", 8, "row", 0, 2, 64, 10, 1, dtype::f16, wanted::everything},
    {"symmetric4_wide", 4, "token", 1, 1, 1, 3, 8, dtype::f16, wanted::nothing},
    {"f16", 16, "row", 0, 2, 48, 5, 128, dtype::f16, wanted::rotation},
    {"bf16", 16, "row", 0, 1, 20, 4, 2, dtype::bf16, wanted::nothing},
};

/// R^-1 of one round with seed 1, as a dense product in float64.
inline std::vector<double> unrotated(std::vector<double> const& y) {
  auto const head_dim = y.size();
  std::size_t const block = head_dim & (~head_dim + 1);
  double const scale = std::exp2(-std::ceil(std::log2(static_cast<double>(block)) / 2));
  std::vector<double> x(head_dim);
  for (std::size_t d = 0; d < head_dim; ++d) {
    std::size_t const begin = d / block * block;
    for (std::size_t i = 0; i < block; ++i) {
      x[d] += (std::popcount(i & (d - begin)) % 2 == 0 ? 1 : -1) * y[begin + i];
    }
    // random_source is a counter through splitmix64's finalizer, as the signs are.
    random_source counter(1 + (d / 64) * 0x9E3779B97F4A7C15u);
    x[d] *= ((counter.bits() >> (d % 64)) & 1u) != 0 ? -scale : scale;
  }
  return x;
}

/// An encoded example: its files, and what a second reader makes of them.
class encoded {
 public:
  explicit encoded(example const& e) : e_(e), source_(rows_for(e)) {
    if (e.transform == wanted::everything) make_transform();
    bool const plain = e.bits == 16;
    encode(source_, folder / "a.kvt", plain ? arguments{} : arguments{"--parts", folder / "p"},
           e.heads);
    encode(source_, folder / "a.raw", {"--raw"}, e.heads);
    read();
  }

  /// Runs `kvarts encode` on `r` as an array with these heads; 0 means no axis for heads.
  void encode(rows const& r, std::string const& out, arguments const& more, int heads) const {
    std::vector<std::int64_t> shape = {r.tokens, heads, r.head_dim};
    if (heads == 0) shape.erase(shape.begin() + 1);
    auto const memory = contiguous_memory(r, e_.type);
    write_array(folder / "in.npy", npy_type(), shape, memory.bytes);
    arguments all = {"encode",  folder / "in.npy",        out,       "--codec",         e_.codec,
                     "--align", std::to_string(e_.align), "--dtype", to_string(e_.type)};
    auto const add = [&](arguments const& some) {
      all.insert(all.end(), some.begin(), some.end());
    };
    if (e_.along != "row") add({"--along", e_.along, "--group", std::to_string(e_.group)});
    if (e_.transform == wanted::rotation) add({"--rotate"});
    if (e_.transform == wanted::everything) {
      add({"--transform", (folder / "t.safetensors") + "::3"});
    }
    add(more);
    std::string const line = run_well(all);
    CHECK(std::count(line.begin(), line.end(), '\n') == 1);
  }

  /// Channels of one row in model space.
  std::vector<double> const& row(std::int64_t token, int head) const {
    return model_[static_cast<std::size_t>(token * e_.heads + head)];
  }
  /// The same, as they are coded.
  std::vector<double> const& coded_row(std::int64_t token, int head) const {
    return coded_[static_cast<std::size_t>(token * e_.heads + head)];
  }
  double norm(int head, int d) const { return t_.norm.empty() ? 1 : t_.norm[at(head, d)]; }
  double center(int head, int d) const { return t_.center.empty() ? 0 : t_.center[at(head, d)]; }
  rows const& source() const { return source_; }

  scratch_folder folder;

 private:
  static rows rows_for(example const& e) {
    random_source random(test_seed() + static_cast<std::uint64_t>(e.head_dim));
    rows r = normal_rows(random, e.heads, e.head_dim, e.tokens);
    for (std::size_t i = 0; i < r.values.size(); i += 17) r.values[i] *= 20;
    return r;
  }
  tool::file_dtype npy_type() const {
    if (e_.type == dtype::f32) return tool::file_dtype::f32;
    return e_.type == dtype::f16 ? tool::file_dtype::f16 : tool::file_dtype::u16;
  }
  std::size_t at(int head, int d) const { return static_cast<std::size_t>(head * e_.head_dim + d); }

  void make_transform() {
    random_source random(test_seed());
    t_ = {e_.heads, e_.head_dim, {}, {}, {}};
    for (int i = 0; i < e_.heads * e_.head_dim; ++i) {
      t_.center.push_back(static_cast<float>(3 * random.normal()));
      t_.norm.push_back(static_cast<float>(std::exp(random.normal())));
    }
    tool::transform_file file;
    file.layers[3] = t_;
    tool::write_transform_file(folder / "t.safetensors", file);
  }

  void read() {
    std::string const raw = file_text(folder / "a.raw");
    CHECK(file_text(folder / "a.kvt").ends_with(raw));
    bool const token = e_.along == "token";
    coded_format format{e_.codec, e_.bits};
    format.along = token                   ? parameter_axis::token
                   : e_.along == "channel" ? parameter_axis::channel
                                           : parameter_axis::row;
    format.arranged = token ? arrangement::head_tiles : arrangement::row_records;
    format.heads = e_.heads;
    format.head_dim = e_.head_dim;
    format.group = e_.group;
    format.tile_tokens = token ? (32 + e_.group - 1) / e_.group * e_.group : 1;
    format.alignment = e_.align;
    format.tokens = e_.tokens;
    coded_reader const reader(format, reinterpret_cast<std::byte const*>(raw.data()));
    for (std::int64_t t = 0; t < e_.tokens; ++t) {
      for (int h = 0; h < e_.heads; ++h) {
        std::vector<double> y;
        for (int d = 0; d < e_.head_dim; ++d) y.push_back(reader.value(h, t, d));
        coded_.push_back(y);
        if (e_.transform != wanted::nothing) y = unrotated(y);
        for (int d = 0; d < e_.head_dim; ++d) {
          auto& x = y[static_cast<std::size_t>(d)];
          x = x * norm(h, d) + center(h, d);
        }
        model_.push_back(std::move(y));
      }
    }
  }

  example e_;
  rows source_;
  kvarts::transform t_;
  std::vector<std::vector<double>> coded_, model_;
};

/// The Euclidean norm.
inline double length(std::vector<double> const& x) {
  double sum = 0;
  for (double const v : x) sum += v * v;
  return std::sqrt(sum);
}

}  // namespace kvarts::test
