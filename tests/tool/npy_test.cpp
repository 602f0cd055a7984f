// SPDX-License-Identifier: Apache-2.0
#include "npy.hpp"

#include "support/allocation_watch.hpp"
#include "support/byte_strings.hpp"
#include "support/catch.hpp"
#include "support/tool_faults.hpp"

#include <kvarts/float16.hpp>

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

std::string data(std::string const& name) {
  return std::string(KVARTS_TEST_DATA "/npy/") + name + ".npy";
}

std::string contents(std::string const& path) { return text_of(mapped_file(path).bytes()); }

/// A version 1 file with this header, whatever it says.
std::string file_with(std::string header, std::size_t data_bytes = 0) {
  header += '\n';
  return "\x93NUMPY" + std::string("\1\0", 2) + number(static_cast<std::uint16_t>(header.size())) +
         header + std::string(data_bytes, '\0');
}

std::string refusal(std::string const& header) { return error_of(parse_npy, file_with(header)); }

template <class T>
std::vector<double> values_as(tensor const& t) {
  std::vector<double> values;
  for (std::size_t at = 0; at < t.bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, &t.bytes[at], sizeof(T));
    values.push_back(static_cast<double>(value));
  }
  return values;
}

/// Checks an array of shape [3, 5] that counts up from `low`.
template <class T>
void check_counting(std::string const& name, file_dtype type, double low) {
  INFO(name);
  auto const [file, array] = open_npy(data(name));
  CHECK(array.dtype == type);
  CHECK(array.shape == std::vector<std::int64_t>{3, 5});
  std::vector<double> const values = values_as<T>(array);
  REQUIRE(values.size() == 15);
  for (std::size_t i = 0; i < 15; ++i) CHECK(values[i] == low + static_cast<double>(i));
}

TEST_CASE("arrays that NumPy wrote are read with their values") {
  check_counting<half>("f2", file_dtype::f16, -5);
  check_counting<float>("f4", file_dtype::f32, -5);
  check_counting<double>("f8", file_dtype::f64, -5);
  check_counting<std::int8_t>("i1", file_dtype::i8, -5);
  check_counting<std::int16_t>("i2", file_dtype::i16, -5);
  check_counting<std::int32_t>("i4", file_dtype::i32, -5);
  check_counting<std::int64_t>("i8", file_dtype::i64, -5);
  check_counting<std::uint8_t>("u1", file_dtype::u8, 0);
  check_counting<std::uint16_t>("u2", file_dtype::u16, 0);
  check_counting<std::uint32_t>("u4", file_dtype::u32, 0);
  check_counting<std::uint64_t>("u8", file_dtype::u64, 0);
}

TEST_CASE("arrays of any rank and every version that NumPy wrote are read") {
  auto const shape = [](std::string const& name) { return open_npy(data(name)).contents.shape; };
  using extents = std::vector<std::int64_t>;
  CHECK(shape("bool") == extents{1, 3});
  CHECK(open_npy(data("bool")).contents.dtype == file_dtype::boolean);
  CHECK(shape("scalar") == extents{});
  auto const scalar = open_npy(data("scalar"));
  CHECK(values_as<float>(scalar.contents) == std::vector<double>{2.5});
  CHECK(shape("one_axis") == extents{7});
  CHECK(shape("four_axes") == extents{2, 1, 3, 4});
  CHECK(shape("empty") == extents{0, 4});
  CHECK(open_npy(data("empty")).contents.bytes.empty());
  for (char const* const name : {"version2", "version3"}) {
    auto const array = open_npy(data(name));
    CHECK(array.contents.shape == extents{2, 3});
    CHECK(values_as<float>(array.contents) == std::vector<double>{0, 1, 2, 3, 4, 5});
  }
}

TEST_CASE("arrays that NumPy wrote but kvarts does not read are refused by name") {
  auto const refused = [](std::string const& name, std::string const& why) {
    std::string const sentence = sentence_of([&] { open_npy(data(name)); });
    CHECK_THAT(sentence, ContainsSubstring(name + ".npy: "));
    CHECK_THAT(sentence, ContainsSubstring(why));
  };
  refused("refused_fortran", "Fortran order is not supported");
  refused("refused_big_endian", "big-endian type \">f4\" is not supported");
  refused("refused_complex", "type \"<c8\" is not supported");
  refused("refused_text", "type \"<U5\" is not supported");
  refused("refused_structured", "structured arrays are not supported");
  refused("refused_object", "type \"|O\" is not supported");
}

