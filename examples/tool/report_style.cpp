// SPDX-License-Identifier: Apache-2.0
#include "report_style.hpp"

#include <fmt/format.h>

#include <array>

namespace kvarts::tool {

namespace {

constexpr std::array<family, 7> all_families{{
    {"f-ours", "k*v* (mid-rise rows)", marker_shape::circle},
    {"f-innerq", "InnerQ", marker_shape::square},
    {"f-kivi", "KIVI", marker_shape::triangle},
    {"f-turbo", "TurboQuant", marker_shape::diamond},
    {"f-int", "INT8, INT4", marker_shape::cross},
    {"f-plain", "16 bits, not coded", marker_shape::ring},
    {"f-other", "other", marker_shape::wedge},
}};

constexpr std::string_view css = R"css(
:root {
  color-scheme: light dark;
  --page: #fff; --panel: #f6f7f9; --ink: #1c2127; --soft: #59626e; --rule: #d5dae0; --grid: #e9ecf0;
  --ours: #0a5fc2; --innerq: #b4470a; --kivi: #17774a; --turbo: #7a3db3; --int: #3e4854;
  --plain: #6a737f; --other: #a02060; --stem: #d58a4a; --before: #6a737f; --after: #0a5fc2;
  --h0: #f3f5f8; --h1: #fdf3e2; --h2: #fbe4c4; --h3: #f8d09c; --h4: #f0b173; --h5: #e18f50;
  --h6: #bf5c2b; --h7: #8c381b; --on-hot: #fff;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #14171b; --panel: #1c2026; --ink: #e4e8ed; --soft: #9ba5b1; --rule: #3a424c;
    --grid: #262c34; --ours: #6cb0ff; --innerq: #f29b5b; --kivi: #5dcb92; --turbo: #c79df2;
    --int: #c4ccd6; --plain: #8f99a6; --other: #f283b4; --stem: #b9763b; --before: #8f99a6;
    --after: #6cb0ff;
    --h0: #1d2229; --h1: #2a2622; --h2: #3b2d21; --h3: #523621; --h4: #714622; --h5: #955a27;
    --h6: #cb8140; --h7: #f4b677; --on-hot: #14171b;
  }
}
* { box-sizing: border-box; }
body { margin: 0; background: var(--page); color: var(--ink);
  font: 15px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial,
  sans-serif; }
main { max-width: 1100px; margin: 0 auto; padding: 32px 28px 48px; }
h1 { font-size: 26px; line-height: 1.25; margin: 0 0 4px; overflow-wrap: anywhere; }
h2 { font-size: 19px; margin: 0 0 4px; }
section { margin-top: 44px; }
p { margin: 0 0 12px; max-width: 94ch; }
.facts { color: var(--soft); overflow-wrap: anywhere; margin: 0; }
.warning { border-left: 4px solid var(--innerq); background: var(--panel); padding: 8px 14px;
  margin: 16px 0 0; max-width: none; overflow-wrap: anywhere; }
.legend { display: flex; flex-wrap: wrap; gap: 2px 20px; font-size: 13px; color: var(--soft);
  margin: 0 0 6px; }
.legend span { display: inline-flex; align-items: center; gap: 6px; }
.note { font-size: 13px; color: var(--soft); }
.icon { flex: none; vertical-align: -2px; }
.scroll { overflow-x: auto; }
.scroll > svg { display: block; width: 100%; max-width: 1044px; height: auto; min-width: 700px; }
.pair { display: flex; flex-wrap: wrap; gap: 20px 24px; }
.pair > svg { display: block; width: 100%; max-width: 510px; height: auto; }
.pair > div { min-width: 0; max-width: 100%; }
svg text { font: 12px system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", Arial,
  sans-serif; fill: var(--ink); font-variant-numeric: tabular-nums; }
svg .tick, svg .axis, svg .aside { fill: var(--soft); }
svg .heading { font-weight: 600; font-size: 13px; }
svg .mid { text-anchor: middle; } svg .end { text-anchor: end; }
svg .halo { paint-order: stroke; stroke: var(--page); stroke-width: 3px; stroke-linejoin: round; }
.grid { stroke: var(--grid); } .frame { stroke: var(--rule); }
.band { fill: var(--panel); }
.frontier { fill: none; stroke: var(--rule); stroke-width: 2; }
.leader { stroke: var(--soft); stroke-width: .8; opacity: .7; }
.marker { stroke: var(--page); stroke-width: 1; }
.f-ours { fill: var(--ours); } .f-innerq { fill: var(--innerq); } .f-kivi { fill: var(--kivi); }
.f-turbo { fill: var(--turbo); } .f-int { fill: var(--int); } .f-plain { fill: var(--plain); }
.f-other { fill: var(--other); }
.stem { stroke: var(--stem); stroke-width: 1.4; } .stem-dot { fill: var(--stem); }
.before, .after { fill: none; stroke-width: 1.6; stroke-linejoin: round; }
.before { stroke: var(--before); } .after { stroke: var(--after); stroke-width: 2; }
.whisker { stroke: var(--plain); stroke-width: 1; } .most { fill: var(--plain); opacity: .45; }
.half { fill: var(--ours); } .median { stroke: var(--page); stroke-width: 2; }
.first { fill: var(--page); stroke: var(--innerq); stroke-width: 2; }
table { border-collapse: collapse; font-size: 13px; font-variant-numeric: tabular-nums; }
caption { text-align: left; font-weight: 600; padding: 0 0 6px; }
th { font-weight: 600; text-align: right; vertical-align: bottom; }
th[scope=row] { text-align: left; font-weight: 400; white-space: nowrap; }
td { text-align: right; }
.figures { width: 100%; }
.figures th, .figures td { padding: 4px 10px; border-bottom: 1px solid var(--grid); }
.figures thead th { border-bottom: 1px solid var(--rule); }
.figures small { font-weight: 400; color: var(--soft); font-size: 12px; }
.figures tr.best { background: var(--panel); } tr.best th[scope=row] { font-weight: 600; }
.heat { border-collapse: separate; border-spacing: 1px; font-size: 12px; }
.heat caption { font-size: 13px; }
.heat th { padding: 2px 6px; } .heat thead th { font-weight: 400; color: var(--soft); }
.heat td { padding: 2px 3px; min-width: var(--cell); text-align: center; border-radius: 2px; }
.heat .mean { border-left: 6px solid var(--page); } .heat .bits { color: var(--soft); }
.heat .bits, .heat thead th { text-align: right; } thead th:first-child { text-align: left; }
.heat thead th:nth-child(n+3) { text-align: center; }
.scale { display: flex; margin: 4px 0; font-weight: 400; font-size: 12px; }
.scale span { padding: 1px 8px; text-align: center; white-space: nowrap; }
.dense .heat td { font-size: 10.5px; padding: 2px 1px; } .dense .heat .bits { display: none; }
.dense .heat th { padding: 2px 1px; }
.h0 { background: var(--h0); } .h1 { background: var(--h1); } .h2 { background: var(--h2); }
.h3 { background: var(--h3); } .h4 { background: var(--h4); } .h5 { background: var(--h5); }
.h6 { background: var(--h6); color: var(--on-hot); }
.h7 { background: var(--h7); color: var(--on-hot); }
.h0, .h1, .h2, .h3, .h4, .h5, .h6, .h7 { print-color-adjust: exact;
  -webkit-print-color-adjust: exact; }
details { margin-top: 14px; } summary { cursor: pointer; color: var(--soft); font-size: 13px; }
@media print {
  @page { margin: 12mm; }
  main { max-width: none; padding: 0; } body { font-size: 11px; }
  section { margin-top: 22px; break-inside: avoid; } .scroll { overflow: visible; }
  .scroll > svg { min-width: 0; } .pair { gap: 10px 1%; } .pair > svg { width: 49%; }
  .legend, table { font-size: 9px; } .heat, .heat caption, .scale { font-size: 8px; }
  .heat td { min-width: 0; } .heat th { padding: 1px 2px; } .figures small { font-size: 8px; }
  .figures th, .figures td { padding: 2px 6px; }
  details:not([open]) { display: none; }
}
)css";

