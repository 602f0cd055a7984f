// SPDX-License-Identifier: Apache-2.0
#include "report_parts.hpp"
#include "report_style.hpp"
#include "svg_chart.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace kvarts::tool {

namespace {

/// A profile with what the order of the panels and the sentences need.
struct summary {
  channel_profile const* profile = nullptr;
  std::size_t channel = 0;   ///< the one with the largest constant part
  double constant = 0;       ///< |mean| there
  double moves = 0;          ///< RMS deviation there
  double factor_before = 0;  ///< largest / smallest RMS deviation of all channels
  double factor_after = 0;   ///< the same of the RMS in coded space
};

bool all_finite(std::vector<double> const& values) {
  return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
}

/// Largest / smallest; 0 when the smallest is zero or there is nothing to compare.
double factor(std::vector<double> const& values) {
  if (values.empty()) return 0;
  auto const [low, high] = std::minmax_element(values.begin(), values.end());
  return *low < exact_below ? 0 : *high / *low;
}

bool drawable(channel_profile const& p) {
  std::size_t const n = p.mean_before.size();
  return n > 0 && p.rms_before.size() == n && (p.rms_after.empty() || p.rms_after.size() == n) &&
         all_finite(p.mean_before) && all_finite(p.rms_before) && all_finite(p.rms_after);
}

summary summarize(channel_profile const& p) {
  auto const largest =
      std::max_element(p.mean_before.begin(), p.mean_before.end(),
                       [](double a, double b) { return std::abs(a) < std::abs(b); });
  auto const channel = static_cast<std::size_t>(largest - p.mean_before.begin());
  return {&p,
          channel,
          std::abs(*largest),
          p.rms_before[channel],
          factor(p.rms_before),
          factor(p.rms_after)};
}

/// All drawable profiles, largest constant channel first.
std::vector<summary> ranked(eval_result const& result) {
  std::vector<summary> all;
  for (channel_profile const& p : result.channels) {
    if (drawable(p)) all.push_back(summarize(p));
  }
  std::stable_sort(all.begin(), all.end(),
                   [](summary const& a, summary const& b) { return a.constant > b.constant; });
  return all;
}

/// The panels to draw: the head with the largest constant of each layer, four layers at most.
std::vector<summary> panels(std::vector<summary> const& all) {
  constexpr std::size_t most = 4;
  std::set<int> seen;
  std::vector<summary> chosen;
  for (summary const& s : all) {
    if (chosen.size() < most && seen.insert(s.profile->layer).second) chosen.push_back(s);
  }
  return chosen;
}

std::string place(channel_profile const& p) {
  return fmt::format("Layer {}, KV head {}", p.layer, p.kv_head);
}

/// Shared by all panels, so that they can be compared: from the smallest RMS up.
extent shared_extent(std::vector<summary> const& shown) {
  std::vector<double> spreads, all;
  for (summary const& s : shown) {
    for (auto const* values : {&s.profile->rms_before, &s.profile->rms_after}) {
      spreads.insert(spreads.end(), values->begin(), values->end());
    }
    all.push_back(s.constant);
  }
  all.insert(all.end(), spreads.begin(), spreads.end());
  double const high = log_extent(all).high;
  return {std::min(log_extent(spreads).low, high / 10), high};
}

/// A curve that is flat over the width of each channel.
std::vector<point> steps(std::vector<double> const& values, axis const& x, axis const& y) {
  std::vector<point> points;
  for (std::size_t i = 0; i < values.size(); ++i) {
    auto const channel = static_cast<double>(i);
    points.push_back({x(channel - .5), y(values[i])});
    points.push_back({x(channel + .5), y(values[i])});
  }
  return points;
}

void draw_stems(svg_chart& chart, summary const& s, axis const& x, axis const& y, double bottom) {
  std::vector<double> const& means = s.profile->mean_before;
  double const dot = means.size() <= 64 ? 2.4 : 1.6;
  for (std::size_t i = 0; i < means.size(); ++i) {
    point const top{x(static_cast<double>(i)), y(std::abs(means[i]))};
    if (top.y > bottom - 1) continue;  // smaller than the axis shows
    chart.line({top.x, bottom}, top, "stem");
    chart.circle(top, dot, "stem-dot",
                 fmt::format("channel {}: mean {}, RMS deviation {}", i, measured(means[i]),
                             measured(s.profile->rms_before[i])));
  }
}

std::string panel(summary const& s, extent range, std::size_t index, double width) {
  constexpr double height = 290;
  box const area{52, 34, width - 66, 206};
  double const bottom = area.y + area.height;
  auto const channels = static_cast<double>(s.profile->mean_before.size());
  svg_chart chart(
      fmt::format("channels-{}", index), width, height, "Key channels, " + place(*s.profile),
      fmt::format("Mean and spread of {} key channels before the transform, spread after it.",
                  channels));
  axis const x = axis::linear({-.5, channels - .5}, area.x, area.x + area.width);
  axis const y = axis::logarithmic(range, bottom, area.y);
  chart.text({8, 16}, place(*s.profile), "heading");
  chart.y_grid(area, y, y.log_ticks(24), plain_number);
  draw_stems(chart, s, x, y, bottom);
  chart.polyline(steps(s.profile->rms_before, x, y), "before");
  chart.polyline(steps(s.profile->rms_after, x, y), "after");
  std::vector<double> ticks;
  for (double v = 0; v < channels; v += channels <= 64 ? 8 : (channels <= 128 ? 16 : 32)) {
    ticks.push_back(v);
  }
  chart.x_axis(area, x, x.pick(ticks, 24), plain_number, "channel");
  point const top{x(static_cast<double>(s.channel)), y(s.constant)};
  if (top.y < bottom - 1) {
    bool const left = top.x > area.x + area.width * .6;
    chart.text({top.x + (left ? -8 : 8), top.y + 4},
               fmt::format("channel {}: {}", s.channel, measured(s.constant)),
               left ? "halo end" : "halo");
  }
  return std::move(chart).finish();
}

std::string legend() {
  return "<div class=\"legend\">\n" +
         legend_entry(
             "<path d=\"M11 13V4\" class=\"stem\"/><circle cx=\"11\" cy=\"4\" r=\"2.4\" "
             "class=\"stem-dot\"/>",
             "|mean| of the channel (constant part) before") +
         legend_entry("<path d=\"M1 7h20\" class=\"before\"/>", "RMS deviation from it before") +
         legend_entry("<path d=\"M1 7h20\" class=\"after\"/>",
                      "RMS after the transform, in coded space") +
         "</div>\n";
}

std::string factor_text(double f) { return f == 0 ? "n/a" : measured(f, 2); }

std::string sentence(summary const& s) {
  std::string text =
      fmt::format("{}: channel {} has a constant part of {} and moves by only {} (RMS)",
                  place(*s.profile), s.channel, measured(s.constant), measured(s.moves));
  if (s.moves >= s.constant) {
    text = fmt::format(
        "No channel has a constant part above its own movement: at most {} ({}, "
        "channel {}), where the RMS deviation is {}",
        measured(s.constant), place(*s.profile), s.channel, measured(s.moves));
  }
  if (s.factor_before > 0) {
    text +=
        fmt::format("; the RMS deviations of the channels of this head differ by a factor of {}",
                    measured(s.factor_before, 2));
  }
  if (s.factor_after > 0) {
    text += fmt::format("; after the transform the RMS values lie within a factor of {}",
                        measured(s.factor_after, 2));
  }
  return text + ". Channels that share a scale need similar sizes.";
}

std::string all_heads(std::vector<summary> const& all) {
  std::string html =
      "<details><summary>All layers and KV heads</summary><div class=\"scroll\">"
      "<table class=\"figures\"><thead><tr><th scope=\"col\">layer</th>"
      "<th scope=\"col\">KV head</th><th scope=\"col\">channel of the largest |mean|</th>"
      "<th scope=\"col\">|mean|</th><th scope=\"col\">RMS deviation there</th>"
      "<th scope=\"col\">RMS before<br><small>largest / smallest</small></th>"
      "<th scope=\"col\">RMS after<br><small>largest / smallest</small></th></tr></thead><tbody>\n";
  for (summary const& s : all) {
    html += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td></tr>\n",
        s.profile->layer, s.profile->kv_head, s.channel, measured(s.constant), measured(s.moves),
        factor_text(s.factor_before), factor_text(s.factor_after));
  }
  return html + "</tbody></table></div></details>\n";
}

}  // namespace

std::string channel_section(eval_result const& result) {
  std::vector<summary> const all = ranked(result);
  if (all.empty()) return "";
  std::vector<summary> const shown = panels(all);
  extent const range = shared_extent(shown);
  std::string html = legend() + "<div class=\"pair\">\n";
  for (std::size_t i = 0; i < shown.size(); ++i) html += panel(shown[i], range, i, 510);
  html += "</div>\n";
  if (all.size() > shown.size()) html += all_heads(all);
  return section("Key channels before and after the transform", sentence(shown.front()), html);
}

}  // namespace kvarts::tool
