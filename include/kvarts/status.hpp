// SPDX-License-Identifier: Apache-2.0
/// @file
/// How kvarts reports bad input: `status` codes from hot calls, `problem` from checks, `error` from
/// `make_*` functions where exceptions are enabled.
#pragma once

#include <kvarts/config.hpp>

#include <cstdint>
#include <stdexcept>
#include <string>

namespace kvarts {

/// Result of a call that does not throw; `ok` is 0.
enum class status : std::int32_t {
  ok = 0,
  bad_head_dim,    ///< head_dim outside 1..max_head_dim, or not what the other side has
  bad_heads,       ///< no heads, or query heads that KV heads do not divide
  bad_group,       ///< a group length that is not positive, or that tiles do not hold whole
  bad_tokens,      ///< a token count or range that is negative or outside the layout
  bad_tile,        ///< tokens of a tile not positive, or not a multiple of the token group
  bad_page,        ///< a page that tiles do not divide, or a block table that is missing
  bad_alignment,   ///< an alignment that is not a power of two
  bad_stride,      ///< strides that make parts of a layout overlap
  bad_plane,       ///< a plane (codes, scales, zeros) that is missing or not wanted
  partial_group,   ///< a token range that begins inside a group of tokens
  bad_transform,   ///< a norm or center that is not finite and positive, or of another geometry
  bad_window,      ///< 16-bit windows that are negative or that token groups do not divide
  no_window_room,  ///< the 16-bit room is full, and without a frozen transform nothing may be coded
  no_pages,        ///< the page pool or the sequence's room has no free page left
  not_recoverable,  ///< a crop that needs 16-bit rows which the recent window no longer holds
  bad_sequence,     ///< a sequence that does not exist, or no slot for a new one
  bad_preset,       ///< an unknown preset or codec name
  bad_file,         ///< a file that is cut, damaged or not what it says
  unsupported,      ///< a valid request that this build does not serve
  device_failed,    ///< a copy, launch or event that a device refused
};

/// Short name of a status, for logs.
constexpr char const* to_string(status s) noexcept {
  switch (s) {
    case status::ok: return "ok";
    case status::bad_head_dim: return "bad head_dim";
    case status::bad_heads: return "bad heads";
    case status::bad_group: return "bad group";
    case status::bad_tokens: return "bad tokens";
    case status::bad_tile: return "bad tile";
    case status::bad_page: return "bad page";
    case status::bad_alignment: return "bad alignment";
    case status::bad_stride: return "bad stride";
    case status::bad_plane: return "bad plane";
    case status::partial_group: return "partial group";
    case status::bad_transform: return "bad transform";
    case status::bad_window: return "bad window";
    case status::no_window_room: return "no window room";
    case status::no_pages: return "no pages";
    case status::not_recoverable: return "not recoverable";
    case status::bad_sequence: return "bad sequence";
    case status::bad_preset: return "bad preset";
    case status::bad_file: return "bad file";
    case status::unsupported: return "unsupported";
    case status::device_failed: return "device failed";
  }
  return "unknown status";
}

/// Thrown by `make_*`: a sentence that names the offending number, and its code.
class error : public std::invalid_argument {
 public:
  error(status code, std::string const& sentence) : std::invalid_argument(sentence), code_(code) {}
  status code() const noexcept { return code_; }

 private:
  status code_;
};

/// What a check found: a code, and a text whose `{}` stand for the two numbers, in order. Building
/// one allocates nothing, so `validate()` serves engines without exceptions.
struct problem {
  status code = status::ok;
  char const* text = "";
  std::int64_t first = 0;
  std::int64_t second = 0;

  constexpr explicit operator bool() const noexcept { return code != status::ok; }

  /// The text with its numbers filled in.
  std::string sentence() const {
    std::string out;
    std::int64_t const numbers[] = {first, second};
    int next = 0;
    for (char const* c = text; *c != '\0'; ++c) {
      if (c[0] == '{' && c[1] == '}' && next < 2) {
        out += std::to_string(numbers[next++]);
        ++c;
      } else {
        out += *c;
      }
    }
    return out;
  }
};

/// Throws `error` when there is a problem. Without exceptions `make_*` is not declared, `check_*`
/// is.
#if defined(__cpp_exceptions)
inline void throw_if(problem const& p) {
  if (p) throw error(p.code, p.sentence());
}
#endif

}  // namespace kvarts
