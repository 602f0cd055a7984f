// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the report looks: the families of presets with their markers, and the style sheet.
#pragma once

#include "svg_chart.hpp"

#include <span>
#include <string>
#include <string_view>

namespace kvarts::tool {

/// Presets of one origin share a colour and a marker.
struct family {
  std::string_view css;  ///< class that sets the colour
  std::string_view name;
  marker_shape shape;
};

/// All families, in the order of legends.
std::span<family const> families();

/// The family that a preset's name belongs to; names nobody knows are "other".
family const& family_of(std::string_view preset);

/// A family's marker as an icon for running text and tables.
std::string family_icon(family const& f);

/// One entry of a legend: an icon (SVG elements in a box of 22 x 14) and its meaning.
std::string legend_entry(std::string_view icon, std::string_view meaning);

/// The style sheet of the page: light, dark, print.
std::string_view style_sheet();

/// A whole self-contained page: its title (escaped here), its main part (HTML) and rules for the
/// style sheet that only this page needs.
std::string html_page(std::string_view title, std::string_view main, std::string_view rules = {});

}  // namespace kvarts::tool