bool is_key_value_name(std::string_view name) {
  auto const digit = [](char c) { return c >= '0' && c <= '9'; };
  return name.size() == 4 && name[0] == 'k' && digit(name[1]) && name[2] == 'v' && digit(name[3]);
}

}  // namespace

std::span<family const> families() { return all_families; }

family const& family_of(std::string_view preset) {
  auto const starts = [&](std::string_view prefix) { return preset.starts_with(prefix); };
  if (is_key_value_name(preset)) return all_families[0];
  if (starts("innerq")) return all_families[1];
  if (starts("kivi")) return all_families[2];
  if (starts("turboquant")) return all_families[3];
  if (starts("int8") || starts("int4")) return all_families[4];
  if (preset == "fp16" || preset == "bf16") return all_families[5];
  return all_families[6];
}

std::string family_icon(family const& f) {
  return fmt::format(
      "<svg class=\"icon\" viewBox=\"0 0 14 14\" width=\"14\" height=\"14\" aria-hidden=\"true\">"
      "<path d=\"{}\" class=\"marker {}\"/></svg>",
      marker_path(f.shape, {7, 7}), f.css);
}

std::string legend_entry(std::string_view icon, std::string_view meaning) {
  return fmt::format(
      "<span><svg class=\"icon\" viewBox=\"0 0 22 14\" width=\"22\" height=\"14\" "
      "aria-hidden=\"true\">{}</svg>{}</span>\n",
      icon, escape_html(meaning));
}

std::string_view style_sheet() { return css; }

std::string html_page(std::string_view title, std::string_view main, std::string_view rules) {
  return fmt::format(
      "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<title>{}</title>\n<style>{}{}</style>\n</head>\n<body>\n<main>\n{}"
      "</main>\n</body>\n</html>\n",
      escape_html(title), style_sheet(), rules, main);
}

}  // namespace kvarts::tool
