// SPDX-License-Identifier: Apache-2.0
/// @file
/// How often InnerQ's 2-bit hybrid values choose the affine reconstruction, and what the choice is
/// worth: `hybrid_sparsity DUMP...` prints, for each layer, the share of groups of 32 tokens with
/// the affine flag (the sign bit of the scale) and the squared error of the values relative to
/// them, against symmetric groups of the same bits.
#include "codec_ops.hpp"
#include "dump.hpp"
#include "eval_attention.hpp"
#include "eval_coding.hpp"
#include "float_rows.hpp"
#include "table.hpp"
#include "tool_error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstddef>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tool;

constexpr int group = 32;

codec_ops const& values_codec(std::string_view name) { return *find_codec(name, axis::token); }

/// Share of the groups of all heads that are affine.
double affine_share(codec_ops const& codec, source_view values) {
  int const heads = values.map.heads;
  int const head_dim = values.map.head_dim;
  std::int64_t const tokens = values.map.tokens;
  layout const map = tiles_of(codec, group, heads, head_dim, tokens);
  std::vector<std::byte> memory(static_cast<std::size_t>(map.size_bytes()));
  codec.encode({memory.data(), map}, values, {0, tokens}, {});
  std::int64_t groups = 0;
  std::int64_t affine = 0;
  for (int h = 0; h < heads; ++h) {
    for (std::int64_t t = 0; t < tokens; t += group) {
      for (int d = 0; d < head_dim; ++d, ++groups) {
        affine += (codec.load_parameters({memory.data(), map}, h, t, d).scale >> 15) & 1;
      }
    }
  }
  return static_cast<double>(affine) / static_cast<double>(groups);
}

/// sum |v^ - v|^2 / sum |v|^2, mean over KV heads.
double error_of(codec_ops const& codec, source_view values) {
  float_rows const exact(values);
  float_rows const coded(recode(codec, group, values, {}), values.map.heads);
  double sum = 0;
  for (std::size_t h = 0; h < static_cast<std::size_t>(values.map.heads); ++h) {
    sum += compare(coded.head(h), exact.head(h)).relative();
  }
  return sum / values.map.heads;
}

void add(table& t, std::string const& path) {
  auto const [file, contents] = open_safetensors(path);
  dump const of = read_dump(contents, path);
  for (dump_layer const& layer : of.layers) {
    std::vector<std::string> row{std::filesystem::path(path).stem().string(),
                                 std::to_string(layer.layer)};
    for (char const* range : {"narrow", "wide"}) {
      auto const& hybrid = values_codec(std::string("hybrid2_") + range);
      auto const& symmetric = values_codec(std::string("symmetric2_") + range);
      row.push_back(fmt::format("{:.1f}%", 100 * affine_share(hybrid, *layer.v)));
      row.push_back(fmt::format("{:.4f}", error_of(hybrid, *layer.v)));
      row.push_back(fmt::format("{:.4f}", error_of(symmetric, *layer.v)));
    }
    t.add(row);
  }
}

}  // namespace

int main(int argc, char** argv) try {
  std::vector<std::string> dumps;
  CLI::App program("Share of affine groups in hybrid 2-bit values, and what the choice is worth.");
  program.add_option("DUMP", dumps, "Dumps with values")->required();
  CLI11_PARSE(program, argc, argv);
  table t({{"dump", false},
           {"layer"},
           {"narrow: affine"},
           {"V error"},
           {"symmetric"},
           {"wide: affine"},
           {"V error"},
           {"symmetric"}});
  for (std::string const& path : dumps) add(t, path);
  fmt::print("{}", t.text());
  return 0;
} catch (std::exception const& e) {
  fmt::print(stderr, "hybrid_sparsity: {}\n", e.what());
  return 1;
}
