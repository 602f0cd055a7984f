// SPDX-License-Identifier: Apache-2.0
/// @file
/// Which test runs a golden case, its tensors as encoders take them, and a reader that knows what
/// was not looked at.
#pragma once

#include "support/golden.hpp"

#include <kvarts/tensor.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <vector>

namespace kvarts::test {

/// What a case checks.
enum class golden_kind {
  int8_rows,
  groups,
  rows,  ///< mid-rise on plain rows
  key_norms,
  key_transform,
  coded_keys,      ///< mid-rise behind a key transform
  rotated_values,  ///< mid-rise behind a rotation
  codebook,
};

inline golden_kind kind_of(golden_case const& c) {
  if (c.codec == "int8_head") return golden_kind::int8_rows;
  if (c.codec == "symmetric" || c.codec == "affine" || c.codec == "hybrid") {
    return golden_kind::groups;
  }
  if (c.codec == "midrise" && c.name.starts_with("keys_")) return golden_kind::coded_keys;
  if (c.codec == "midrise" && c.name.starts_with("values_")) return golden_kind::rotated_values;
  if (c.codec == "midrise") return golden_kind::rows;
  if (c.codec == "key_norms") return golden_kind::key_norms;
  if (c.codec == "key_transform") return golden_kind::key_transform;
  if (c.codec == "codebook") return golden_kind::codebook;
  throw std::runtime_error("no test knows the codec of the golden case " + c.name);
}

/// "symmetric3_narrow", "affine2", "midrise4", ...
inline std::string codec_name_of(golden_case const& c) {
  bool const ranged = c.codec == "symmetric" || c.codec == "hybrid";
  return c.codec + c.bits + (ranged ? "_" + c.variant : "");
}

inline axis axis_of(golden_case const& c) {
  return c.along == "channel" ? axis::channel : (c.along == "token" ? axis::token : axis::row);
}

/// A golden input `[tokens, heads, head_dim]` or `[tokens, head_dim]`.
struct golden_input {
  std::vector<std::byte> bytes;
  dtype type = dtype::f16;
  layout map{};

  source_view source() const { return {bytes.data(), type, map, {}}; }
};

/// Reads golden tensors by name and type, and remembers which.
class golden_reader {
 public:
  template <class T>
  std::vector<T> numbers(std::string const& name) {
    if (file_.dtype(name) != dtype_name<T>()) {
      throw std::runtime_error("not of the type asked for: " + name);
    }
    read_.insert(name);
    return file_.values<T>(name);
  }

  golden_input input(std::string const& name) {
    auto const type = file_.dtype(name);
    if (type == "F16") return input_of<half>(name);
    if (type == "BF16") return input_of<bfloat16>(name);
    return input_of<float>(name);
  }

  bool has(golden_case const& c, std::string const& output) const {
    auto const names = file_.outputs_of(c);
    return std::find(names.begin(), names.end(), c.name + "." + output) != names.end();
  }

  /// Outputs of a case that no test has read.
  std::vector<std::string> unread(golden_case const& c) const {
    auto names = file_.outputs_of(c);
    std::erase_if(names, [&](std::string const& name) { return read_.contains(name); });
    return names;
  }

 private:
  template <class T>
  static std::string dtype_name() {
    if (std::is_same_v<T, half>) return "F16";
    if (std::is_same_v<T, bfloat16>) return "BF16";
    if (std::is_same_v<T, float>) return "F32";
    return std::is_same_v<T, double> ? "F64" : "U8";
  }

  template <class T>
  golden_input input_of(std::string const& name) {
    auto const values = numbers<T>(name);
    auto const shape = file_.shape(name);
    auto const head_dim = static_cast<int>(shape.back());
    int const heads = shape.size() == 3 ? static_cast<int>(shape[1]) : 1;
    auto const view = make_tensor(values.data(), heads, head_dim, shape.front());
    auto const* const bytes = reinterpret_cast<std::byte const*>(values.data());
    return {{bytes, bytes + values.size() * sizeof(T)}, view.type, view.map};
  }

  golden_file file_;
  std::set<std::string> read_;
};

inline constexpr std::ptrdiff_t no_difference = -1;

/// Where two sequences first differ, bit for bit (or where the shorter ends), or `no_difference`.
template <class T>
std::ptrdiff_t first_difference(std::vector<T> const& a, std::vector<T> const& b) {
  auto const same = [](T const& x, T const& y) { return std::memcmp(&x, &y, sizeof(T)) == 0; };
  auto const [at, other] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), same);
  return at == a.end() && other == b.end() ? no_difference : at - a.begin();
}

}  // namespace kvarts::test
