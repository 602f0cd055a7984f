// SPDX-License-Identifier: Apache-2.0
/// @file
/// SHA-256, which names configurations and pages in stores that many programs share. Source: FIPS
/// 180-4.
#pragma once

#include <kvarts/config.hpp>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

namespace kvarts {

using sha256_digest = std::array<std::byte, 32>;

namespace detail {

/// The first 32 bits of the fractional parts of the cube roots of the first 64 primes.
inline constexpr std::array<std::uint32_t, 64> sha256_constants = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

}  // namespace detail

/// A message in pieces: `update` for each, then `finish` once.
class sha256 {
 public:
  constexpr void update(std::span<std::byte const> bytes) noexcept {
    for (std::byte const b : bytes) put(b);
    length_ += bytes.size();
  }

  /// The eight bytes of a number, the lowest first.
  constexpr void update(std::uint64_t number) noexcept {
    for (int i = 0; i < 8; ++i) put(static_cast<std::byte>((number >> (8 * i)) & 0xFF));
    length_ += 8;
  }

  constexpr sha256_digest finish() noexcept {
    std::uint64_t const bits = length_ * 8;
    put(std::byte{0x80});
    while (used_ != 56) put(std::byte{0});
    for (int i = 7; i >= 0; --i) put(static_cast<std::byte>((bits >> (8 * i)) & 0xFF));
    sha256_digest digest{};
    for (std::size_t i = 0; i < digest.size(); ++i) {
      digest[i] = static_cast<std::byte>((state_[i / 4] >> (24 - 8 * (i % 4))) & 0xFF);
    }
    return digest;
  }

 private:
  constexpr void put(std::byte b) noexcept {
    block_[used_++] = b;
    if (used_ < block_.size()) return;
    used_ = 0;
    compress();
  }

  constexpr void compress() noexcept {
    std::array<std::uint32_t, 64> w{};
    for (std::size_t i = 0; i < 64; ++i)
      w[i / 4] = (w[i / 4] << 8) | static_cast<std::uint32_t>(block_[i]);
    for (std::size_t i = 16; i < 64; ++i) {
      std::uint32_t const a = w[i - 15], b = w[i - 2];
      w[i] = w[i - 16] + (std::rotr(a, 7) ^ std::rotr(a, 18) ^ (a >> 3)) + w[i - 7] +
             (std::rotr(b, 17) ^ std::rotr(b, 19) ^ (b >> 10));
    }
    auto [a, b, c, d, e, f, g, h] = state_;
    for (std::size_t i = 0; i < 64; ++i) {
      std::uint32_t const first = h + (std::rotr(e, 6) ^ std::rotr(e, 11) ^ std::rotr(e, 25)) +
                                  ((e & f) ^ (~e & g)) + detail::sha256_constants[i] + w[i];
      std::uint32_t const second =
          (std::rotr(a, 2) ^ std::rotr(a, 13) ^ std::rotr(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
      h = g, g = f, f = e, e = d + first, d = c, c = b, b = a, a = first + second;
    }
    std::array const worked{a, b, c, d, e, f, g, h};
    for (std::size_t i = 0; i < 8; ++i) state_[i] += worked[i];
  }

  // The first 32 bits of the fractional parts of the square roots of the first 8 primes.
  std::array<std::uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<std::byte, 64> block_{};
  std::size_t used_ = 0;
  std::uint64_t length_ = 0;
};

}  // namespace kvarts
