// SPDX-License-Identifier: Apache-2.0
// `kvarts gemv`: the two products of attention on the codes of a .kvt file.
#include "coded_file.hpp"
#include "commands.hpp"
#include "npy.hpp"
#include "progress.hpp"
#include "tensor_input.hpp"
#include "tool_error.hpp"

#include <kvarts/transform.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace kvarts::tool {

namespace {

/// A row of float32 for each query head.
struct head_rows {
  int heads = 0;
  std::int64_t width = 0;
  std::vector<float> numbers;

  head_rows(int of_heads, std::int64_t of_width)
      : heads(of_heads),
        width(of_width),
        numbers(static_cast<std::size_t>(of_heads) * static_cast<std::size_t>(of_width)) {}
  float* row(int head) { return numbers.data() + head * width; }
  float const* row(int head) const { return numbers.data() + head * width; }
};

/// Reads `[query_heads, width]`, or `[width]` of one query head.
head_rows read_rows(std::string const& path, std::int64_t width, std::string_view what,
                    int kv_heads) {
  auto const [file, values] = open_npy(path);
  auto const& shape = values.shape;
  if (shape.empty() || shape.size() > 2 || shape.back() != width) {
    throw tool_error(
        fmt::format("{}: shape {} is neither [query_heads, {}] nor [{}], {} of the file", path,
                    to_string(shape), width, width, what));
  }
  std::int64_t const heads = shape.size() == 2 ? shape.front() : 1;
  constexpr std::int64_t most = 1 << 20;
  if (heads < 1 || heads > most || heads % kv_heads != 0) {
    throw tool_error(fmt::format("{}: {} query heads are no multiple of the {} KV heads", path,
                                 heads, kv_heads));
  }
  head_rows rows(static_cast<int>(heads), width);
  rows.numbers = finite_floats(values, path);
  return rows;
}

void throw_unless_ok(status s, std::string const& name) {
  if (s != status::ok) {
    throw tool_error(fmt::format("{}: cannot multiply: {}", name, to_string(s)));
  }
}

/// Calls `f(range)` for all tokens, step by step.
template <class F>
void for_each_step(coded_file const& from, F&& f) {
  std::int64_t const step = tokens_a_step(from.coded.map);
  progress bar("multiplying", from.header.tokens);
  for (std::int64_t begin = 0; begin < from.header.tokens; begin += step) {
    token_range const range{begin, std::min(begin + step, from.header.tokens)};
    f(range);
    bar.advance(range.size());
  }
}

/// Scores of plain queries: folded here, so that centers and norms are taken into account.
head_rows scores_of(coded_file const& keys, head_rows queries, std::string const& name) {
  int const shared = queries.heads / keys.header.heads;
  std::vector<double> bias;
  for (int i = 0; i < queries.heads; ++i) {
    bias.push_back(fold_query(keys.transform.view(), i / shared, keys.header.head_dim,
                              queries.row(i), queries.row(i)));
  }
  head_rows scores(queries.heads, keys.header.tokens);
  for_each_step(keys, [&](token_range range) {
    head_rows some(queries.heads, range.size());
    throw_unless_ok(keys.codec->gemv_qk(keys.coded, range, queries.heads, queries.numbers.data(),
                                        bias.data(), some.numbers.data()),
                    name);
    for (int i = 0; i < queries.heads; ++i) {
      std::copy_n(some.row(i), range.size(), scores.row(i) + range.begin);
    }
  });
  return scores;
}

/// Coded space to model space: sum p v = norm * R^-1(sum p y) + center * sum p.
void to_model(transform const& t, int head, double weight, std::vector<double> const& coded,
              float* output) {
  std::copy(coded.begin(), coded.end(), output);
  unrotate(t.rotate, t.head_dim, output);
  auto const base = static_cast<std::size_t>(head) * static_cast<std::size_t>(t.head_dim);
  for (std::size_t d = 0; d < coded.size(); ++d) {
    double const norm = t.norm.empty() ? 1.0 : t.norm[base + d];
    double const center = t.center.empty() ? 0.0 : t.center[base + d];
    output[d] = static_cast<float>(norm * output[d] + center * weight);
  }
}

/// Weighted sums of values, in model space. Sums of steps are added in float64.
head_rows outputs_of(coded_file const& values, head_rows const& weights, std::string const& name) {
  int const head_dim = values.header.head_dim;
  auto const width = static_cast<std::size_t>(head_dim);
  std::vector<std::vector<double>> sums(static_cast<std::size_t>(weights.heads),
                                        std::vector<double>(width));
  for_each_step(values, [&](token_range range) {
    head_rows some(weights.heads, range.size());
    for (int i = 0; i < weights.heads; ++i) {
      std::copy_n(weights.row(i) + range.begin, range.size(), some.row(i));
    }
    head_rows output(weights.heads, head_dim);
    throw_unless_ok(values.codec->gemv_pv(values.coded, range, weights.heads, some.numbers.data(),
                                          output.numbers.data()),
                    name);
    for (int i = 0; i < weights.heads; ++i) {
      auto& sum = sums[static_cast<std::size_t>(i)];
      for (std::size_t d = 0; d < width; ++d) sum[d] += output.row(i)[d];
    }
  });
  head_rows outputs(weights.heads, head_dim);
  for (int i = 0; i < weights.heads; ++i) {
    double weight = 0.0;
    for (std::int64_t t = 0; t < weights.width; ++t) weight += weights.row(i)[t];
    to_model(values.transform, i / (weights.heads / values.header.heads), weight,
             sums[static_cast<std::size_t>(i)], outputs.row(i));
  }
  return outputs;
}

struct gemv_options {
  std::string product, in, vector, out;
};

void run(gemv_options const& o) {
  check_outputs({o.out}, {o.in, o.vector});
  coded_file const from = open_coded_file(o.in);
  kvt_header const& h = from.header;
  head_rows const result =
      o.product == "qk"
          ? scores_of(from, read_rows(o.vector, h.head_dim, "the head_dim", h.heads), o.in)
          : outputs_of(from, read_rows(o.vector, h.tokens, "the tokens", h.heads), o.in);
  write_npy(
      o.out,
      {file_dtype::f32, {result.heads, result.width}, std::as_bytes(std::span(result.numbers))});
}

}  // namespace

void add_gemv(CLI::App& program) {
  auto const o = std::make_shared<gemv_options>();
  CLI::App* const command =
      program.add_subcommand("gemv", "Multiply queries or weights with a .kvt file, on the codes");
  command->add_option("PRODUCT", o->product, "qk or pv")
      ->required()
      ->check(CLI::IsMember({"qk", "pv"}));
  command->add_option("IN", o->in, "A .kvt file")->type_name("FILE")->required();
  command
      ->add_option("VECTOR", o->vector,
                   "A .npy file of f16, f32 or f64; qk: queries [query_heads, head_dim] or "
                   "[head_dim]; pv: weights [query_heads, tokens] or [tokens]")
      ->type_name("FILE")
      ->required();
  command
      ->add_option("OUT", o->out,
                   "The .npy file to write, f32; qk: scores [query_heads, tokens]; pv: outputs "
                   "[query_heads, head_dim]")
      ->type_name("FILE")
      ->required();
  command->footer(
      "Queries are as the model makes them, outputs as it uses them: transforms of the file are "
      "taken into account. Scores are not divided by sqrt(head_dim). Query head i reads KV head "
      "i / (query_heads / kv_heads).");
  command->callback([o] { run(*o); });
}

}  // namespace kvarts::tool
