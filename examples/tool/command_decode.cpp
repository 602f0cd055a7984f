// SPDX-License-Identifier: Apache-2.0
// `kvarts decode`: a .kvt file back to rows in model space.
#include "coded_file.hpp"
#include "commands.hpp"
#include "npy.hpp"
#include "progress.hpp"
#include "tensor_input.hpp"
#include "tool_error.hpp"

#include <kvarts/tensor.hpp>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

namespace kvarts::tool {

namespace {

struct decode_options {
  std::string in, out;
  std::string dtype = "f32";
};

void decode_all(coded_file const& from, target_view rows, std::string const& name) {
  std::int64_t const tokens = from.header.tokens;
  std::int64_t const step = tokens_a_step(from.coded.map);
  progress bar("decoding", tokens);
  for (std::int64_t begin = 0; begin < tokens; begin += step) {
    token_range const range{begin, std::min(begin + step, tokens)};
    target_view some = rows;
    some.map.tokens = range.size();
    some.data = rows.row(0, begin);
    status const s = from.codec->decode(from.coded, some, range, from.transform.view());
    if (s != status::ok) {
      throw tool_error(fmt::format("{}: cannot decode: {}", name, to_string(s)));
    }
    bar.advance(range.size());
  }
}

void run(decode_options const& o) {
  check_outputs({o.out}, {o.in});
  coded_file const from = open_coded_file(o.in);
  kvt_header const& h = from.header;
  dtype const type = *element_type_named(o.dtype);
  layout const map = plan_tensor(type, h.heads, h.head_dim, h.tokens,
                                 contiguous(order::token_major, h.heads, h.head_dim, h.tokens));
  std::vector<std::byte> elements(static_cast<std::size_t>(map.size_bytes()));
  decode_all(from, {elements.data(), type, map, {}}, o.in);
  write_npy(o.out, {npy_type(type), {h.tokens, h.heads, h.head_dim}, elements});
}

}  // namespace

void add_decode(CLI::App& program) {
  auto const o = std::make_shared<decode_options>();
  CLI::App* const command =
      program.add_subcommand("decode", "Decode a .kvt file to [tokens, heads, head_dim]");
  command->add_option("IN", o->in, "A .kvt file")->type_name("FILE")->required();
  command->add_option("OUT", o->out, "The .npy file to write")->type_name("FILE")->required();
  command->add_option("--dtype", o->dtype, "Elements of OUT, rounded and saturated; bf16 is uint16")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"f32", "f16", "bf16"}))
      ->capture_default_str();
  command->footer("A transform of the file is taken back: OUT is comparable to what was encoded.");
  command->callback([o] { run(*o); });
}

}  // namespace kvarts::tool
