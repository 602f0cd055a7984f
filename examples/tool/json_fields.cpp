// SPDX-License-Identifier: Apache-2.0
#include "json_fields.hpp"

#include "tool_error.hpp"
#include "unknown_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace kvarts::tool {

using nlohmann::json;

json_fields::json_fields(json const& object, std::string where)
    : object_(object), where_(std::move(where)) {
  if (!object.is_object()) fail("is no object");
}

void json_fields::fail(std::string const& what) const {
  throw tool_error(fmt::format("{} {}", where_, what));
}

void json_fields::allow(std::vector<std::string> const& known) const {
  for (auto const& [name, value] : object_.items()) {
    if (std::find(known.begin(), known.end(), name) != known.end()) continue;
    throw tool_error(
        fmt::format("{}: {}", where_, unknown_name("field", name, known, "leave it out")));
  }
}

json const& json_fields::at(char const* name) const {
  if (!has(name)) fail(fmt::format("has no \"{}\"", name));
  return object_.at(name);
}

std::string json_fields::text(char const* name) const {
  json const& value = at(name);
  if (!value.is_string() || value.get_ref<std::string const&>().empty()) {
    fail(fmt::format("has a \"{}\" that is no text", name));
  }
  return value.get<std::string>();
}

std::int64_t json_fields::number(char const* name, std::int64_t least, std::int64_t most,
                                 std::int64_t otherwise) const {
  return has(name) ? whole(object_.at(name), name, least, most) : otherwise;
}

std::int64_t json_fields::whole(json const& value, char const* name, std::int64_t least,
                                std::int64_t most) const {
  bool const fits =
      value.is_number_integer() &&
      (!value.is_number_unsigned() || value.get<std::uint64_t>() <= std::uint64_t{1} << 62) &&
      value.get<std::int64_t>() >= least && value.get<std::int64_t>() <= most;
  if (!fits) {
    fail(fmt::format("has {} as \"{}\", not a whole number from {} to {}",
                     value.is_number() ? value.dump() : "something else", name, least, most));
  }
  return value.get<std::int64_t>();
}

}  // namespace kvarts::tool
