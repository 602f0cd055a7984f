// SPDX-License-Identifier: Apache-2.0
#include "support/byte_strings.hpp"
#include "support/catch.hpp"

#include <kvarts/sha256.hpp>

#include <string>

namespace {

using namespace kvarts;
using kvarts::test::bytes_of;

std::string hex(sha256_digest const& digest) {
  std::string text;
  for (std::byte const b : digest) {
    text += "0123456789abcdef"[std::to_integer<int>(b) >> 4];
    text += "0123456789abcdef"[std::to_integer<int>(b) & 15];
  }
  return text;
}

std::string sha256_of(std::string const& message) {
  sha256 hash;
  hash.update(bytes_of(message));
  return hex(hash.finish());
}

TEST_CASE("SHA-256 gives the examples of FIPS 180-4") {
  CHECK(sha256_of("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_of("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_of("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_of(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

TEST_CASE("SHA-256 does not depend on the pieces that a message comes in") {
  std::string const message(200, 'x');
  for (std::size_t cut = 0; cut <= message.size(); ++cut) {
    sha256 hash;
    hash.update(bytes_of(message.substr(0, cut)));
    hash.update(bytes_of(message.substr(cut)));
    REQUIRE(hex(hash.finish()) == sha256_of(message));
  }
}

TEST_CASE("numbers are eight bytes, the lowest first") {
  sha256 hash;
  hash.update(std::uint64_t{0x6867666564636261});
  CHECK(hex(hash.finish()) == sha256_of("abcdefgh"));
}

}  // namespace
