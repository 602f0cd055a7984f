// SPDX-License-Identifier: Apache-2.0
// The tier's ordering contract on a device that reorders all that it allows: with all waits every
// order gives the right bytes, without any one of them some order does not.
#include "support/catch.hpp"
#include "support/tier_scenario.hpp"

#include <kvarts/kvarts.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::tier;
using namespace kvarts::test;

geometry small_geometry(host_layout how, record_kind record) {
  geometry g = uniform_geometry(3, 2, segment_of<row_codec<midrise<8>>>(16),
                                segment_of<row_codec<int8_head>>(24));
  g.page_tokens = 8;
  g.placement = how;
  g.record = record;
  g.alignment = 16;
  return g;
}

std::vector<scenario_shape> shapes() {
  std::vector<scenario_shape> all;
  for (host_layout const how : host_layouts) {
    for (std::int64_t const copy_from : {std::int64_t{0}, transfer_options::always_mapped}) {
      all.push_back({small_geometry(how, record_kind::page), copy_from});
      all.push_back({small_geometry(how, record_kind::row), copy_from});
    }
    all.push_back({small_geometry(how, record_kind::page), 0, true});
  }
  all.push_back({small_geometry(host_layout::layer_first, record_kind::page), 600});
  all.push_back({small_geometry(host_layout::page_first, record_kind::row), 0, false, true});
  return all;
}

/// The first thing that goes wrong for one of `count` seeds, or nothing.
std::string wrong_for_some(scenario_shape const& shape, wait_for left_out, int count) {
  std::string found;
  for (int i = 0; i < count && found.empty(); ++i) {
    found = scenario(shape, test_seed() + static_cast<std::uint64_t>(i)).run(left_out);
  }
  return found;
}

TEST_CASE("with all waits, every order gives the right bytes") {
  CAPTURE(test_seed());
  for (scenario_shape const& s : shapes()) {
    CAPTURE(to_string(s.g.placement), s.copy_from_bytes, s.listed, s.one_stream);
    CHECK(wrong_for_some(s, wait_for::all, 100) == "");
  }
}

/// Leaving the wait out shows, for each shape of which `concerns(shape)`.
template <class F>
void require_needed(wait_for w, F const& concerns) {
  CAPTURE(test_seed());
  for (scenario_shape const& s : shapes()) {
    if (!concerns(s)) continue;
    CAPTURE(to_string(s.g.placement), s.copy_from_bytes, s.listed, s.one_stream);
    CHECK(wrong_for_some(s, w, 200) != "");
  }
}
void require_needed(wait_for w) {
  require_needed(w, [](scenario_shape const&) { return true; });
}

TEST_CASE("1: encoding waits for the last write of the device's pages") {
  require_needed(wait_for::written);
}

TEST_CASE("2: device pages are written again only behind the encode") {
  require_needed(wait_for::encoded);
}

TEST_CASE("3: records are read only behind the store") { require_needed(wait_for::stored); }

TEST_CASE("4: host pages are not overwritten while a restore reads them") {
  require_needed(wait_for::host_free, [](scenario_shape const& s) { return !s.one_stream; });
}

TEST_CASE("5: a restore waits for the last user of its pages") {
  require_needed(wait_for::slots_free);
}

TEST_CASE("6: the model reads a layer only behind the layer's event") {
  require_needed(wait_for::layers);
}

TEST_CASE("slices are used again only behind their last use, and read only when full") {
  auto const staged = [](scenario_shape const& s) {
    return s.copy_from_bytes == 0 && !s.listed && !s.one_stream;
  };
  require_needed(wait_for::last_use, staged);
  require_needed(wait_for::filled, staged);
}

TEST_CASE("a store without copies is complete only behind its launches") {
  require_needed(wait_for::joined, [](scenario_shape const& s) {
    return s.copy_from_bytes == transfer_options::always_mapped;
  });
}

}  // namespace
