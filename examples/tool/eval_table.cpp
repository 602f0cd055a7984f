// SPDX-License-Identifier: Apache-2.0
#include "eval_table.hpp"

#include "eval_choice.hpp"
#include "report_parts.hpp"
#include "table.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string_view>

namespace kvarts::tool {

namespace {

std::string_view windows_of(eval_result const& r) {
  auto const is = [](std::string_view windows) {
    return [windows](preset_result const& p) { return p.windows == windows; };
  };
  if (std::none_of(r.presets.begin(), r.presets.end(), is("on"))) return "off";
  return std::none_of(r.presets.begin(), r.presets.end(), is("off")) ? "on" : "off and on";
}

std::string introduction(eval_result const& r) {
  std::string text = r.dump;
  if (!r.model.empty()) text += ": " + r.model;
  if (!r.text.empty()) text += ", " + r.text;
  text += fmt::format(
      "\n{} tokens, the last {} as queries; {} query heads, {} KV heads, head_dim {}; windows {}\n"
      "Key transforms of the calibrated presets: {}\n",
      r.tokens, r.queries, r.q_heads, r.kv_heads, r.head_dim, windows_of(r),
      r.calibration.empty() ? "estimated from the tokens before the queries"
                            : "from " + r.calibration);
  for (std::string const& warning : r.warnings) text += "Warning: " + warning + '\n';
  return text;
}

constexpr char const* legend =
    "K, V: sum |x^ - x|^2 / sum |x|^2; logits: RMS error of q.k / sqrt(head_dim); KL of the\n"
    "attention weights in nats; output: |o^ - o| / |o|\n";

table empty_table() {
  return table({{"preset", false},
                {"K bits"},
                {"V bits"},
                {"mean"},
                {"K error"},
                {"V error"},
                {"logits"},
                {"KL"},
                {"output"}});
}

void add(table& t, eval_result const& of, preset_result const& p, measures const& m) {
  auto const bits = [](double b) { return fmt::format("{:.3f}", b); };
  auto const error = [](double e) { return fmt::format("{:.4g}", e); };
  t.add({display_name(p, of), bits(p.bits.k), bits(p.bits.v), bits(p.bits.mean),
         error(m.k_rel_sq_err), error(m.v_rel_sq_err), error(m.logit_rms_err),
         error(m.attention_kl), error(m.output_rel_err)});
}

}  // namespace

std::string eval_tables(eval_result const& result) {
  std::string text = introduction(result) + legend;
  std::size_t const layers = result.presets.empty() ? 0 : result.presets.front().layers.size();
  for (std::size_t i = 0; i < layers; ++i) {
    table t = empty_table();
    for (preset_result const& p : result.presets) add(t, result, p, p.layers[i].values);
    text += fmt::format("\nLayer {}\n{}", result.presets.front().layers[i].layer, t.text());
  }
  if (layers >= 2) {
    table means = empty_table();
    for (preset_result const& p : result.presets) add(means, result, p, p.mean);
    text += fmt::format("\nMean of {} layers\n{}", layers, means.text());
  }
  text += "\nWhich codec?\n";
  for (std::string const& s : sentences_of(choose(result), result)) text += s + '\n';
  return text;
}

}  // namespace kvarts::tool
