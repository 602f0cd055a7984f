// SPDX-License-Identifier: Apache-2.0
#include "tensor.hpp"

#include "tool_error.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>

namespace kvarts::tool {

namespace {

struct type_facts {
  std::string_view name;
  std::int64_t bytes;
};

// In the order of file_dtype.
constexpr std::array<type_facts, 15> facts = {{{"BOOL", 1},
                                               {"U8", 1},
                                               {"I8", 1},
                                               {"F8_E5M2", 1},
                                               {"F8_E4M3", 1},
                                               {"U16", 2},
                                               {"I16", 2},
                                               {"F16", 2},
                                               {"BF16", 2},
                                               {"U32", 4},
                                               {"I32", 4},
                                               {"F32", 4},
                                               {"U64", 8},
                                               {"I64", 8},
                                               {"F64", 8}}};
static_assert(facts.size() == static_cast<std::size_t>(file_dtype::f64) + 1);

type_facts const& facts_of(file_dtype type) noexcept {
  return facts[static_cast<std::size_t>(type)];
}

}  // namespace

std::int64_t element_size(file_dtype type) noexcept { return facts_of(type).bytes; }

std::string_view name_of(file_dtype type) noexcept { return facts_of(type).name; }

std::optional<file_dtype> dtype_named(std::string_view name) noexcept {
  for (std::size_t i = 0; i < facts.size(); ++i) {
    if (facts[i].name == name) return static_cast<file_dtype>(i);
  }
  return std::nullopt;
}

std::optional<std::int64_t> byte_count(file_dtype type,
                                       std::span<std::int64_t const> shape) noexcept {
  std::int64_t bytes = element_size(type);
  bool empty = false;
  for (std::int64_t const extent : shape) {
    if (extent < 0) return std::nullopt;
    if (extent == 0) {
      empty = true;
    } else if (bytes > INT64_MAX / extent) {
      return std::nullopt;
    } else {
      bytes *= extent;
    }
  }
  return empty ? 0 : bytes;
}

std::string to_string(std::span<std::int64_t const> shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

void check_size(tensor const& values, std::string_view name) {
  auto const bytes = byte_count(values.dtype, values.shape);
  if (!bytes) {
    throw tool_error(fmt::format("{}: shape {} is too large", name, to_string(values.shape)));
  }
  if (static_cast<std::uint64_t>(*bytes) != values.bytes.size()) {
    throw tool_error(fmt::format("{}: {} of shape {} takes {} bytes, but there are {}", name,
                                 name_of(values.dtype), to_string(values.shape), *bytes,
                                 values.bytes.size()));
  }
}

}  // namespace kvarts::tool
