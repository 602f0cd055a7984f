// SPDX-License-Identifier: Apache-2.0
#include "safetensors.hpp"

#include "support/allocation_watch.hpp"
#include "support/byte_strings.hpp"
#include "support/catch.hpp"
#include "support/tool_faults.hpp"

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace {

using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

/// A file with this header, whatever it says.
std::string file_with(std::string const& header, std::size_t data_bytes = 0) {
  return number(std::uint64_t{header.size()}) + header + std::string(data_bytes, '\7');
}

std::string refusal(std::string const& header, std::size_t data_bytes = 0) {
  return error_of(parse_safetensors, file_with(header, data_bytes));
}

std::string entry(std::string const& dtype, std::string const& shape, std::string const& offsets) {
  return R"({"dtype":")" + dtype + R"(","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}";
}

/// A header with one tensor "k".
std::string one(std::string const& dtype, std::string const& shape, std::string const& offsets) {
  return R"({"k":)" + entry(dtype, shape, offsets) + "}";
}

std::string example_file() {
  std::string header = R"({"__metadata__":{"rope":"half-split","tokens":"2"},)";
  header += R"("layers.0.v":)" + entry("F16", "[2,1,3]", "[8,20]") + ",";
  header += R"("layers.0.k":)" + entry("F32", "[1,2]", "[0,8]") + ",";
  header += R"("empty":)" + entry("U8", "[0,7]", "[8,8]") + ",";
  header += R"("scalar":)" + entry("BOOL", "[]", "[20,21]") + "}   ";
  std::string data;
  for (int i = 0; i < 21; ++i) data += static_cast<char>('a' + i);
  return number(std::uint64_t{header.size()}) + header + data;
}

TEST_CASE("tensors and metadata are read") {
  std::string const file = example_file();
  safetensors const read = parse_safetensors(bytes_of(file), "some.file");
  CHECK(read.metadata.size() == 2);
  CHECK(read.metadata.at("rope") == "half-split");
  CHECK(read.metadata.at("tokens") == "2");
  REQUIRE(read.tensors.size() == 4);
  tensor const& v = read.tensors.at("layers.0.v");
  CHECK(v.dtype == file_dtype::f16);
  CHECK(v.shape == std::vector<std::int64_t>{2, 1, 3});
  CHECK(text_of(v.bytes) == "ijklmnopqrst");
  CHECK(text_of(read.tensors.at("layers.0.k").bytes) == "abcdefgh");
  CHECK(read.tensors.at("empty").bytes.empty());
  CHECK(read.tensors.at("scalar").shape.empty());
  CHECK(text_of(read.tensors.at("scalar").bytes) == "u");
}

