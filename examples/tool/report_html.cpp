// SPDX-License-Identifier: Apache-2.0
#include "report_html.hpp"

#include "eval_choice.hpp"
#include "report_parts.hpp"
#include "report_style.hpp"
#include "svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::tool {

namespace {

std::string const& title_of(eval_result const& r) { return r.model.empty() ? r.dump : r.model; }

std::string key_transforms(eval_result const& r) {
  return r.calibration.empty()
             ? "Key transforms estimated from the evaluated text itself (no calibration file)."
             : "Key transforms from " + r.calibration + ".";
}

std::string_view windows(eval_result const& r) {
  auto const count = [&](std::string_view windows) {
    return std::count_if(r.presets.begin(), r.presets.end(),
                         [&](preset_result const& p) { return p.windows == windows; });
  };
  if (count("on") == 0) {
    return " Windows off: only tokens behind the last whole group, where groups lie along tokens, "
           "are exact.";
  }
  return count("off") == 0
             ? " Windows on: each preset keeps its first and last tokens exact."
             : " Windows on keep the first and last tokens of each preset exact, windows off "
               "none.";
}

std::string header(eval_result const& r) {
  std::string facts = fmt::format(
      "{}{}. {}, the last {} as queries; {} query and {}, head_dim {}.", r.dump,
      r.text.empty() ? "" : ": " + r.text, counted(static_cast<std::size_t>(r.tokens), "token"),
      r.queries, r.q_heads, counted(static_cast<std::size_t>(r.kv_heads), "KV head"), r.head_dim);
  std::string const keys = key_transforms(r) + std::string(windows(r));
  std::string html = fmt::format(
      "<header>\n<h1>KV-cache codecs on {}</h1>\n<p class=\"facts\">{}</p>\n"
      "<p class=\"facts\">{}</p>\n",
      escape_html(title_of(r)), escape_html(facts), escape_html(keys));
  for (std::string const& warning : r.warnings) {
    html += fmt::format("<p class=\"warning\">{}</p>\n", escape_html(warning));
  }
  return html + "</header>\n";
}

std::string choice_section(eval_result const& r) {
  std::vector<std::string> const sentences = sentences_of(choose(r), r);
  std::string list;
  for (std::size_t i = 1; i < sentences.size(); ++i) {
    list += fmt::format("<li>{}</li>\n", escape_html(sentences[i]));
  }
  if (!list.empty()) list = "<ul>\n" + list + "</ul>\n";
  return section("Which codec?", sentences.front(), list);
}

}  // namespace

std::string html_report(eval_result const& result) {
  std::string page;
  page += header(result);
  if (result.presets.empty()) page += "<p>No preset was evaluated.</p>\n";
  page += output_error_section(result);
  page += attention_section(result);
  page += table_section(result);
  if (!result.presets.empty()) page += choice_section(result);
  page += layer_section(result);
  page += channel_section(result);
  page += norm_section(result);
  return html_page("kvarts eval: " + title_of(result), page);
}

}  // namespace kvarts::tool
