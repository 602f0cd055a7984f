// SPDX-License-Identifier: Apache-2.0
// Whatever is wrong with options or files of `kvarts` is one sentence that names it, exit code 2 or
// 1, and the old output stays.
#include "kvt_file.hpp"
#include "safetensors.hpp"
#include "support/catch.hpp"
#include "support/program.hpp"
#include "transform_file.hpp"

#include <cmath>
#include <string>
#include <vector>

namespace {

using namespace kvarts;
using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

/// A folder with inputs, and an old output that must survive.
struct workshop {
  scratch_folder folder;
  std::string out = folder / "out";

  workshop() {
    array("in.npy", file_dtype::f32, {4, 2, 64});
    write_file(out, "old");
  }

  void array(std::string const& name, file_dtype type, std::vector<std::int64_t> shape) const {
    std::vector<std::byte> const zeros(static_cast<std::size_t>(*byte_count(type, shape)));
    write_array(folder / name, type, std::move(shape), zeros);
  }

  /// The sentence of a failing run, after which the output is the old one and nothing was added.
  std::string fails(int exit_code, std::vector<std::string> const& arguments) const {
    std::size_t const files = folder.files();
    std::string const sentence = run_badly(exit_code, arguments);
    CHECK(file_text(out) == "old");
    CHECK(folder.files() == files);
    return sentence;
  }

