// SPDX-License-Identifier: Apache-2.0
// `kvarts tier plan`: bytes a token and page, and tokens in a budget.
#include "table.hpp"
#include "tier/byte_size.hpp"
#include "tier/plan.hpp"
#include "tier/tier_commands.hpp"
#include "tool_error.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

namespace kvarts::tool {

namespace {

using json = nlohmann::ordered_json;

struct plan_options {
  std::string model_name;
  std::optional<int> layers, kv_heads, head_dim;  ///< where no name is given
  std::int64_t budget = 8'000'000'000;
  std::string codec;
  std::string record = "row";
  std::string layout = "layer_first";
  std::optional<int> page_tokens;
  tier_form form;
  bool as_json = false;
};

model_shape model_of(plan_options const& o) {
  if (!o.model_name.empty()) return find_model(o.model_name);
  if (o.layers && o.kv_heads && o.head_dim) return {"", *o.layers, *o.kv_heads, *o.head_dim};
  throw tool_error("give --model, or --layers, --kv-heads and --head-dim", 2);
}

tier_form form_of(plan_options const& o) {
  tier_form form = o.form;
  form.record = o.record == "page" ? tier::record_kind::page : tier::record_kind::row;
  form.page_tokens = o.page_tokens.value_or(o.record == "page" ? 64 : 1);
  for (tier::host_layout const l : tier::host_layouts) {
    if (o.layout == to_string(l)) form.placement = l;
  }
  return form;
}

std::vector<plan_line> lines_of(plan_options const& o, model_shape const& model,
                                tier_form const& form) {
  if (!o.codec.empty()) return {plan_for(model, find_pair(o.codec), form, o.budget)};
  std::vector<plan_line> lines;
  for (codec_pair const& pair : preset_pairs()) {
    lines.push_back(plan_for(model, pair, form, o.budget));
  }
  return lines;
}

/// Adds what a line says to an object that has its name.
void add_sizes(json& to, plan_line const& line, model_shape const& model) {
  to["bytes_per_token"] = line.bytes_per_token;
  to["bytes_per_page"] = line.bytes_per_page;
  to["tokens_floor"] = line.strict.tokens;
  to["tokens_sglang"] = line.sglang.tokens;
  to["bytes_floor"] = line.strict.bytes;
  to["bytes_sglang"] = line.sglang.bytes;
  to["share_of_16_bits"] = line.share;
  if (model.window_layers == 0) return;
  to["bytes_per_token_full_layers"] = line.full_layer_bytes;
  to["bytes_per_sequence_window_layers"] = line.window_bytes;
}

json facts_of(plan_options const& o, model_shape const& model, tier_form const& form) {
  json facts;
  if (!model.name.empty()) facts["model"] = model.name;
  facts["layers"] = model.layers;
  if (model.is_latent()) {
    facts["latent_dim"] = model.head_dim;
    facts["rope_dim"] = model.rope_dim;
  } else {
    facts["kv_heads"] = model.kv_heads;
    facts["local_heads"] = tier::local_heads(model.kv_heads, form.ranks);
    facts["head_dim"] = model.head_dim;
  }
  if (model.window_layers > 0) {
    facts["window_layers"] = model.window_layers;
    facts["window_tokens"] = model.window;
  }
  facts.update({{"tp", form.ranks},
                {"record", o.record},
                {"page_tokens", form.page_tokens},
                {"alignment", form.alignment},
                {"layout", o.layout},
                {"budget", o.budget}});
  return facts;
}

json plan_json(plan_options const& o, model_shape const& model, tier_form const& form,
               std::vector<plan_line> const& lines) {
  json all = facts_of(o, model, form);
  if (!o.codec.empty()) {
    all["codec"] = o.codec;
    add_sizes(all, lines.front(), model);
    return all;
  }
  all["presets"] = json::array();
  for (plan_line const& line : lines) {
    json one = {{"codec", line.codec}};
    if (line.refusal.empty()) {
      add_sizes(one, line, model);
    } else {
      one["refused"] = line.refusal;
    }
    all["presets"].push_back(std::move(one));
  }
  return all;
}

std::string heading(plan_options const& o, model_shape const& model, tier_form const& form) {
  std::string text = model.name.empty() ? "" : model.name + ": ";
  text += fmt::format("{} layers", model.layers);
  if (model.is_latent()) {
    text += fmt::format(", each a latent of {} and {} RoPE channels in 16 bits (MLA)",
                        model.head_dim, model.rope_dim);
  } else {
    text += fmt::format(" of {} KV heads of {}", model.kv_heads, model.head_dim);
  }
  if (form.ranks > 1) {
    text += model.is_latent() ? fmt::format("; all of it on each of {} ranks", form.ranks)
                              : fmt::format("; one of {} ranks, {} KV heads each", form.ranks,
                                            tier::local_heads(model.kv_heads, form.ranks));
  }
  text +=
      fmt::format("\n{} records at {} bytes, {}, pages of {}; budget {} bytes\n",
                  o.record == "page" ? "Page" : "Row", form.alignment, o.layout,
                  form.page_tokens == 1 ? "1 token" : fmt::format("{} tokens", form.page_tokens),
                  with_commas(o.budget));
  if (model.window_layers > 0) {
    text += fmt::format(
        "{} layers attend to the last {} tokens only. Bytes and tokens count them like the {} "
        "others;\n\"full\" counts a token of the others alone, \"windows\" a sequence's windows.\n",
        model.window_layers, with_commas(model.window), model.layers - model.window_layers);
  }
  return text;
}

std::string plan_table(std::vector<plan_line> const& lines, model_shape const& model) {
  std::vector<column> columns = {{"codec", false}, {"bytes/token"}, {"bytes/page"},
                                 {"of 16 bits"},   {"tokens"},      {"SGLang's"}};
  if (model.window_layers > 0) columns.insert(columns.end(), {{"full"}, {"windows"}});
  table t(columns);
  for (plan_line const& line : lines) {
    if (!line.refusal.empty()) continue;
    std::vector<std::string> row = {line.codec,
                                    with_commas(line.bytes_per_token),
                                    with_commas(line.bytes_per_page),
                                    fmt::format("{:.4f}", line.share),
                                    with_commas(line.strict.tokens),
                                    with_commas(line.sglang.tokens)};
    if (model.window_layers > 0) {
      row.push_back(with_commas(line.full_layer_bytes));
      row.push_back(with_commas(line.window_bytes));
    }
    t.add(std::move(row));
  }
  return t.text();
}

/// Which presets are refused, and why: a line for each reason.
std::string refusals(std::vector<plan_line> const& lines) {
  std::map<std::string, std::vector<std::string>> by_reason;
  for (plan_line const& line : lines) {
    if (!line.refusal.empty()) by_reason[line.refusal].push_back(line.codec);
  }
  std::string text;
  for (auto const& [reason, codecs] : by_reason) {
    text += fmt::format("\nLeft out: {}\n({})\n", fmt::join(codecs, ", "), reason);
  }
  return text;
}

void run(plan_options const& o) {
  model_shape const model = model_of(o);
  tier_form const form = form_of(o);
  auto const lines = lines_of(o, model, form);
  bool const any = std::any_of(lines.begin(), lines.end(),
                               [](plan_line const& line) { return line.refusal.empty(); });
  if (!any) throw tool_error(lines.front().refusal, 2);
  if (o.as_json) {
    fmt::print("{}\n", plan_json(o, model, form, lines).dump(2));
  } else {
    fmt::print("{}\n{}{}", heading(o, model, form), plan_table(lines, model), refusals(lines));
  }
}

void add_model_options(CLI::App& command, plan_options& o) {
  auto* const model =
      command.add_option("--model", o.model_name, "A model known by name: " + model_names())
          ->type_name("NAME");
  for (auto const& [name, number, text] :
       {std::tuple{"--layers", &o.layers, "Layers that keep K and V"},
        std::tuple{"--kv-heads", &o.kv_heads, "KV heads of the model"},
        std::tuple{"--head-dim", &o.head_dim, "Channels of a head"}}) {
    command.add_option(name, *number, text)->type_name("N")->excludes(model);
  }
}

}  // namespace

void add_tier_plan(CLI::App& tier) {
  auto const o = std::make_shared<plan_options>();
  CLI::App* const command =
      tier.add_subcommand("plan", "Bytes a token and page, and how many tokens a budget holds");
  add_model_options(*command, *o);
  takes_bytes(*command->add_option("--budget", o->budget, "Memory of the tier, of one rank")
                   ->default_str("8GB"));
  command->add_option("--codec", o->codec, "A preset; without it a table of all")
      ->type_name("NAME");
  command->add_option("--record", o->record, "Records of a token or of a page")
      ->check(CLI::IsMember({"row", "page"}))
      ->capture_default_str();
  command->add_option("--page", o->page_tokens, "Tokens of a page")
      ->type_name("P")
      ->default_str("1, with page records 64");
  command->add_option("--align", o->form.alignment, "Records begin at multiples of so many bytes")
      ->type_name("A")
      ->capture_default_str();
  command->add_option("--tp", o->form.ranks, "Ranks that share the KV heads (tensor parallelism)")
      ->type_name("N")
      ->capture_default_str();
  std::vector<std::string> layouts;
  for (tier::host_layout const l : tier::host_layouts) layouts.emplace_back(to_string(l));
  command->add_option("--layout", o->layout, "Order of records in memory")
      ->check(CLI::IsMember(layouts))
      ->capture_default_str();
  command->add_flag("--json", o->as_json, "Print JSON instead of a table");
  command->callback([o] { run(*o); });
}

}  // namespace kvarts::tool
