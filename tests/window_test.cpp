// SPDX-License-Identifier: Apache-2.0
// Which tokens are coded after n tokens, against a token by token simulation of both papers'
// windows.
#include "support/catch.hpp"

#include <kvarts/cache_storage.hpp>
#include <kvarts/quantizer.hpp>
#include <kvarts/window.hpp>

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using Catch::Matchers::ContainsSubstring;

/// One of K or V as the papers describe it: sinks fill first, then a queue, which gives its oldest
/// `step` tokens to the quantizer whenever it has grown to the recent window and `step` more.
class simulation {
 public:
  simulation(windows w, int step) : window_(w), step_(step) {}

  void append(std::int64_t position) {
    if (sinks < window_.sink) {
      ++sinks;
      return;
    }
    recent.push_back(position);
    if (static_cast<int>(recent.size()) < window_.recent + step_) return;
    for (int i = 0; i < step_; ++i) {
      coded.push_back(recent.front());
      recent.pop_front();
    }
  }

  std::int64_t sinks = 0;
  std::vector<std::int64_t> coded;
  std::deque<std::int64_t> recent;

 private:
  windows window_;
  int step_;
};

/// Sizes agree, and the parts are the positions that the partition says.
bool agrees(partition const& p, simulation const& s, std::int64_t tokens) {
  bool same = p.tokens == tokens && p.sinks == s.sinks &&
              p.coded() == static_cast<std::int64_t>(s.coded.size()) &&
              p.recent() == static_cast<std::int64_t>(s.recent.size());
  if (!s.coded.empty())
    same = same && s.coded.front() == p.sinks && s.coded.back() + 1 == p.coded_end;
  if (!s.recent.empty())
    same = same && s.recent.front() == p.coded_end && s.recent.back() == tokens - 1;
  return same;
}

TEST_CASE("the partition is where token by token eviction leads") {
  for (int const sink : {0, 1, 5, 31, 32, 33, 64, 256}) {
    for (int const recent : {0, 1, 7, 31, 32, 33, 96, 128, 256}) {
      for (int const step : {1, 2, 7, 16, 32, 48, 128}) {
        CAPTURE(sink, recent, step);
        windows const w{sink, recent};
        simulation s(w, step);
        int wrong = agrees(partition_after(0, w, step), s, 0) ? 0 : 1;
        for (std::int64_t n = 1; n <= 3 * (sink + recent + step); ++n) {
          s.append(n - 1);
          partition const p = partition_after(n, w, step);
          wrong += agrees(p, s, n) ? 0 : 1;
          bool const full = n >= sink + recent;
          wrong += !full || (p.recent() >= recent && p.recent() < recent + step) ? 0 : 1;
          // Without a frozen transform the same sinks, and nothing coded.
          partition const waiting = partition_after(n, w, step, false);
          wrong += waiting == partition{p.sinks, p.sinks, n} ? 0 : 1;
        }
        REQUIRE(wrong == 0);
      }
    }
  }
}

TEST_CASE("the partition of InnerQ and KIVI at the sizes that they name") {
  constexpr windows innerq{32, 96}, kivi{0, 128};
  constexpr int keys = eviction_step(axis::channel, 32), values = eviction_step(axis::token, 32);
  STATIC_REQUIRE(keys == 1);
  STATIC_REQUIRE(eviction_step(axis::row, 0) == 1);
  STATIC_REQUIRE(values == 32);
  STATIC_REQUIRE(partition_after(128, innerq, keys) == partition{32, 32, 128});
  STATIC_REQUIRE(partition_after(129, innerq, keys) == partition{32, 33, 129});
  STATIC_REQUIRE(partition_after(159, innerq, values) == partition{32, 32, 159});
  STATIC_REQUIRE(partition_after(160, innerq, values) == partition{32, 64, 160});
  STATIC_REQUIRE(partition_after(159, kivi, 32) == partition{0, 0, 159});
  STATIC_REQUIRE(partition_after(160, kivi, 32) == partition{0, 32, 160});
  STATIC_REQUIRE(partition_after(31, innerq, keys) == partition{31, 31, 31});
  // Far beyond 32 bits.
  STATIC_REQUIRE(partition_after(std::int64_t{1} << 40, innerq, values).coded() ==
                 (std::int64_t{1} << 40) - 128);
}

TEST_CASE("windows that a codec cannot have are refused by name") {
  CHECK_FALSE(check({0, 0}, axis::token, 32));
  CHECK_FALSE(check({64, 1}, axis::token, 32));
  CHECK_FALSE(check({33, 5}, axis::channel, 32));
  CHECK_FALSE(check({33, 5}, axis::row, 0));

  auto const refused = [](windows w, axis a, int group, std::string const& part) {
    problem const p = check(w, a, group);
    CHECK(p.code == status::bad_window);
    CHECK_THAT(p.sentence(), ContainsSubstring(part));
  };
  refused({40, 96}, axis::token, 32, "40 tokens (w_sink) is no multiple of the group of 32");
  refused({-1, 96}, axis::row, 0, "sink window of -1 tokens");
  refused({32, -96}, axis::channel, 32, "recent window of -96 tokens");
}

template <class KeyCodec, class ValueCodec>
std::string sentence_of(windows w, status code) {
  cache_options o{.heads = 1, .key_dim = 64, .page_tokens = 96};
  try {
    detail::check_options<KeyCodec, ValueCodec>(w, o);
  } catch (error const& e) {
    CHECK(e.code() == code);
    return e.what();
  }
  return "";
}

TEST_CASE("a cache refuses them for either of its codecs") {
  using rows = row_codec<midrise<4>>;
  using by_32 = codec<affine<2>, axis::token, 32>;
  using by_48 = codec<affine<2>, axis::token, 48>;
  using by_default = codec<affine<2>, axis::token>;
  CHECK(sentence_of<rows, rows>({17, 3}, status::ok).empty());
  CHECK(sentence_of<by_32, by_48>({96, 3}, status::ok).empty());
  CHECK_THAT((sentence_of<by_32, rows>({17, 3}, status::bad_window)),
             ContainsSubstring("17 tokens (w_sink)"));
  CHECK_THAT((sentence_of<rows, by_48>({32, 96}, status::bad_window)),
             ContainsSubstring("32 tokens (w_sink) is no multiple of the group of 48"));
  CHECK_THAT((sentence_of<by_default, rows>({40, 96}, status::bad_window)),
             ContainsSubstring("40 tokens (w_sink) is no multiple of the group of 32"));
  CHECK_THAT((sentence_of<rows, rows>({0, -2}, status::bad_window)),
             ContainsSubstring("recent window of -2 tokens"));
}

}  // namespace
