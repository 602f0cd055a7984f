// SPDX-License-Identifier: Apache-2.0
/// @file
/// How the numbers of a group (or a row) become codes and parameters: pure functions, one type
/// each.
#pragma once

#include <kvarts/quantizer/affine.hpp>
#include <kvarts/quantizer/codebook.hpp>
#include <kvarts/quantizer/hybrid.hpp>
#include <kvarts/quantizer/int8_head.hpp>
#include <kvarts/quantizer/midrise.hpp>
#include <kvarts/quantizer/parameters.hpp>
#include <kvarts/quantizer/symmetric.hpp>
