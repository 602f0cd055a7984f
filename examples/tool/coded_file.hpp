// SPDX-License-Identifier: Apache-2.0
/// @file
/// .kvt files together with the codec that they name: what `decode` and `gemv` work on, and
/// `encode` makes.
#pragma once

#include "codec_ops.hpp"
#include "kvt_file.hpp"

#include <kvarts/transform.hpp>

#include <string>

namespace kvarts::tool {

/// A .kvt file that its codec can read: the header fits the codec, the payload has the bytes of the
/// layout, and the transform is finite and positive.
struct coded_file {
  mapped_file file;
  kvt_header header;
  codec_ops const* codec = nullptr;
  kvarts::transform transform;
  coded_source coded;  ///< points into `file`
};

/// Opens `path`; throws `tool_error` that begins with it.
coded_file open_coded_file(std::string const& path);

/// The layout of a header's payload; throws `tool_error` beginning with `name` for extents that the
/// library refuses.
layout payload_layout(codec_ops const& codec, kvt_header const& header, std::string const& name);

/// How many tokens to code at a time, so that a progress bar moves: whole tiles, about a million
/// numbers.
std::int64_t tokens_a_step(layout const& map) noexcept;

}  // namespace kvarts::tool
