// SPDX-License-Identifier: Apache-2.0
/// @file
/// What a group of codes is stored with, and what quantizers have in common.
#pragma once

#include <kvarts/config.hpp>
#include <kvarts/float16.hpp>

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace kvarts {

/// Stored parameters of one group (or row). Quantizers without a zero-point leave `zero` at +0.
template <class Scale>
struct parameters {
  using scale_type = Scale;
  Scale scale{};
  half zero{};
};

/// How a group decodes: `x^ = scale * level(u) + zero`, in float32; the product is exact.
struct decoding {
  float scale = 0.0f;
  float zero = 0.0f;
};

/// A quantizer turns `x[0..n)`, finite float32, into n codes of `bits` bits and their parameters.
/// `level(u, p, n)` is the number that a code of a group of n stands for before scaling;
/// `decode_with(p)` gives scale and zero. Codes are offset binary; the byte stored for an 8-bit
/// code is `u ^ stored_mask`. A row quantizer that scales by the row's length before its rotation
/// offers `row_length(x, n)` and `quantize(y, n, codes, length)` too. That is what the host needs;
/// a quantizer whose text is `quantize(group)` (and `row_length(group)`, `quantize(group, length)`)
/// with the members of `detail::array_group` serves devices too, and its array form is
/// `quantize_array<Q>(x, n, codes)`. Devices call level and decode_with as well: they are constexpr
/// or KVARTS_HOST_DEVICE.
template <class Q>
concept quantizer = requires(float const* x, int n, std::uint8_t* codes, std::uint8_t u,
                             typename Q::parameters_type const& p) {
  { Q::name() } -> std::convertible_to<std::string_view>;
  { Q::bits } -> std::convertible_to<int>;
  { Q::has_zero } -> std::convertible_to<bool>;
  { Q::clamps_rows } -> std::convertible_to<bool>;
  { Q::stored_mask } -> std::convertible_to<std::uint8_t>;
  { Q::quantize(x, n, codes) } -> std::same_as<typename Q::parameters_type>;
  { Q::decode_with(p) } -> std::same_as<decoding>;
  { Q::level(u, p, n) } -> std::same_as<float>;
};

namespace detail {

/// A short compile-time string, for names such as "symmetric3_narrow".
struct short_name {
  char text[32] = {};
  int length = 0;

  constexpr short_name& append(std::string_view part) noexcept {
    for (char c : part) text[length++] = c;
    return *this;
  }
  constexpr short_name& append(int digit) noexcept {
    text[length++] = static_cast<char>('0' + digit);
    return *this;
  }
  constexpr operator std::string_view() const noexcept {
    return {text, static_cast<std::size_t>(length)};
  }
};

}  // namespace detail
}  // namespace kvarts
