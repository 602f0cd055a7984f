// SPDX-License-Identifier: Apache-2.0
/// @file
/// Whether this is a sanitizer's build, which is many times slower to compile and to run.
#pragma once

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define KVARTS_TEST_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define KVARTS_TEST_SANITIZED 1
#endif
#endif
#if !defined(KVARTS_TEST_SANITIZED)
#define KVARTS_TEST_SANITIZED 0
#endif

namespace kvarts::test {

inline constexpr bool sanitized = KVARTS_TEST_SANITIZED != 0;

}  // namespace kvarts::test