  std::string encode_fails(int exit_code, std::string const& in,
                           std::vector<std::string> const& more) const {
    std::vector<std::string> arguments = {"encode", folder / in, out};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return fails(exit_code, arguments);
  }
};

TEST_CASE("options of encode that make no sense are bad usage") {
  workshop const w;
  auto const with = [&](std::vector<std::string> const& more) {
    return w.encode_fails(2, "in.npy", more);
  };
  CHECK_THAT(with({}), ContainsSubstring("--codec is required"));
  CHECK_THAT(with({"--codec", "int8_haed"}), ContainsSubstring("did you mean int8_head?"));
  CHECK_THAT(with({"--codec", "symmetric3"}), ContainsSubstring("symmetric3_narrow"));
  CHECK_THAT(with({"--codec", "nothing_like_it"}), ContainsSubstring("kvarts codecs"));
  CHECK_THAT(with({"--codec", ""}), ContainsSubstring("unknown codec \"\""));
  CHECK_THAT(with({"--codec", "affine2", "--along", "row"}), ContainsSubstring("--along"));
  CHECK_THAT(with({"--codec", "affine2", "--group", "0"}), ContainsSubstring("--group"));
  CHECK_THAT(with({"--codec", "affine2", "--group", "1025"}), ContainsSubstring("1 to 1024"));
  CHECK_THAT(with({"--codec", "affine2", "--align", "96"}), ContainsSubstring("not 96"));
  CHECK_THAT(with({"--codec", "affine2", "--align", "0"}), ContainsSubstring("not 0"));
  CHECK_THAT(with({"--codec", "affine2", "--align", "-128"}), ContainsSubstring("--align"));
  CHECK_THAT(with({"--codec", "affine2", "--dtype", "f8"}), ContainsSubstring("--dtype"));
  CHECK_THAT(with({"--codec", "f16", "--parts", w.folder / "p"}), ContainsSubstring("--parts"));
  CHECK_THAT(with({"--codec", "affine2", "--rotate", "--transform", "t.safetensors::0"}),
             ContainsSubstring("excludes"));
  for (char const* transform : {"t.safetensors", "t.safetensors::", "t.safetensors::layers.0",
                                "t.safetensors::-1", "t.safetensors::99999999999", "::0"}) {
    CHECK_THAT(with({"--codec", "affine2", "--transform", transform}),
               ContainsSubstring("FILE.safetensors::LAYER"));
  }
}

TEST_CASE("inputs of encode that are no rows are bad data") {
  workshop const w;
  auto const with = [&](std::string const& in, std::vector<std::string> more = {}) {
    more.insert(more.end(), {"--codec", "affine2"});
    return w.encode_fails(1, in, more);
  };
  CHECK_THAT(with("none.npy"), ContainsSubstring("none.npy: cannot open"));
  write_file(w.folder / "text", "no array at all");
  CHECK_THAT(with("text"), ContainsSubstring("text: "));
  w.array("x.npy", file_dtype::f32, {64});
  CHECK_THAT(with("x.npy"), ContainsSubstring("shape [64] is neither"));
  w.array("x.npy", file_dtype::f32, {1, 2, 3, 4});
  CHECK_THAT(with("x.npy"), ContainsSubstring("shape [1, 2, 3, 4] is neither"));
  w.array("x.npy", file_dtype::f32, {2, 1025});
  CHECK_THAT(with("x.npy"), ContainsSubstring("head_dim is 1025, outside 1..1024"));
  w.array("x.npy", file_dtype::f32, {2, 0});
  CHECK_THAT(with("x.npy"), ContainsSubstring("head_dim is 0"));
  w.array("x.npy", file_dtype::f32, {0, 3'000'000'000, 4});
  CHECK_THAT(with("x.npy"), ContainsSubstring("heads is 3000000000"));
  w.array("x.npy", file_dtype::f64, {2, 64});
  CHECK_THAT(with("x.npy"), ContainsSubstring("elements are F64, not F16, BF16 or F32"));
  w.array("x.npy", file_dtype::u16, {2, 64});
  CHECK_THAT(with("x.npy"), ContainsSubstring("--dtype bf16"));
  CHECK_THAT(with("x.npy", {"--dtype", "f16"}), ContainsSubstring("elements are U16"));
  CHECK_THAT(with("in.npy", {"--dtype", "f16"}), ContainsSubstring("are f32, not f16"));
  CHECK_THAT(with("in.npy", {"--dtype", "bf16"}), ContainsSubstring("are f32, not bf16"));
}

TEST_CASE("tensors of a .safetensors file are named, or refused by name") {
  workshop const w;
  std::vector<std::uint16_t> const zeros(2 * 64);
  safetensors contents;
  contents.tensors["layers.0.k"] = {file_dtype::bf16, {2, 64}, std::as_bytes(std::span(zeros))};
  write_safetensors(w.folder / "dump.safetensors", contents);
  std::vector<std::string> const options = {"--codec", "affine2"};
  CHECK_THAT(w.encode_fails(2, "dump.safetensors", options),
             ContainsSubstring("append the name of a tensor"));
  CHECK_THAT(w.encode_fails(1, "dump.safetensors::layers.0.v", options),
             ContainsSubstring("did you mean layers.0.k?"));
  CHECK_THAT(w.encode_fails(1, "dump.safetensors::weights", options),
             ContainsSubstring("the first of the file is \"layers.0.k\""));
  CHECK_THAT(
      w.encode_fails(1, "dump.safetensors::layers.0.k", {"--codec", "affine2", "--dtype", "f16"}),
      ContainsSubstring("are bf16, not f16"));
  run_well(
      {"encode", (w.folder / "dump.safetensors") + "::layers.0.k", w.out, "--codec", "affine2"});
}

TEST_CASE("transform files that do not fit are refused, naming the layer") {
  workshop const w;
  std::string const path = w.folder / "t.safetensors";
  std::vector<float> const good(2 * 64, 1.0f);
  safetensors contents;
  auto const with = [&](std::string const& layer = "3") {
    write_safetensors(path, contents);
    return w.encode_fails(1, "in.npy", {"--codec", "midrise4", "--transform", path + "::" + layer});
  };
  auto const part = [&](std::string const& name, std::vector<std::int64_t> shape,
                        std::vector<float> const& values) {
    contents.tensors[name] = {file_dtype::f32, std::move(shape), std::as_bytes(std::span(values))};
  };
  write_file(path, "no tensors");
  CHECK_THAT(w.encode_fails(1, "in.npy", {"--codec", "midrise4", "--transform", path + "::3"}),
             ContainsSubstring(path));
  part("layers.3.k", {2, 64}, good);
  CHECK_THAT(with(), ContainsSubstring("not a transform file"));
  part("layers.3.center", {2, 64}, good);
  CHECK_THAT(with("4"), ContainsSubstring("no layer 4; there are 3"));
  part("layers.3.norm", {1, 128}, good);
  CHECK_THAT(with(), ContainsSubstring("layer 3: the norm has shape [1, 128]"));
  part("layers.3.norm", {128}, good);
  CHECK_THAT(with(), ContainsSubstring("layer 3: the norm has shape [128]"));
  contents.tensors["layers.3.norm"] = {file_dtype::i32, {2, 64}, std::as_bytes(std::span(good))};
  CHECK_THAT(with(), ContainsSubstring("layer 3: the norm is I32, not F32"));
  for (float const bad : {0.0f, -1.0f, INFINITY, std::nanf("")}) {
    auto values = good;
    values[64 + 5] = bad;
    part("layers.3.norm", {2, 64}, values);
    CHECK_THAT(with(), ContainsSubstring("layer 3: the norm of head 1, channel 5 is not"));
  }
  auto center = good;
  center[7] = std::nanf("");
  part("layers.3.norm", {2, 64}, good);
  part("layers.3.center", {2, 64}, center);
  CHECK_THAT(with(), ContainsSubstring("layer 3: the center of head 0, channel 7 is not finite"));
  part("layers.3.norm", {4, 32}, good);
  part("layers.3.center", {4, 32}, good);
  CHECK_THAT(with(), ContainsSubstring("has 4 KV heads where the cache has 2"));
  part("layers.3.norm", {2, 64}, good);
  part("layers.3.center", {2, 64}, good);
  contents.metadata["rotation_rounds"] = "5";
  CHECK_THAT(with(), ContainsSubstring("rotation_rounds is \"5\", not a number from 0 to 4"));
  contents.metadata["rotation_rounds"] = "one";
  CHECK_THAT(with(), ContainsSubstring("rotation_rounds is \"one\""));
  contents.metadata["rotation_rounds"] = "2";
  contents.metadata["rotation_seed"] = "-1";
  CHECK_THAT(with(), ContainsSubstring("rotation_seed is \"-1\""));
}

TEST_CASE("an output that cannot be written is bad data") {
  workshop const w;
  CHECK_THAT(
      w.fails(1, {"encode", w.folder / "in.npy", w.folder / "none/out", "--codec", "affine2"}),
      ContainsSubstring("none/out: cannot create the file"));
  CHECK_THAT(w.fails(1, {"encode", w.folder / "in.npy", w.folder / "", "--codec", "affine2"}),
             ContainsSubstring("directory"));
  CHECK_THAT(w.fails(1, {"encode", w.folder / "in.npy", w.out, "--codec", "affine2", "--parts",
                         w.folder / "none/p"}),
             ContainsSubstring("none/p.codes_u8.npy: cannot create the file"));
}

/// Readers of .kvt files: each with its other arguments in place.
std::vector<std::vector<std::string>> readers(workshop const& w, std::string const& kvt) {
  return {{"decode", kvt, w.out},
          {"gemv", "qk", kvt, w.folder / "q.npy", w.out},
          {"gemv", "pv", kvt, w.folder / "p.npy", w.out}};
}

TEST_CASE("damaged .kvt files are refused") {
  workshop const w;
  w.array("q.npy", file_dtype::f32, {2, 64});
  w.array("p.npy", file_dtype::f32, {2, 4});
  std::string const kvt = w.folder / "a.kvt";
  run_well({"encode", w.folder / "in.npy", kvt, "--codec", "midrise2", "--rotate"});
  std::string const good = file_text(kvt);
  for (std::size_t const size :
       {std::size_t{0}, std::size_t{255}, std::size_t{256}, good.size() - 1}) {
    write_file(kvt, std::string_view(good).substr(0, size));
    for (auto const& arguments : readers(w, kvt)) {
      CHECK_THAT(w.fails(1, arguments), ContainsSubstring("a.kvt: "));
    }
  }
  for (std::size_t const at :
       {std::size_t{0}, std::size_t{20}, std::size_t{70}, std::size_t{300}}) {
    std::string bad = good;
    bad[at] = static_cast<char>(bad[at] ^ 4);
    write_file(kvt, bad);
    CHECK_THAT(w.fails(1, {"decode", kvt, w.out}), ContainsSubstring("a.kvt: "));
  }
}

TEST_CASE(".kvt files that lie with right checksums are refused") {
  workshop const w;
  std::string const kvt = w.folder / "a.kvt";
  run_well({"encode", w.folder / "in.npy", kvt, "--codec", "affine2", "--along", "token"});
  auto const [file, good] = open_kvt(kvt);
  std::vector<std::byte> const big(1 << 20);
  auto const with = [&](auto change) {
    kvt_contents lie = good;
    change(lie);
    write_kvt(kvt, lie);
    return w.fails(1, {"decode", kvt, w.out});
  };
  CHECK_THAT(with([](auto& c) { c.header.set_codec_name("affine7"); }),
             ContainsSubstring("no codec \"affine7\""));
  CHECK_THAT(with([](auto& c) { c.header.set_codec_name("affine3"); }),
             ContainsSubstring("not those of codec affine3"));
  CHECK_THAT(with([](auto& c) { c.header.code_bits = 1; }), ContainsSubstring("not those of"));
  CHECK_THAT(with([](auto& c) { c.header.scale_type = kvt_scale_type::bf16; }),
             ContainsSubstring("not those of"));
  CHECK_THAT(with([](auto& c) { c.header.zero_points = 0; }), ContainsSubstring("not those of"));
  CHECK_THAT(with([](auto& c) {
               c.header.layout = kvt_layout::row_records;
               c.header.tile_tokens = 1;
             }),
             ContainsSubstring("row records cannot hold groups of tokens"));
  CHECK_THAT(with([](auto& c) { c.header.tile_tokens = 31; }),
             ContainsSubstring("31 tokens does not hold whole groups of 32 tokens"));
  CHECK_THAT(with([](auto& c) { c.header.tokens = 33; }), ContainsSubstring("the payload has"));
  CHECK_THAT(with([&](auto& c) { c.payload = big; }), ContainsSubstring("the payload has 1048576"));
  CHECK_THAT(with([](auto& c) { c.norm.assign(2 * 64, 0.0f); }),
             ContainsSubstring("the norm of head 0, channel 0"));
  CHECK_THAT(with([](auto& c) { c.center.assign(2 * 64, INFINITY); }),
             ContainsSubstring("the center of head 0, channel 0"));
  CHECK_THAT(with([](auto& c) {
               c.header.transform = kvt_rotation;
               c.header.rotation_rounds = 9;
             }),
             ContainsSubstring("0 to 4 rounds, not 9"));
}

TEST_CASE("vectors that do not fit are refused") {
  workshop const w;
  std::string const kvt = w.folder / "a.kvt";
  run_well({"encode", w.folder / "in.npy", kvt, "--codec", "midrise4"});
  auto const with = [&](std::string const& product, file_dtype type,
                        std::vector<std::int64_t> shape) {
    w.array("x.npy", type, std::move(shape));
    return w.fails(1, {"gemv", product, kvt, w.folder / "x.npy", w.out});
  };
  CHECK_THAT(with("qk", file_dtype::f32, {2, 63}), ContainsSubstring("shape [2, 63]"));
  CHECK_THAT(with("qk", file_dtype::f32, {1, 2, 64}), ContainsSubstring("shape [1, 2, 64]"));
  CHECK_THAT(with("qk", file_dtype::f32, {}), ContainsSubstring("shape []"));
  CHECK_THAT(with("qk", file_dtype::f32, {64}), ContainsSubstring("1 query heads"));
  CHECK_THAT(with("qk", file_dtype::f32, {3, 64}), ContainsSubstring("multiple of the 2 KV heads"));
  CHECK_THAT(with("qk", file_dtype::f32, {0, 64}), ContainsSubstring("0 query heads"));
  CHECK_THAT(with("qk", file_dtype::i32, {2, 64}), ContainsSubstring("elements are I32"));
  CHECK_THAT(with("pv", file_dtype::f32, {2, 64}), ContainsSubstring("[query_heads, 4]"));
  CHECK_THAT(with("pv", file_dtype::f32, {2, 3}), ContainsSubstring("shape [2, 3]"));
  std::vector<double> values(2 * 64);
  values[70] = 1e39;  // beyond float32
  write_array(w.folder / "x.npy", file_dtype::f64, {2, 64}, values);
  CHECK_THAT(w.fails(1, {"gemv", "qk", kvt, w.folder / "x.npy", w.out}),
             ContainsSubstring("element 70 is not a finite float32"));
  CHECK_THAT(w.fails(2, {"gemv", "vp", kvt, w.folder / "x.npy", w.out}), ContainsSubstring("qk"));
  CHECK_THAT(w.fails(2, {"gemv", "qk", kvt, w.folder / "x.npy"}), ContainsSubstring("OUT"));
  CHECK_THAT(w.fails(2, {"decode", kvt, w.out, "--dtype", "f8"}), ContainsSubstring("--dtype"));
}

}  // namespace
