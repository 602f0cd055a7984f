// SPDX-License-Identifier: Apache-2.0
/// @file
/// Reading the objects of a JSON file: what is missing or does not fit is a sentence that names it.
#pragma once

#include <nlohmann/json.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace kvarts::tool {

/// An object of a file, and where it stands: the beginning of sentences about it. Every call throws
/// `tool_error` for what it cannot give. The object must outlive it.
class json_fields {
 public:
  json_fields(nlohmann::json const& object, std::string where);

  /// Throws the sentence "`where` `what`".
  [[noreturn]] void fail(std::string const& what) const;

  /// Refuses fields of other names.
  void allow(std::vector<std::string> const& known) const;

  bool has(char const* name) const { return object_.contains(name); }
  nlohmann::json const& at(char const* name) const;

  /// A text that is not empty.
  std::string text(char const* name) const;

  /// A whole number of `least..most`; without the field `otherwise`.
  std::int64_t number(char const* name, std::int64_t least, std::int64_t most,
                      std::int64_t otherwise) const;

  /// `value`, which stands under `name`, as such a number.
  std::int64_t whole(nlohmann::json const& value, char const* name, std::int64_t least,
                     std::int64_t most) const;

  std::string const& where() const { return where_; }

 private:
  nlohmann::json const& object_;
  std::string where_;
};

}  // namespace kvarts::tool
