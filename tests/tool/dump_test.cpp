// SPDX-License-Identifier: Apache-2.0
#include "dump.hpp"

#include "eval_calibration.hpp"
#include "support/catch.hpp"
#include "support/dump_file.hpp"
#include "support/tool_faults.hpp"

#include <kvarts/bits.hpp>

#include <limits>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

constexpr dump_file::sizes usual{40, 5, 6, 2, 8};

/// The sentence that reading ends with, "" if none; it must begin with the file's name.
std::string refusal(dump_file const& file, dump_needs needs = {}) {
  std::string const sentence = sentence_of([&] { read_dump(file.contents, "a.file", needs); });
  if (!sentence.empty()) CHECK(sentence.starts_with("a.file: "));
  return sentence;
}

std::string calibration_refusal(dump_file const& calibration, dump_file const& file) {
  dump const of = read_dump(file.contents, "a.file");
  std::string const sentence =
      sentence_of([&] { calibrate_from(calibration.contents, "b.file", of); });
  if (!sentence.empty()) CHECK(sentence.starts_with("b.file: "));
  return sentence;
}

}  // namespace

TEST_CASE("a dump has views of its tensors, layers in numeric order") {
  dump_file file(usual, {10, 2, 0}, 1);
  std::vector<float> const& keys = file.add("layers.10.k", {40, 2, 8});
  file.contents.metadata = {{"model", "a model"}, {"text", "a text"}, {"rope", "half-split"},
                            {"tokens", "40"},     {"queries", "5"},   {"other", "anything"}};
  file.add("embedding", {7});

  dump const d = read_dump(file.contents, "a.file");
  CHECK(d.name == "a.file");
  CHECK(d.model == "a model");
  CHECK(d.text == "a text");
  CHECK(d.rope == "half-split");
  CHECK(d.tokens == 40);
  CHECK(d.queries == 5);
  CHECK(d.prefill() == 35);
  CHECK(d.kv_heads == 2);
  CHECK(d.q_heads == 6);
  CHECK(d.head_dim == 8);
  REQUIRE(d.layers.size() == 3);
  CHECK(d.layers[0].layer == 0);
  CHECK(d.layers[1].layer == 2);
  CHECK(d.layers[2].layer == 10);
  CHECK(load_unaligned<float>(d.layers[2].k.row(1, 3)) == keys[(3 * 2 + 1) * 8]);
  CHECK(d.layers[2].q->map.heads == 6);
  CHECK(d.layers[2].v->map.tokens == 40);
}

TEST_CASE("a dump without some tensors is read by those who do not need them") {
  dump_file file;
  file.add("layers.3.k", {40, 2, 8});
  CHECK(refusal(file) == "a.file: layers.3.q is missing");
  CHECK(refusal(file, {.queries = false}) == "a.file: layers.3.v is missing");
  dump const d = read_dump(file.contents, "a.file", {.queries = false, .values = false});
  CHECK(d.queries == 0);
  CHECK_FALSE(d.layers[0].q);
  CHECK_FALSE(d.layers[0].v);
}

TEST_CASE("what is missing or does not fit is named") {
  CHECK_THAT(refusal(dump_file{}), ContainsSubstring("no tensors layers.0.k"));

  dump_file no_layers;
  no_layers.add("layers.x.k", {4, 1, 8});
  no_layers.add("layers.-1.k", {4, 1, 8});
  no_layers.add("layers.99999999999.k", {4, 1, 8});
  no_layers.add("layers.0.kk", {4, 1, 8});
  CHECK_THAT(refusal(no_layers), ContainsSubstring("this is no dump"));

  dump_file file(usual, {0, 1}, 1);
  REQUIRE(refusal(file).empty());
  auto const refusal_with = [](std::string const& name, std::vector<std::int64_t> shape) {
    dump_file changed(usual, {0, 1}, 1);
    changed.add(name, std::move(shape));
    return refusal(changed);
  };
  CHECK_THAT(refusal_with("layers.2.v", {40, 2, 8}), ContainsSubstring("layers.2.k is missing"));
  CHECK(refusal_with("layers.1.k", {40, 8}) ==
        "a.file: layers.1.k has shape [40, 8], not [tokens, heads, head_dim]");
  CHECK_THAT(refusal_with("layers.1.k", {0, 2, 8}), ContainsSubstring("layers.1.k has no tokens"));
  CHECK_THAT(refusal_with("layers.1.q", {0, 2, 8}), ContainsSubstring("layers.1.q has no"));
  CHECK_THAT(refusal_with("layers.0.k", {40, 0, 8}), ContainsSubstring("heads is 0"));
  CHECK_THAT(refusal_with("layers.0.k", {40, 2, 0}), ContainsSubstring("head_dim is 0"));
  CHECK_THAT(refusal_with("layers.0.k", {4, 2, 1025}), ContainsSubstring("head_dim is 1025"));
  CHECK(refusal_with("layers.1.k", {41, 2, 8}) ==
        "a.file: layers.1.k has shape [41, 2, 8] where layers.0.k has [40, 2, 8]");
  CHECK(refusal_with("layers.1.v", {40, 2, 16}) ==
        "a.file: layers.1.v has shape [40, 2, 16] where layers.0.k has [40, 2, 8]");
  CHECK(refusal_with("layers.1.q", {4, 6, 8}) ==
        "a.file: layers.1.q has shape [4, 6, 8] where layers.0.q has [5, 6, 8]");
  CHECK(refusal_with("layers.1.q", {5, 7, 8}) ==
        "a.file: layers.1.q has 7 heads, no multiple of the 2 KV heads");
  CHECK(refusal_with("layers.1.q", {41, 6, 8}) ==
        "a.file: layers.1.q has 41 queries for only 40 tokens");
  CHECK(refusal_with("layers.1.q", {5, 6, 4}) ==
        "a.file: layers.1.q has head_dim 4 where layers.1.k has 8");
}