TEST_CASE("a prologue is the one that NumPy writes") {
  for (char const* const name : {"f2", "u8", "bool", "scalar", "one_axis", "four_axes", "empty"}) {
    INFO(name);
    auto const [file, array] = open_npy(data(name));
    CHECK(npy_prologue(array.dtype, array.shape, name) + text_of(array.bytes) ==
          contents(data(name)));
  }
  CHECK_THAT(sentence_of([] { npy_prologue(file_dtype::bf16, {}, "a.npy"); }),
             ContainsSubstring("a.npy: NumPy has no type BF16"));
}

TEST_CASE("arrays come back as they were written") {
  scratch_folder const folder;
  std::vector<std::uint16_t> const values = {1, 2, 3, 0x7F80, 5, 65535};
  tensor const written{file_dtype::u16, {3, 1, 2}, std::as_bytes(std::span(values))};
  write_npy(folder / "a.npy", written);
  auto const [file, read] = open_npy(folder / "a.npy");
  CHECK(read.dtype == written.dtype);
  CHECK(read.shape == written.shape);
  CHECK(text_of(read.bytes) == text_of(written.bytes));
  CHECK(folder.files() == 1);
  CHECK_THAT(sentence_of([&] {
               write_npy(folder / "b.npy", {file_dtype::u16, {7}, written.bytes});
             }),
             ContainsSubstring("b.npy: U16 of shape [7] takes 14 bytes, but there are 12"));
  CHECK(folder.files() == 1);
}

TEST_CASE("an array cut or extended anywhere is an error") {
  for (char const* const name : {"f2", "version2", "version3", "empty"}) {
    std::string const file = contents(data(name));
    for (std::size_t size = 0; size < file.size(); ++size) {
      INFO(name << " cut to " << size);
      REQUIRE(!error_of(parse_npy, file.substr(0, size)).empty());
    }
    CHECK_THAT(error_of(parse_npy, file + "x"), ContainsSubstring("bytes, but there are"));
  }
}

TEST_CASE("no flipped byte of a header crashes the reader") {
  std::string const file = contents(data("f4"));
  for (std::size_t i = 0; i < 128; ++i) {
    for (int flip = 1; flip < 256; ++flip) {
      std::string damaged = file;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      error_of(parse_npy, damaged);
    }
  }
}

TEST_CASE("the header's text may be laid out freely") {
  auto const accepted = [](std::string const& header, std::size_t bytes) {
    return error_of(parse_npy, file_with(header, bytes)) == "";
  };
  CHECK(accepted("{'descr':'<f4','fortran_order':False,'shape':(2,3)}", 24));
  CHECK(accepted("{\"shape\": (2, 3,), \"fortran_order\": False, \"descr\": \"<f4\", }", 24));
  CHECK(accepted("  { 'shape' : ( ) , 'descr' : '<f8' , 'fortran_order' : False }    \n ", 8));
}

TEST_CASE("every malformed header is refused by name") {
  std::string const rest = "'fortran_order': False, 'shape': (1,), }";
  std::string const with_shape = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  CHECK_THAT(refusal(""), ContainsSubstring("expected '{'"));
  CHECK_THAT(refusal("{}"), ContainsSubstring("lacks 'descr'"));
  CHECK_THAT(refusal("{'descr': '<f4'}"), ContainsSubstring("lacks 'fortran_order'"));
  CHECK_THAT(refusal("{'descr': '<f4', 'fortran_order': False}"),
             ContainsSubstring("lacks 'shape'"));
  CHECK_THAT(refusal("{'descr': '<f4', 'descr': '<f4', " + rest),
             ContainsSubstring("'descr' twice"));
  CHECK_THAT(refusal("{'descr': '<f4', 'fortran_order': False, " + rest),
             ContainsSubstring("'fortran_order' twice"));
  CHECK_THAT(refusal(with_shape + "(1,), 'shape': (1,)}"), ContainsSubstring("'shape' twice"));
  CHECK_THAT(refusal("{'descr': '<f4', 'order': 1, " + rest),
             ContainsSubstring("unknown key \"order\""));
  CHECK_THAT(refusal("{'a\x1b[31m\n': 1}"), ContainsSubstring("unknown key \"a\\x1b[31m\\n\""));
  CHECK_THAT(refusal("{'" + std::string(500, 'x') + "': 1}"),
             ContainsSubstring("\"" + std::string(80, 'x') + "\"..."));
  CHECK_THAT(refusal("{'descr': '<f4' " + rest), ContainsSubstring("expected ',' or '}'"));
  CHECK_THAT(refusal("{'descr' '<f4'}"), ContainsSubstring("expected ':'"));
  CHECK_THAT(refusal("{'descr': '<f4}"), ContainsSubstring("expected a type name"));
  CHECK_THAT(refusal("{'descr': 4, " + rest), ContainsSubstring("expected a type name"));
  CHECK_THAT(refusal("{'descr': '<f4', 'fortran_order': 0, 'shape': (1,)}"),
             ContainsSubstring("expected True or False"));
  CHECK_THAT(refusal("{'descr': '<V2', " + rest), ContainsSubstring("type \"<V2\""));
  CHECK_THAT(refusal("{'descr': '', " + rest), ContainsSubstring("type \"\""));
  CHECK_THAT(refusal(with_shape + "(1,)} {"), ContainsSubstring("goes on after its '}'"));
  CHECK_THAT(refusal(with_shape + "(1,)}" + std::string(1, '\0')), ContainsSubstring("goes on"));
  CHECK_THAT(refusal(with_shape + "1}"), ContainsSubstring("expected '(' after 'shape'"));
  CHECK_THAT(refusal(with_shape + "[1]}"), ContainsSubstring("expected '(' after 'shape'"));
  CHECK_THAT(refusal(with_shape + "(1)}"), ContainsSubstring("not a tuple"));
  CHECK_THAT(refusal(with_shape + "(1 2)}"), ContainsSubstring("expected ',' or ')'"));
  CHECK_THAT(refusal(with_shape + "(1,,2)}"), ContainsSubstring("expected a number"));
  CHECK_THAT(refusal(with_shape + "(,)}"), ContainsSubstring("expected a number"));
  CHECK_THAT(refusal(with_shape + "(1.5, 2)}"), ContainsSubstring("expected ',' or ')'"));
  CHECK_THAT(refusal(with_shape + std::string(60000, '(')), ContainsSubstring("expected a number"));
}

