// SPDX-License-Identifier: Apache-2.0
/// @file
/// Reading whole files through read-only mappings, and writing them all or not at all.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace kvarts::tool {

/// A regular file mapped for reading: pages are loaded as they are read, so that a large dump costs
/// no memory of its own. The file must not be cut by someone else meanwhile.
class mapped_file {
 public:
  /// Throws `tool_error` for a file that is missing, unreadable, a directory or another non-file.
  explicit mapped_file(std::string path);
  mapped_file(mapped_file&& other) noexcept
      : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}
  mapped_file& operator=(mapped_file&& other) noexcept {
    std::swap(path_, other.path_);
    std::swap(bytes_, other.bytes_);
    return *this;
  }
  ~mapped_file();

  std::string const& path() const noexcept { return path_; }
  std::span<std::byte const> bytes() const noexcept { return bytes_; }

 private:
  std::string path_;
  std::span<std::byte const> bytes_;
};

/// What a parser made of a file, together with the mapping that its views point into.
template <class Contents>
struct opened {
  mapped_file file;
  Contents contents;
};

/// Maps `path` and calls `parse(bytes, path)`; both throw `tool_error`.
template <class Parse>
auto open_with(Parse parse, std::string const& path) {
  mapped_file file(path);
  auto contents = parse(file.bytes(), path);
  return opened<decltype(contents)>{std::move(file), std::move(contents)};
}

/// Writes `parts` one after the other as the file `path`, through a temporary file beside it that
/// takes its place when it is complete: after a failure (`tool_error`) the old file is as it was.
void write_file(std::string const& path, std::vector<std::span<std::byte const>> const& parts);

/// The same for text.
void write_file(std::string const& path, std::string_view text);

/// Refuses (`tool_error`, bad usage) a file that a command would both read and write, or write
/// twice. Empty names stand for files that were not asked for.
void check_outputs(std::vector<std::string> const& outputs, std::vector<std::string> const& inputs);

}  // namespace kvarts::tool