TEST_CASE("numbers that are not finite, other types and false metadata are refused") {
  for (float const bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    dump_file file(usual, {0}, 1);
    file.add("layers.0.v", {40, 2, 8})[(7 * 2 + 1) * 8 + 5] = bad;
    CHECK(refusal(file) == "a.file: layers.0.v has a NaN or an infinity in row 7 of head 1");
  }
  dump_file integers(usual, {0}, 1);
  integers.contents.tensors["layers.0.q"].dtype = file_dtype::i32;
  CHECK_THAT(refusal(integers), ContainsSubstring("layers.0.q: elements are I32"));

  dump_file file(usual, {0}, 1);
  file.contents.metadata["tokens"] = "41";
  CHECK(refusal(file) == "a.file: metadata says \"41\" tokens where the tensors have 40");
  file.contents.metadata["tokens"] = "40";
  file.contents.metadata["queries"] = "many";
  CHECK(refusal(file) == "a.file: metadata says \"many\" queries where the tensors have 5");
}

TEST_CASE("only some layers with queries is refused where none are needed, too") {
  dump_file file(usual, {0, 1}, 1);
  file.contents.tensors.erase("layers.1.q");
  CHECK(refusal(file) == "a.file: layers.1.q is missing");
  CHECK(refusal(file, {.queries = false, .values = false}) ==
        "a.file: only one of layers 0 and 1 has queries");
}

TEST_CASE("a calibration of another model, geometry or layers is refused") {
  dump_file file(usual, {0, 7}, 1);
  file.contents.metadata = {{"model", "one"}, {"rope", "half-split"}};

  dump_file calibration({50, 4, 6, 2, 8}, {0, 7, 9}, 2);
  CHECK(calibration_refusal(calibration, file).empty());
  calibration.contents.metadata = {{"model", "one"}, {"rope", "half-split"}};
  CHECK(calibration_refusal(calibration, file).empty());
  calibration.contents.metadata["rope"] = "interleaved pairs";
  CHECK_THAT(calibration_refusal(calibration, file), ContainsSubstring("interleaved pairs"));
  calibration.contents.metadata["model"] = "other";
  CHECK_THAT(calibration_refusal(calibration, file),
             ContainsSubstring("its model is \"other\"") && ContainsSubstring("is \"one\""));

  CHECK_THAT(calibration_refusal(dump_file({50, 4, 6, 2, 8}, {0}, 2), file),
             ContainsSubstring("no layer 7; there are 0"));
  CHECK_THAT(calibration_refusal(dump_file({50, 4, 6, 3, 8}, {0, 7}, 2), file),
             ContainsSubstring("the transform has 3 KV heads where the cache has 2"));
  CHECK_THAT(calibration_refusal(dump_file({50, 4, 6, 2, 4}, {0, 7}, 2), file),
             ContainsSubstring("head_dim 4 where the cache has 8"));
  CHECK_THAT(calibration_refusal(dump_file({32, 4, 6, 2, 8}, {0, 7}, 2), file),
             ContainsSubstring("32 tokens are too few"));
  CHECK_THAT(calibration_refusal(dump_file{}, file), ContainsSubstring("this is no dump"));

  dump_file transforms;
  transforms.add("layers.0.center", {2, 8});
  CHECK_THAT(calibration_refusal(transforms, file), ContainsSubstring("no layer 7; there are 0"));
  transforms.add("layers.7.center", {2, 16});
  CHECK_THAT(calibration_refusal(transforms, file),
             ContainsSubstring("layer 7") && ContainsSubstring("head_dim 16"));
}