TEST_CASE("every type of the format is known with its size") {
  std::vector<std::pair<std::string, std::int64_t>> const types = {
      {"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
      {"U16", 2},  {"I16", 2}, {"F16", 2}, {"BF16", 2},    {"U32", 4},
      {"I32", 4},  {"F32", 4}, {"U64", 8}, {"I64", 8},     {"F64", 8}};
  for (auto const& [name, size] : types) {
    std::string const end = std::to_string(3 * size);
    INFO(name);
    CHECK(refusal(one(name, "[3]", "[0," + end + "]"), static_cast<std::size_t>(3 * size)) == "");
    CHECK_THAT(refusal(one(name, "[2]", "[0," + end + "]"), static_cast<std::size_t>(3 * size)),
               ContainsSubstring("bytes, but there are " + end));
  }
}

TEST_CASE("files without tensors are read") {
  CHECK(refusal("{}") == "");
  CHECK(refusal("{ \n }  ") == "");
  CHECK(refusal(R"({"__metadata__":{}})") == "");
}

TEST_CASE("tensors come back as they were written") {
  scratch_folder const folder;
  std::string const bytes = "0123456789abcdef0123456789abcdef";
  auto const part = [&](std::size_t n) { return bytes_of(bytes).first(n); };
  safetensors written;
  written.metadata = {{"rounds", "1"}, {"quote \" and \\", "line\nend \xC3\xA4"}};
  written.tensors["layers.0.center"] = {file_dtype::f32, {2, 4}, part(32)};
  written.tensors["a"] = {file_dtype::u8, {5}, part(5)};
  written.tensors["b"] = {file_dtype::f64, {1, 1}, part(8)};
  written.tensors["c"] = {file_dtype::bf16, {0}, part(0)};
  write_safetensors(folder / "t.safetensors", written);
  auto const [file, read] = open_safetensors(folder / "t.safetensors");
  CHECK(read.metadata == written.metadata);
  REQUIRE(read.tensors.size() == written.tensors.size());
  for (auto const& [name, values] : written.tensors) {
    INFO(name);
    tensor const& back = read.tensors.at(name);
    CHECK(back.dtype == values.dtype);
    CHECK(back.shape == values.shape);
    CHECK(text_of(back.bytes) == text_of(values.bytes));
    auto const offset = back.bytes.data() - file.bytes().data();
    CHECK((values.bytes.empty() || offset % element_size(back.dtype) == 0));
  }
}

TEST_CASE("what would not be a valid file is not written") {
  scratch_folder const folder;
  auto const refused = [&](safetensors const& contents) {
    return sentence_of([&] { write_safetensors(folder / "t", contents); });
  };
  CHECK_THAT(refused({{{"a", {file_dtype::f32, {2}, bytes_of("1234")}}}, {}}),
             ContainsSubstring("tensor \"a\": F32 of shape [2] takes 8 bytes, but there are 4"));
  CHECK_THAT(refused({{}, {{"model", "\xFF"}}}), ContainsSubstring("not valid UTF-8"));
  CHECK(folder.files() == 0);
}

TEST_CASE("a .safetensors file cut or extended anywhere is an error") {
  std::string const file = example_file();
  for (std::size_t size = 0; size < file.size(); ++size) {
    INFO("cut to " << size);
    REQUIRE(!error_of(parse_safetensors, file.substr(0, size)).empty());
  }
  CHECK_THAT(error_of(parse_safetensors, file + "x"),
             ContainsSubstring("last 1 bytes belong to no"));
}

TEST_CASE("no flipped byte of a header crashes the reader") {
  std::string const file = example_file();
  for (std::size_t i = 0; i < file.size(); ++i) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      error_of(parse_safetensors, damaged);
    }
  }
}

TEST_CASE("header lengths that lie are refused without allocating") {
  auto const refused = [](std::uint64_t length, std::string const& sentence) {
    std::string const file = number(length) + "{}      ";
    allocation_watch const watch;
    std::string const got = error_of(parse_safetensors, file);
    std::size_t const largest = watch.largest();
    CHECK_THAT(got, ContainsSubstring(sentence));
    CHECK(largest < 4096);
  };
  refused(9, "header of 9 bytes, but only 8 are left");
  refused(100'000'000, "but only 8 are left");
  refused(100'000'001, "over the limit of 100000000");
  refused(std::uint64_t{1} << 63, "header of 9223372036854775808 bytes");
  refused(~std::uint64_t{0}, "header of 18446744073709551615 bytes");
  refused(std::uint64_t{0} - 8, "header of 18446744073709551608 bytes");
  refused(0, "does not begin with '{'");
}

