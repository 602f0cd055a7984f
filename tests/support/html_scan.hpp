// SPDX-License-Identifier: Apache-2.0
/// @file
/// Reads back what a page of HTML with inline SVG says: balance of tags, SVG elements, text boxes.
#pragma once

#include <cctype>
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::test {

/// A tag as it stands in the page, without the angle brackets: `p class="x"`, `/p`, `br`.
inline std::vector<std::string> tags_of(std::string_view html) {
  std::vector<std::string> tags;
  std::size_t at = 0;
  while ((at = html.find('<', at)) != std::string_view::npos) {
    std::size_t const end = html.find('>', at);
    if (end == std::string_view::npos) return {"a tag without its end"};
    tags.emplace_back(html.substr(at + 1, end - at - 1));
    bool const style = tags.back().starts_with("style");
    at = style ? html.find("</style>", end) : end;
    if (at == std::string_view::npos) return {"a style sheet without its end"};
  }
  return tags;
}

inline std::string tag_name(std::string_view tag) {
  if (tag.starts_with("/")) tag.remove_prefix(1);
  return std::string(tag.substr(0, tag.find_first_of(" \n/")));
}

/// Empty when every tag is closed in order; else what is wrong.
inline std::string imbalance(std::string_view html) {
  std::vector<std::string> open;
  for (std::string const& tag : tags_of(html)) {
    std::string const name = tag_name(tag);
    bool const is_void = name == "!doctype" || name == "meta" || name == "br";
    if (is_void || tag.ends_with('/')) continue;
    if (!tag.starts_with('/')) {
      open.push_back(name);
    } else if (open.empty() || open.back() != name) {
      return "</" + name + "> closes " + (open.empty() ? "nothing" : "<" + open.back() + ">");
    } else {
      open.pop_back();
    }
  }
  return open.empty() ? "" : "<" + open.back() + "> is not closed";
}

/// All `<svg>` elements that are pictures, not icons.
inline std::vector<std::string> pictures_of(std::string const& html) {
  std::vector<std::string> pictures;
  std::size_t at = 0;
  while ((at = html.find("<svg", at)) != std::string::npos) {
    std::size_t const end = html.find("</svg>", at);
    std::string const svg = html.substr(at, end - at);
    if (svg.find("aria-hidden=\"true\"") == std::string::npos) pictures.push_back(svg);
    at = end;
  }
  return pictures;
}

/// The value of an attribute in a tag; empty if it is not there.
inline std::string attribute(std::string_view tag, std::string const& name) {
  std::string const key = " " + name + "=\"";
  std::size_t const at = tag.find(key);
  if (at == std::string_view::npos) return "";
  std::size_t const from = at + key.size();
  return std::string(tag.substr(from, tag.find('"', from) - from));
}

/// A text of a picture and the least room that it takes in any font.
struct text_box {
  std::string text;
  double left, right, top, bottom;
};

/// Characters that escaped ASCII text shows.
inline std::size_t characters_of(std::string_view escaped) {
  std::size_t count = 0;
  for (std::size_t i = 0; i < escaped.size(); ++i, ++count) {
    if (escaped[i] == '&') i = escaped.find(';', i);
  }
  return count;
}

inline std::vector<text_box> texts_of(std::string const& svg) {
  constexpr double character = 5.5;  // 12 px type: narrow fonts; DejaVu Sans takes 7
  std::vector<text_box> boxes;
  std::size_t at = 0;
  while ((at = svg.find("<text ", at)) != std::string::npos) {
    std::size_t const end = svg.find('>', at);
    std::string const tag = svg.substr(at, end - at);
    std::string const text = svg.substr(end + 1, svg.find("</text>", end) - end - 1);
    std::string const css = " " + attribute(tag, "class") + " ";
    double const x = std::atof(attribute(tag, "x").c_str());
    double const y = std::atof(attribute(tag, "y").c_str());
    double const width = character * static_cast<double>(characters_of(text));
    double const part = css.find(" end ") != std::string::npos   ? 1
                        : css.find(" mid ") != std::string::npos ? .5
                                                                 : 0;
    boxes.push_back({text, x - part * width, x + (1 - part) * width, y - 9, y + 2});
    at = end;
  }
  return boxes;
}

/// Pairs of texts that lie on each other, as "a | b".
inline std::vector<std::string> overlapping_texts(std::string const& svg) {
  std::vector<text_box> const boxes = texts_of(svg);
  std::vector<std::string> pairs;
  for (std::size_t i = 0; i < boxes.size(); ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      text_box const& a = boxes[i];
      text_box const& b = boxes[j];
      if (a.left < b.right && b.left < a.right && a.top < b.bottom && b.top < a.bottom) {
        pairs.push_back(b.text + " | " + a.text);
      }
    }
  }
  return pairs;
}

}  // namespace kvarts::test