TEST_CASE("absurd shapes are refused without allocating") {
  std::string const with_shape = "{'descr': '<f4', 'fortran_order': False, 'shape': ";
  struct lie {
    std::string shape, sentence;
  };
  std::vector<lie> const lies = {
      {"(-1,)", "a dimension is -1"},
      {"(9223372036854775808,)", "does not fit 63 bits"},
      {"(99999999999999999999999999999999,)", "does not fit 63 bits"},
      {"(-9223372036854775808,)", "a dimension is -9223372036854775808"},
      {"(9223372036854775807,)", "shape [9223372036854775807] is too large"},
      {"(4294967296, 4294967296)", "is too large"},
      {"(2305843009213693952,)", "is too large"},
      {"(0, 9223372036854775807, 4)", "is too large"},
      {"(4611686018427387904, 4, 0)", "is too large"},
      {"(2305843009213693951,)", "takes 9223372036854775804 bytes, but there are 0"},
      {"(1000000, 1000000)", "takes 4000000000000 bytes, but there are 0"},
      {"(" +
           [] {
             std::string ones;
             for (int i = 0; i < 33; ++i) ones += "1,";
             return ones;
           }() +
           ")",
       "more than 32 dimensions"},
  };
  for (lie const& l : lies) {
    std::string const file = file_with(with_shape + l.shape + "}");
    INFO(l.shape);
    allocation_watch const watch;
    std::string const sentence = error_of(parse_npy, file);
    std::size_t const largest = watch.largest();
    CHECK_THAT(sentence, ContainsSubstring(l.sentence));
    CHECK(largest < 4096);
  }
}

TEST_CASE("lengths and versions that lie are refused") {
  std::string const text = "{'descr': '|u1', 'fortran_order': False, 'shape': (1,), }";
  auto const versioned = [&](char major, char minor, std::string const& length) {
    return error_of(parse_npy, "\x93NUMPY" + std::string{major, minor} + length + text + "x");
  };
  std::string const right = number(static_cast<std::uint32_t>(text.size()));
  CHECK(versioned(2, 0, right) == "");
  CHECK_THAT(versioned(2, 0, number(0xFFFFFFFFu)), ContainsSubstring("4294967295"));
  CHECK_THAT(versioned(3, 0, number(0x80000000u)), ContainsSubstring("cut inside the header"));
  CHECK_THAT(versioned(1, 0, number(std::uint16_t{65535})), ContainsSubstring("65535"));
  CHECK_THAT(versioned(0, 0, right), ContainsSubstring("version 0.0"));
  CHECK_THAT(versioned(4, 0, right), ContainsSubstring("version 4.0"));
  CHECK_THAT(versioned(1, 1, right), ContainsSubstring("version 1.1"));
  CHECK_THAT(versioned('\xFF', 0, right), ContainsSubstring("version 255.0"));
  CHECK_THAT(error_of(parse_npy, "PK\3\4 an archive of arrays"), ContainsSubstring("not a .npy"));
}

}  // namespace