TEST_CASE("ranges that lie are refused by name, without allocating") {
  auto const refused = [](std::string const& header, std::size_t data, std::string const& why) {
    INFO(header);
    allocation_watch const watch;
    std::string const got = refusal(header, data);
    std::size_t const largest = watch.largest();
    CHECK_THAT(got, ContainsSubstring(why));
    CHECK(largest < 16384);
  };
  refused(one("F32", "[2]", "[0,8]"), 4, "tensor \"k\" has bytes 0 to 8, but the data has 4");
  refused(one("F32", "[2]", "[8,0]"), 8, "bytes 8 to 0");
  refused(one("F32", "[2]", "[4,12]"), 12, "bytes 0 to 4 before tensor \"k\" belong to no tensor");
  refused(one("F32", "[2]", "[0,8]"), 12, "the last 4 bytes belong to no tensor");
  refused(one("U8", "[18446744073709551615]", "[0,18446744073709551615]"), 4, "dimension of");
  refused(one("U8", "[9223372036854775807]", "[0,9223372036854775807]"), 4, "but the data has 4");
  refused(one("F64", "[9223372036854775807]", "[0,8]"), 8, "is too large");
  refused(one("F32", "[4294967296,4294967296]", "[0,0]"), 0, "is too large");
  refused(one("F32", "[0,4294967296,4294967296]", "[0,0]"), 0, "is too large");
  refused(one("F32", "[2305843009213693952,2,2]", "[0,0]"), 0, "is too large");
  refused(one("F32", "[3]", "[0,8]"), 8, "F32 of shape [3] takes 12 bytes, but there are 8");

  std::string const k = R"({"k":)" + entry("F32", "[2]", "[0,8]") + R"(,"v":)";
  refused(k + entry("F32", "[2]", "[4,12]") + "}", 12, "tensor \"v\" begins at byte 4, inside");
  refused(k + entry("F32", "[2]", "[0,8]") + "}", 8, "begins at byte 0, inside");
  refused(k + entry("F32", "[1]", "[4,8]") + "}", 8, "begins at byte 4, inside");
  refused(k + entry("F32", "[0]", "[4,4]") + "}", 8, "begins at byte 4, inside");
  refused(k + entry("F32", "[2]", "[12,20]") + "}", 20, "bytes 8 to 12 before tensor \"v\"");
}

