// SPDX-License-Identifier: Apache-2.0
/// @file
/// What must hold for every page that the program writes, whatever the data.
#pragma once

#include "support/catch.hpp"
#include "support/html_scan.hpp"

#include <cstdlib>
#include <regex>
#include <string>

namespace kvarts::test {

inline void check_page(std::string const& page) {
  using Catch::Matchers::ContainsSubstring;
  CHECK(imbalance(page) == "");
  CHECK(page.find("<script") == std::string::npos);
  CHECK(page.find("src=") == std::string::npos);
  CHECK(page.find("href=") == std::string::npos);
  std::regex const non_finite("(^|[^a-z])-?(nan|inf)", std::regex::icase);
  for (std::string const& tag : tags_of(page)) {
    if (std::regex_search(tag, non_finite)) FAIL_CHECK("not finite: <" + tag + ">");
  }
  for (std::string const& svg : pictures_of(page)) {
    CHECK(imbalance(svg + "</svg>") == "");
    CHECK_THAT(svg, ContainsSubstring("role=\"img\""));
    CHECK_THAT(svg, ContainsSubstring("<title id="));
    CHECK_THAT(svg, ContainsSubstring("<desc id="));
    for (std::string const& pair : overlapping_texts(svg)) FAIL_CHECK("texts overlap: " + pair);
    std::string const view = attribute(svg.substr(0, svg.find('>')), "viewBox");
    for (text_box const& t : texts_of(svg)) {
      CAPTURE(t.text, view);
      CHECK(t.left >= 0);
      CHECK(t.right <= std::atof(view.substr(4).c_str()));
    }
  }
}

}  // namespace kvarts::test
