// SPDX-License-Identifier: Apache-2.0
#define KVARTS_HEAD_DIMS 128
#define KVARTS_BLOCKS 32
#define KVARTS_CHANNEL_GROUPS 32
#include "support/attention/attention_checks.hpp"
using namespace kvarts; using namespace kvarts::test;
TEST_CASE("m3"){ check_attention<row_codec<midrise<3>>,row_codec<midrise<2>>>({},1); }
TEST_CASE("m3s"){ check_attention<row_codec<midrise<3>>,row_codec<midrise<2>>>({},1,3); }
TEST_CASE("inner"){ check_attention<codec<symmetric<3,range::narrow>,axis::channel>,codec<hybrid<2,range::narrow>,axis::token>>({},1); }
TEST_CASE("kivi"){ check_attention<codec<affine<2>,axis::token>,codec<affine<2>,axis::channel>>({},1); }
TEST_CASE("f16"){ check_attention<identity<half>,identity<half>>({},1); }
