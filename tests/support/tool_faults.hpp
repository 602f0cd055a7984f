// SPDX-License-Identifier: Apache-2.0
/// @file
/// What the tests of the program's file readers share.
#pragma once

#include "catch.hpp"
#include "tool_error.hpp"

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <unistd.h>
#include <vector>

namespace kvarts::test {

/// Calls `parse(bytes, name)` with a copy of exactly `text`, so that a sanitizer sees every read
/// outside of it. Returns the sentence of the error that must begin with the name, or "" if there
/// was none.
template <class Parse>
std::string error_of(Parse parse, std::string_view text) {
  std::vector<std::byte> file(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) file[i] = static_cast<std::byte>(text[i]);
  try {
    parse(file, "some.file");
  } catch (tool::tool_error const& error) {
    std::string const sentence = error.what();
    CHECK(sentence.starts_with("some.file: "));
    CHECK(sentence.find('\n') == std::string::npos);
    CHECK(error.exit_code() == 1);
    return sentence;
  }
  return "";
}

/// The sentence of the `tool_error` that `f` throws, or "" if it throws none.
template <class F>
std::string sentence_of(F f) {
  try {
    f();
  } catch (tool::tool_error const& error) {
    return error.what();
  }
  return "";
}

/// An empty folder that is removed with all that was put into it.
class scratch_folder {
 public:
  scratch_folder() {
    std::string name = (std::filesystem::temp_directory_path() / "kvarts_XXXXXX").string();
    REQUIRE(::mkdtemp(name.data()) != nullptr);
    folder_ = name;
  }
  scratch_folder(scratch_folder const&) = delete;
  scratch_folder& operator=(scratch_folder const&) = delete;
  ~scratch_folder() {
    std::error_code ignored;
    std::filesystem::remove_all(folder_, ignored);
  }

  std::string operator/(std::string_view name) const { return (folder_ / name).string(); }
  std::size_t files() const {
    std::filesystem::directory_iterator const all(folder_);
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

 private:
  std::filesystem::path folder_;
};

}  // namespace kvarts::test
