// SPDX-License-Identifier: Apache-2.0
/// @file
/// Hybrid quantizer: each group is stored symmetric or affine, whichever errs less.
#pragma once

#include <kvarts/quantizer/affine.hpp>
#include <kvarts/quantizer/symmetric.hpp>

#include <cmath>

namespace kvarts {

/// Per group the better of `symmetric<b, narrow>` and `affine<b-1>` (narrow), or of
/// `symmetric<b, wide>` and `affine<b>` (wide), by the folded L1 error; a tie goes to symmetric.
/// The choice is the sign bit of the stored scale (set = affine), tested as a bit because -0
/// exists; a zero-point is stored for every group, +0 for symmetric ones. Source: InnerQ's hybrid
/// values.
template <int Bits, range Range>
struct hybrid {
  static_assert(Bits == 2 || Bits == 3 || Bits == 4, "hybrid quantizers have 2, 3 or 4 bits");
  static_assert(Range != range::searched, "hybrid quantizers are narrow or wide");

  using symmetric_part = symmetric<Bits, Range>;
  using affine_part = affine<Range == range::narrow ? Bits - 1 : Bits>;
  using parameters_type = parameters<half>;
  static constexpr int bits = Bits;
  static constexpr bool has_zero = true;
  static constexpr bool clamps_rows = false;
  static constexpr std::uint8_t stored_mask = 0;

  static constexpr detail::short_name name() noexcept {
    return detail::short_name{}.append("hybrid").append(Bits).append("_").append(to_string(Range));
  }

  static constexpr bool is_affine(parameters_type const& p) noexcept {
    return (p.scale.bits & 0x8000u) != 0;
  }

  static parameters_type quantize(float const* x, int n, std::uint8_t* codes) noexcept {
    return quantize_array<hybrid>(x, n, codes);
  }

  template <class Group>
  KVARTS_HOST_DEVICE static parameters_type quantize(Group& group) noexcept {
    typename Group::more_codes room;
    auto other = group.with_codes(room);
    parameters_type const s = symmetric_part::quantize(group);
    parameters_type a = affine_part::quantize(other);
    a.scale.bits |= 0x8000u;
    if (!(absolute_error(other, a) < absolute_error(group, s))) return s;
    group.take_codes(other);
    return a;
  }

  static constexpr decoding decode_with(parameters_type const& p) noexcept {
    if (is_affine(p)) return {-static_cast<float>(p.scale), p.zero};
    return {p.scale, 0.0f};
  }

  static constexpr float level(std::uint8_t u, parameters_type const& p, int) noexcept {
    return detail::level_to_float(is_affine(p) ? int{u} : u + symmetric_part::lowest);
  }

 private:
  template <class Group>
  KVARTS_HOST_DEVICE static float absolute_error(Group const& group,
                                                 parameters_type const& p) noexcept {
    decoding const d = decode_with(p);
    int const n = group.size();
    return group.fold_coded([=](float x, std::uint8_t u) {
      float const back = detail::add(detail::multiply(d.scale, level(u, p, n)), d.zero);
      return std::fabs(detail::subtract(x, back));
    });
  }
};

}  // namespace kvarts