TEST_CASE("every malformed header is refused by name") {
  auto const refused = [](std::string const& header, std::string const& why) {
    INFO(header);
    CHECK_THAT(refusal(header, 4), ContainsSubstring(why));
  };
  refused("[]", "does not begin with '{'");
  refused(" {}", "does not begin with '{'");
  refused("\xEF\xBB\xBF{}", "does not begin with '{'");
  refused("{", "not valid JSON at byte 2");
  refused("{}{}", "not valid JSON at byte 3");
  refused(std::string("{}\0", 3), "not valid JSON at byte 3");
  refused(R"({"k":1})", "a number in \"k\" is out of place");
  refused(R"({"k":"F32"})", "a string in \"k\" is out of place");
  refused(R"({"k":[]})", "an array in \"k\" is out of place");
  refused(R"({"k":null})", "null in \"k\" is out of place");
  refused(R"({"k":true})", "true or false in \"k\" is out of place");
  refused(R"({"k":{}})", "tensor \"k\" lacks dtype");
  refused(R"({"k":{"dtype":"F32"}})", "lacks shape");
  refused(R"({"k":{"dtype":"F32","shape":[1]}})", "lacks data_offsets");
  refused(R"({"k":{"dtype":"F32","dtype":"F32"}})", "has dtype twice");
  refused(R"({"k":{"shape":[1],"shape":[1]}})", "has shape twice");
  refused(R"({"k":{"data_offsets":[0,4],"data_offsets":[0,4]}})", "has data_offsets twice");
  refused(R"({"k":{"strides":[1]}})", "has an unknown key \"strides\"");
  refused(one("F31", "[1]", "[0,4]"), "has an unknown type \"F31\"");
  refused(one("f32", "[1]", "[0,4]"), "has an unknown type \"f32\"");
  refused(R"({"k":{"dtype":7}})", "a number in \"k\" is out of place");
  refused(R"({"k":{"dtype":{}}})", "an object in \"k\" is out of place");
  refused(one("F32", "1", "[0,4]"), "a number in \"k\" is out of place");
  refused(one("F32", "[-1]", "[0,4]"), "the negative number -1 in \"k\"");
  refused(one("F32", "[1.0]", "[0,4]"), "the number \"1.0\" in \"k\"");
  refused(one("F32", "[1e0]", "[0,4]"), "the number \"1e0\" in \"k\"");
  refused(one("F32", "[36893488147419103232]", "[0,4]"), "the number \"36893488147419103232\"");
  refused(one("F32", R"(["1"])", "[0,4]"), "a string in \"k\"");
  refused(one("F32", "[[1]]", "[0,4]"), "an array in \"k\"");
  refused(one("F32", "[1]", "[0]"), "has 1 data_offsets, not 2");
  refused(one("F32", "[1]", "[]"), "has 0 data_offsets, not 2");
  refused(one("F32", "[1]", "[0,4,4]"), "has more than 2 data_offsets");
  refused(one("F32", "[1]", "[-4,4]"), "the negative number -4");
  std::string const k = R"("k":)" + entry("F32", "[1]", "[0,4]");
  refused("{" + k + "," + k + "}", "\"k\" is there twice");
  refused(R"({"k":)" + entry("F32", "[1]", "[0,4]") + R"(,"\u006b":{}})", "\"k\" is there twice");
  refused("{" + k + ",}", "not valid JSON");
  refused(R"({"__metadata__":[]})", "an array in \"__metadata__\"");
  refused(R"({"__metadata__":{"a":1}})", "a number in \"__metadata__\"");
  refused(R"({"__metadata__":{"a":{}}})", "an object in \"__metadata__\"");
  refused(R"({"__metadata__":{"a":null}})", "null in \"__metadata__\"");
  refused(R"({"__metadata__":{"a":"1","a":"1"}})", "__metadata__ has \"a\" twice");
  refused(R"({"__metadata__":{},"__metadata__":{}})", "\"__metadata__\" is there twice");
  refused("{\"k\xFF\":{}}", "not valid JSON");
  refused("{\"k\xC0\xAF\":{}}", "not valid JSON");
  refused("{\"k\xED\xA0\x80\":{}}", "not valid JSON");
  refused(R"({"\ud800":{}})", "not valid JSON");
  refused("{\"k\n\":{}}", "not valid JSON");
  refused("{\"\\u001b[31m\\n\":1}", "a number in \"\\x1b[31m\\n\" is out of place");
  std::string ones = "[1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  refused(one("F32", ones + "]", "[0,4]"), "more than 32 dimensions");
}

TEST_CASE("deeply nested JSON is refused at once") {
  for (std::string const open : {"[", R"({"a":)"}) {
    std::string deep;
    for (int i = 0; i < 100'000; ++i) deep += open;
    for (std::string const& header :
         {R"({"k":)" + deep, R"({"k":{"shape":)" + deep, R"({"__metadata__":{"k":)" + deep,
          R"({"k":{"dtype":)" + deep, "{" + deep}) {
      std::string const file = file_with(header);
      allocation_watch const watch;
      CHECK(!error_of(parse_safetensors, file).empty());
      CHECK(watch.bytes() < file.size() + 65536);  // one copy of the file is the test's
    }
  }
}

TEST_CASE("the shipped sample of keys and values is read") {
  auto const [file, dump] = open_safetensors(KVARTS_EXAMPLE_DATA "/sample.safetensors");
  CHECK(dump.metadata.at("rope") == "half-split");
  REQUIRE(dump.tensors.size() == 6);
  CHECK(dump.tensors.at("layers.12.k").shape == std::vector<std::int64_t>{768, 2, 64});
  CHECK(dump.tensors.at("layers.0.q").shape == std::vector<std::int64_t>{128, 14, 64});
  CHECK(dump.tensors.at("layers.0.v").dtype == file_dtype::f16);
}

}  // namespace
