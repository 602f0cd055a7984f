// SPDX-License-Identifier: Apache-2.0
#include "kvt_file.hpp"

#include "support/byte_strings.hpp"
#include "support/catch.hpp"
#include "support/tool_faults.hpp"

#include <cstddef>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

std::string const payload = std::string(7, '\xA5') + "codes and scales";  // 23 bytes

/// 3 tokens of 2 heads of 5 channels in 6 bits: 180 bits, rows of one group.
kvt_contents example() {
  kvt_contents c;
  c.header.set_codec_name("midrise6_of_a_test");
  c.header.code_bits = 6;
  c.header.scale_type = kvt_scale_type::bf16;
  c.header.source = dtype::f32;
  c.header.heads = 2;
  c.header.head_dim = 5;
  c.header.tokens = 3;
  c.center = {0, -1, 2, -3, 4, 1e30f, -6, 7, -8, 0x1p-140f};
  c.norm = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  c.payload = bytes_of(payload);
  return c;
}

std::string written(kvt_contents const& c) {
  scratch_folder const folder;
  write_kvt(folder / "a.kvt", c);
  return text_of(mapped_file(folder / "a.kvt").bytes());
}

TEST_CASE("a .kvt file on disk comes back with its transform and payload") {
  scratch_folder const folder;
  for (bool const center : {false, true}) {
    for (bool const norm : {false, true}) {
      for (bool const rotation : {false, true}) {
        kvt_contents c = example();
        if (!center) c.center.clear();
        if (!norm) c.norm.clear();
        if (rotation) {
          c.header.transform = kvt_rotation;
          c.header.rotation_rounds = 1;
          c.header.rotation_seed = 1;
        }
        write_kvt(folder / "a.kvt", c);
        auto const [file, read] = open_kvt(folder / "a.kvt");
        CHECK(read.header.codec_name() == "midrise6_of_a_test");
        CHECK(read.header.transform == (center ? 1 : 0) + (norm ? 2 : 0) + (rotation ? 4 : 0));
        CHECK(read.header.rotation_seed == (rotation ? 1 : 0));
        CHECK(read.header.tokens == 3);
        CHECK(read.center == c.center);
        CHECK(read.norm == c.norm);
        CHECK(text_of(read.payload) == payload);
        CHECK(file.bytes().size() == 256u + (center ? 40 : 0) + (norm ? 40 : 0) + 23);
      }
    }
  }
}

TEST_CASE("an empty cache can be stored") {
  kvt_contents c = example();
  c.header.tokens = 0;
  c.payload = {};
  std::string const file = written(c);
  CHECK(file.size() == 256 + 80);
  CHECK(error_of(parse_kvt_file, file) == "");
}

TEST_CASE("every cut and every flipped byte of a .kvt file on disk is an error") {
  std::string const file = written(example());
  REQUIRE(error_of(parse_kvt_file, file) == "");
  for (std::size_t i = 0; i < file.size(); ++i) {
    INFO("byte " << i);
    REQUIRE(!error_of(parse_kvt_file, file.substr(0, i)).empty());
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      REQUIRE(!error_of(parse_kvt_file, damaged).empty());
    }
  }
  CHECK_THAT(error_of(parse_kvt_file, file + "x"), ContainsSubstring("promises 359"));
  CHECK_THAT(error_of(parse_kvt_file, ""), ContainsSubstring("0 bytes are too few"));
}

TEST_CASE("a .kvt file that readers would refuse is not written") {
  scratch_folder const folder;
  auto const refused = [&](kvt_contents const& c) {
    return sentence_of([&] { write_kvt(folder / "a.kvt", c); });
  };
  kvt_contents c = example();
  c.header.head_dim = 1025;
  CHECK_THAT(refused(c), ContainsSubstring("a.kvt: head_dim is 1025, not 1 to 1024"));
  c = example();
  c.header.set_codec_name("Midrise");
  CHECK_THAT(refused(c), ContainsSubstring("character of code 77"));
  c = example();
  c.header.set_codec_name(std::string(100, 'a'));
  CHECK_THAT(refused(c), ContainsSubstring("longer than 31"));
  c = example();
  c.payload = c.payload.first(22);
  CHECK_THAT(refused(c), ContainsSubstring("payload bytes are 22, but the codes take 23"));
  c = example();
  c.norm.pop_back();
  CHECK_THAT(refused(c), ContainsSubstring("has 9 values, not 2 heads x 5 head_dim"));
  CHECK(folder.files() == 0);
}

}  // namespace
