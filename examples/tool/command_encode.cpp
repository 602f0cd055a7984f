// SPDX-License-Identifier: Apache-2.0
// `kvarts encode`: rows of a tensor to a .kvt file.
#include "coded_file.hpp"
#include "coded_parts.hpp"
#include "commands.hpp"
#include "progress.hpp"
#include "tensor_input.hpp"
#include "tool_error.hpp"
#include "transform_file.hpp"
#include "unknown_name.hpp"

#include <kvarts/encode.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <memory>
#include <string>
#include <vector>

namespace kvarts::tool {

namespace {

struct encode_options {
  std::string in, out;
  std::string codec;
  std::string along = "channel";
  int group = 32;
  std::string transform;
  bool rotate = false;
  int align = 128;
  std::string dtype;
  bool raw = false;
  std::string parts;
};

codec_ops const& codec_named(encode_options const& o) {
  auto const* const found = find_codec(o.codec, o.along == "token" ? axis::token : axis::channel);
  if (found != nullptr) return *found;
  throw tool_error(unknown_name("codec", o.codec, codec_names(), "kvarts codecs lists them"), 2);
}

/// The transform of `--transform FILE::LAYER` or `--rotate`.
transform transform_for(encode_options const& o, source_view const& rows) {
  int const heads = rows.map.heads;
  int const head_dim = rows.map.head_dim;
  if (o.transform.empty()) return {heads, head_dim, {}, {}, {o.rotate ? 1 : 0, 1}};
  auto const at = split_file_part(o.transform);
  int layer = -1;
  if (at) {
    char const* const end = at->part.data() + at->part.size();
    auto const [rest, error] = std::from_chars(at->part.data(), end, layer);
    if (error != std::errc() || rest != end) layer = -1;
  }
  if (layer < 0) {
    throw tool_error("--transform takes FILE.safetensors::LAYER, a layer's number, not " +
                         in_quotes(o.transform),
                     2);
  }
  transform t = layer_of(read_transform_file(at->file), layer, at->file);
  if (problem const p = check(t, heads, head_dim)) {
    throw tool_error(fmt::format("{}: layer {}: {} ({})", at->file, layer, p.sentence(), o.in));
  }
  return t;
}

/// Everything of the header that is known before encoding, and the payload's layout.
layout plan(encode_options const& o, codec_ops const& codec, source_view const& rows,
            transform const& t, kvt_header& header) {
  codec.describe(header);
  bool const grouped = codec.info().grouped_along != axis::row;
  bool const tiled = codec.info().grouped_along == axis::token;
  header.layout = tiled ? kvt_layout::head_tiles : kvt_layout::row_records;
  header.group = grouped ? o.group : 0;
  header.tile_tokens = tiled ? 0 : 1;
  header.alignment = o.align;
  header.source = rows.type;
  header.heads = rows.map.heads;
  header.head_dim = rows.map.head_dim;
  header.tokens = rows.map.tokens;
  header.transform = t.rotate.rounds > 0 ? kvt_rotation : std::uint8_t{0};
  header.rotation_rounds = t.rotate.rounds;
  header.rotation_seed = t.rotate.rounds > 0 ? t.rotate.seed : 0;
  layout const map = payload_layout(codec, header, o.in);
  header.tile_tokens = map.tile_tokens;
  return map;
}

/// Encodes all rows, step by step; returns how many inputs were not finite.
std::int64_t encode_all(codec_ops const& codec, coded_target to, source_view rows,
                        transform const& t, std::string const& name) {
  std::int64_t const tokens = rows.map.tokens;
  std::int64_t const step = tokens_a_step(to.map);
  std::int64_t nonfinite = 0;
  progress bar("encoding", tokens);
  for (std::int64_t begin = 0; begin < tokens; begin += step) {
    token_range const range{begin, std::min(begin + step, tokens)};
    source_view some = rows;
    some.map.tokens = range.size();
    some.data = rows.row(0, begin);
    auto const result = codec.encode(to, some, range, t.view());
    if (result.code != status::ok) {
      throw tool_error(fmt::format("{}: cannot encode: {}", name, to_string(result.code)));
    }
    nonfinite += result.nonfinite;
    bar.advance(range.size());
  }
  return nonfinite;
}

void print_summary(encode_options const& o, kvt_header const& h, layout const& map,
                   std::size_t bytes_out, std::int64_t nonfinite) {
  std::int64_t const bytes_in = h.tokens * h.heads * h.head_dim * element_size(h.source);
  std::string const ratio = bytes_out == 0
                                ? ""
                                : fmt::format(", ratio {:.2f}", static_cast<double>(bytes_in) /
                                                                    static_cast<double>(bytes_out));
  std::string const odd =
      nonfinite == 0 ? "" : fmt::format(", {} non-finite inputs made finite", nonfinite);
  fmt::print("{}: {} tokens, {} heads, head_dim {}, {} at {:.3f} bits, {} bytes to {}{}{}\n", o.out,
             h.tokens, h.heads, h.head_dim, h.codec_name(), map.effective_bits(), bytes_in,
             bytes_out, ratio, odd);
}

/// The file of FILE::PART, or the name as it stands.
std::string file_of(std::string const& name) {
  auto const part = split_file_part(name);
  return part ? part->file : name;
}

void check_files(encode_options const& o) {
  std::vector<std::string> outputs{o.out};
  if (!o.parts.empty()) {
    for (char const* part : {"codes_u8", "scale_f16", "scale_bf16", "scale_f32", "zero_f16"}) {
      outputs.push_back(o.parts + "." + part + ".npy");
    }
  }
  check_outputs(outputs, {file_of(o.in), file_of(o.transform)});
}

void run(encode_options const& o) {
  codec_ops const& codec = codec_named(o);
  check_files(o);
  if (!is_power_of_two(o.align) || o.align > (1 << 20)) {
    throw tool_error(fmt::format("--align is a power of 2 up to 1048576, not {}", o.align), 2);
  }
  if (!o.parts.empty() && codec.info().plain) {
    throw tool_error("--parts needs a codec with codes; " + o.codec + " stores the numbers", 2);
  }
  tensor_input const input = open_tensor_input(o.in, element_type_named(o.dtype));
  transform const t = transform_for(o, input.rows);
  kvt_contents contents;
  layout const map = plan(o, codec, input.rows, t, contents.header);

  std::vector<std::byte> payload(static_cast<std::size_t>(map.size_bytes()));
  std::int64_t const nonfinite = encode_all(codec, {payload.data(), map}, input.rows, t, o.in);
  if (!o.parts.empty()) {
    write_parts(o.parts, codec, contents.header, {payload.data(), map}, input.heads_axis);
  }
  if (o.raw) {
    write_file(o.out, {payload});
  } else {
    contents.center = t.center;
    contents.norm = t.norm;
    contents.payload = payload;
    write_kvt(o.out, contents);
  }
  print_summary(o, contents.header, map, payload.size(), nonfinite);
}

void add_coding_options(CLI::App& command, encode_options& o) {
  command.add_option("--codec", o.codec, "A codec of those that kvarts codecs lists")
      ->type_name("NAME")
      ->required();
  command.add_option("--along", o.along, "Axis of the groups; row codecs ignore it")
      ->type_name("AXIS")
      ->check(CLI::IsMember({"channel", "token"}))
      ->capture_default_str();
  command.add_option("--group", o.group, "Channels or tokens of a group; row codecs ignore it")
      ->type_name("N")
      ->check(CLI::Range(1, max_head_dim))
      ->capture_default_str();
  auto* const transform_option =
      command
          .add_option("--transform", o.transform,
                      "Apply center, norm and rotation of a layer of a transform file (keys)")
          ->type_name("FILE.safetensors::LAYER");
  command.add_flag("--rotate", o.rotate, "Rotate rows, one round of seed 1 (values)")
      ->excludes(transform_option);
  command
      .add_option("--align", o.align, "Bytes, a power of 2, that records or tiles are padded to")
      ->type_name("BYTES")
      ->capture_default_str();
}

void add_file_options(CLI::App& command, encode_options& o) {
  command
      .add_option("IN", o.in,
                  "FILE.npy or FILE.safetensors::TENSOR, [tokens, heads, head_dim] or "
                  "[tokens, head_dim]")
      ->type_name("FILE")
      ->required();
  command.add_option("OUT", o.out, "The .kvt file to write")->type_name("FILE")->required();
  command
      .add_option("--dtype", o.dtype,
                  "Elements of IN, by default what it says; bf16 is uint16 in .npy files")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f16", "bf16", "f32"}));
  command.add_flag("--raw", o.raw, "Write the bare records or tiles, without a header");
  command
      .add_option("--parts", o.parts,
                  "Write PREFIX.codes_u8.npy, .scale_f16.npy (or .scale_bf16.npy, "
                  ".scale_f32.npy) and .zero_f16.npy too")
      ->type_name("PREFIX");
}

}  // namespace

void add_encode(CLI::App& program) {
  auto const o = std::make_shared<encode_options>();
  CLI::App* const command = program.add_subcommand("encode", "Encode keys or values of one layer");
  add_coding_options(*command, *o);
  add_file_options(*command, *o);
  command->footer(
      "Codecs grouped along tokens are stored as head tiles, all others as row records: a token's "
      "codes of all heads, then the scales, the zero-points and zeros up to the alignment.\n"
      "Parts: codes are [tokens, heads, head_dim]; scales and zero-points [tokens, heads, groups] "
      "along channels, [groups, heads, head_dim] along tokens, [tokens, heads] of row codecs; "
      "without the axis of heads where IN has none.");
  command->callback([o] { run(*o); });
}

}  // namespace kvarts::tool
