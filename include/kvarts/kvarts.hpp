// SPDX-License-Identifier: Apache-2.0
/// @file
/// Everything for the host. kvarts encodes keys and values of LLM inference into few bits and
/// computes on the codes.
#pragma once

#include <kvarts/attention.hpp>
#include <kvarts/bits.hpp>
#include <kvarts/cache.hpp>
#include <kvarts/cache_view.hpp>
#include <kvarts/calibrate.hpp>
#include <kvarts/codec.hpp>
#include <kvarts/codec_list.hpp>
#include <kvarts/config.hpp>
#include <kvarts/decode.hpp>
#include <kvarts/dtype.hpp>
#include <kvarts/encode.hpp>
#include <kvarts/float16.hpp>
#include <kvarts/fold_weights.hpp>
#include <kvarts/gemv.hpp>
#include <kvarts/layout.hpp>
#include <kvarts/make_layout.hpp>
#include <kvarts/numerics.hpp>
#include <kvarts/packing.hpp>
#include <kvarts/paged_cache.hpp>
#include <kvarts/quantizer.hpp>
#include <kvarts/rotation.hpp>
#include <kvarts/scheme.hpp>
#include <kvarts/status.hpp>
#include <kvarts/tensor.hpp>
#include <kvarts/tier/capacity.hpp>
#include <kvarts/tier/geometry.hpp>
#include <kvarts/tier/index_pairs.hpp>
#include <kvarts/tier/layers.hpp>
#include <kvarts/tier/pages.hpp>
#include <kvarts/tier/placement.hpp>
#include <kvarts/tier/record.hpp>
#include <kvarts/tier/threads.hpp>
#include <kvarts/transform.hpp>
#include <kvarts/view.hpp>
#include <kvarts/window.hpp>
