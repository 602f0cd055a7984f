// SPDX-License-Identifier: Apache-2.0
#include "tensor_input.hpp"

#include "npy.hpp"
#include "safetensors.hpp"
#include "tool_error.hpp"
#include "unknown_name.hpp"

#include <kvarts/tensor.hpp>

#include <fmt/format.h>

#include <cmath>
#include <cstdint>
#include <utility>

namespace kvarts::tool {

namespace {

dtype element_type(tensor const& values, std::string_view name, std::optional<dtype> wanted) {
  std::optional<dtype> type;
  if (values.dtype == file_dtype::f16) type = dtype::f16;
  if (values.dtype == file_dtype::bf16) type = dtype::bf16;
  if (values.dtype == file_dtype::f32) type = dtype::f32;
  if (values.dtype == file_dtype::u16) {
    if (wanted == dtype::bf16) return dtype::bf16;
    throw tool_error(fmt::format("{}: elements are U16; --dtype bf16 reads them as bf16", name));
  }
  if (!type) {
    throw tool_error(
        fmt::format("{}: elements are {}, not F16, BF16 or F32", name, name_of(values.dtype)));
  }
  if (wanted && wanted != type) {
    throw tool_error(fmt::format("{}: elements are {}, not {} as --dtype says", name,
                                 to_string(*type), to_string(*wanted)));
  }
  return *type;
}

/// An extent that must fit an int before the library can check it.
int small_extent(std::int64_t extent, std::string_view what, std::int64_t most,
                 std::string_view name) {
  if (extent < 1 || extent > most) {
    throw tool_error(fmt::format("{}: {} is {}, outside 1..{}", name, what, extent, most));
  }
  return static_cast<int>(extent);
}

tensor const& tensor_named(safetensors const& contents, file_part const& at) {
  auto const found = contents.tensors.find(at.part);
  if (found != contents.tensors.end()) return found->second;
  std::vector<std::string> names;
  for (auto const& [name, values] : contents.tensors) names.push_back(name);
  std::string const advice =
      names.empty() ? "the file has none" : "the first of the file is " + in_quotes(names.front());
  throw tool_error(fmt::format("{}: {}", at.file, unknown_name("tensor", at.part, names, advice)));
}

float element(tensor const& values, std::size_t i) {
  if (values.dtype == file_dtype::f16) {
    return half::from_bits(load_unaligned<std::uint16_t>(&values.bytes[2 * i]));
  }
  if (values.dtype == file_dtype::f32) return load_unaligned<float>(&values.bytes[4 * i]);
  return static_cast<float>(load_unaligned<double>(&values.bytes[8 * i]));
}

}  // namespace

std::optional<file_part> split_file_part(std::string_view text) {
  auto const at = text.rfind("::");
  if (at == std::string_view::npos || at == 0 || at + 2 == text.size()) return std::nullopt;
  return file_part{std::string(text.substr(0, at)), std::string(text.substr(at + 2))};
}

std::optional<dtype> element_type_named(std::string_view name) {
  for (dtype const type : {dtype::f16, dtype::bf16, dtype::f32}) {
    if (name == kvarts::to_string(type)) return type;
  }
  return std::nullopt;
}

file_dtype npy_type(dtype type) noexcept {
  if (type == dtype::f32) return file_dtype::f32;
  return type == dtype::f16 ? file_dtype::f16 : file_dtype::u16;
}

source_view rows_of(tensor const& values, std::string_view name, std::optional<dtype> type) {
  auto const& shape = values.shape;
  if (shape.size() != 2 && shape.size() != 3) {
    throw tool_error(
        fmt::format("{}: shape {} is neither [tokens, heads, head_dim] nor "
                    "[tokens, head_dim]",
                    name, to_string(shape)));
  }
  dtype const elements = element_type(values, name, type);
  int const head_dim = small_extent(shape.back(), "head_dim", max_head_dim, name);
  int const heads = shape.size() == 3 ? small_extent(shape[1], "heads", 65536, name) : 1;
  auto const strides = contiguous(order::token_major, heads, head_dim, shape[0]);
  layout const map = plan_tensor(elements, heads, head_dim, shape[0], strides);
  if (problem const p = check_tensor(map, elements)) {
    throw tool_error(fmt::format("{}: {}", name, p.sentence()));
  }
  return {values.bytes.data(), elements, map, {}};
}

tensor_input open_tensor_input(std::string const& path, std::optional<dtype> type) {
  auto const input = [&](mapped_file file, tensor const& values) {
    source_view const rows = rows_of(values, path, type);
    return tensor_input{std::move(file), path, rows, values.shape.size() == 3};
  };
  if (auto const at = split_file_part(path)) {
    auto [file, contents] = open_safetensors(at->file);
    return input(std::move(file), tensor_named(contents, *at));
  }
  if (path.ends_with(".safetensors")) {
    throw tool_error(path + ": append the name of a tensor, as in " + path + "::layers.0.k", 2);
  }
  auto [file, values] = open_npy(path);
  return input(std::move(file), values);
}

std::vector<float> finite_floats(tensor const& values, std::string_view name) {
  if (values.dtype != file_dtype::f16 && values.dtype != file_dtype::f32 &&
      values.dtype != file_dtype::f64) {
    throw tool_error(
        fmt::format("{}: elements are {}, not F16, F32 or F64", name, name_of(values.dtype)));
  }
  std::vector<float> floats(values.bytes.size() /
                            static_cast<std::size_t>(element_size(values.dtype)));
  for (std::size_t i = 0; i < floats.size(); ++i) {
    floats[i] = element(values, i);
    if (!std::isfinite(floats[i])) {
      throw tool_error(fmt::format("{}: element {} is not a finite float32", name, i));
    }
  }
  return floats;
}

}  // namespace kvarts::tool
