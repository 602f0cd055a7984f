// SPDX-License-Identifier: Apache-2.0
// TensorRT-LLM's cold page codec, called through the engine's interface.
#include "support/catch.hpp"
#include "support/rows.hpp"
#include "support/scripted_device.hpp"
#include "tensorrt_llm_cold_page_codec.hpp"

#include <kvarts/scheme.hpp>

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

namespace {

using namespace kvarts;
using kvarts::adapters::cold_page_codec;
using kvarts::adapters::cold_page_options;
namespace trt = kvarts::adapters::trt;

using int8_rows = row_codec<int8_head>;

constexpr int heads = 3, head_dim = 46, page_tokens = 8, layers = 2, slots = 6, blobs = 5;
constexpr int page_values = heads * page_tokens * head_dim;
constexpr int pool_values = slots * layers * page_values;
constexpr auto coders = tier::coders_of<int8_rows, row_codec<midrise<3>>>();

cold_page_options options() {
  cold_page_options o;
  o.heads = heads;
  o.head_dim = head_dim;
  o.page_tokens = page_tokens;
  o.hot = dtype::f32;
  o.keys = tier::segment_of<int8_rows>(head_dim);
  o.values = tier::segment_of<row_codec<midrise<3>>>(head_dim);
  o.coders = coders;
  return o;
}

// 3 x 8 rows of 46 codes and a scale: 1152 bytes; of 46 x 3 bits: 18 bytes, 480 with the scales.
constexpr int key_record = 1152, value_record = 480;
constexpr int blob_bytes = layers * (key_record + value_record);

/// Two pools, of K and of V; a slot holds both layers, `[heads, tokens, head_dim]` each.
struct engine {
  std::vector<std::byte> pools[2];
  trt::PoolGroupDesc desc;

  explicit engine(test::random_source& random) {
    trt::SlotDescVariant group{trt::LifeCycleId{4}, {}};
    for (int i = 0; i < 2; ++i) {
      pools[i].resize(pool_values * sizeof(float));
      for (int v = 0; v < pool_values; ++v) values(i)[v] = static_cast<float>(random.normal());
      char const* const role = i == 0 ? "key" : "value";
      group.coalescedBuffers.push_back({page_values * 4, {{0, role}, {1, role}}});
      desc.pools.push_back({trt::PoolIndex{i}, 0, layers * page_values * 4});
    }
    desc.numSlots = slots;
    desc.slotDesc.variants.push_back(group);
    describe_own_memory();
  }
  engine(engine const& other) : pools{other.pools[0], other.pools[1]}, desc(other.desc) {
    describe_own_memory();
  }

  void describe_own_memory() {
    for (int i = 0; i < 2; ++i) {
      desc.pools[trt::PoolIndex{i}].baseAddress = reinterpret_cast<std::uintptr_t>(pools[i].data());
    }
  }
  float* values(int pool) { return reinterpret_cast<float*>(pools[pool].data()); }
  float* row(int pool, int slot, int layer, int head, int token) {
    return values(pool) + (slot * layers + layer) * page_values +
           (head * page_tokens + token) * head_dim;
  }
};

/// What the engine holds: an object behind the interface.
std::unique_ptr<trt::IKvCacheColdPageCodec> codec_of(cold_page_options const& o) {
  return std::make_unique<cold_page_codec<>>(o);
}

constexpr trt::LayerGroupId group{4};

TEST_CASE("blobs hold the records of all layers, and bring back the hot pages") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  engine e(random);
  auto const codec = codec_of(options());
  REQUIRE(codec->configure(&e.desc, trt::PoolGroupIndex{1}));
  REQUIRE(codec->queryColdPageBytes(group) == blob_bytes);
  CHECK(codec->queryPageIndexLocation(group) == trt::PageIndexLocation::kHost);
  CHECK(codec->getBatchingLayerGroupId(group) == group);

  std::vector<std::byte> cold(blobs * blob_bytes, std::byte{0x5A});
  trt::PageIndexPair const out[] = {{3, 1}, {0, 5}};
  REQUIRE(codec->encode(group, cold.data(), out, 2, nullptr));
  auto const untouched = [&](int blob) {
    auto const* const begin = &cold[blob * blob_bytes];
    return std::all_of(begin, begin + blob_bytes, [](std::byte b) { return b == std::byte{0x5A}; });
  };
  CHECK((untouched(1) && untouched(2) && untouched(4)));

  // INT8 codes of layer 1's keys lie behind those of layer 0, head by head.
  for (int h = 0; h < heads; ++h) {
    for (int t = 0; t < page_tokens; ++t) {
      float const* const x = e.row(0, 5, 1, h, t);
      float largest = 0.0f;
      for (int d = 0; d < head_dim; ++d) largest = std::max(largest, std::fabs(x[d]));
      float const scale = saturate<bfloat16>(largest / 127.0f);
      for (int d = 0; d < head_dim; ++d) {
        auto const code = std::clamp(std::nearbyint(x[d] / scale), -127.0f, 127.0f);
        auto const at = key_record + (h * page_tokens + t) * head_dim + d;
        REQUIRE(static_cast<signed char>(cold[at]) == static_cast<signed char>(code));
      }
    }
  }

  engine before = e;
  trt::PageIndexPair const in[] = {{2, 0}, {4, 3}};  // slots 2 and 4 from what 5 and 1 were
  REQUIRE(codec->decode(group, cold.data(), in, 2, nullptr));
  for (int pool = 0; pool < 2; ++pool) {
    double squares = 0.0, errors = 0.0;
    for (int i = 0; i < pool_values; ++i) {
      int const slot = i / (layers * page_values), rest = i % (layers * page_values);
      if (slot != 2 && slot != 4) {
        REQUIRE(e.values(pool)[i] == before.values(pool)[i]);
        continue;
      }
      double const x = before.values(pool)[(slot == 2 ? 5 : 1) * layers * page_values + rest];
      squares += x * x;
      errors += std::pow(e.values(pool)[i] - x, 2);
    }
    CHECK(errors / squares < (pool == 0 ? 1e-4 : 0.06));
    CHECK(errors > 0.0);
  }
}

/// A device's streams are numbers here, and pointers in the engine.
struct scripted_mover {
  kvarts::adapters::device_mover<test::scripted_device> mover;

  bool store(tier::tier_view const& cold, std::span<tier::source_layer const> hot,
             tier::page_moves const& moves, cudaStream_t s) const {
    return mover.store(cold, hot, moves, number_of(s));
  }
  bool load(tier::const_tier_view const& cold, std::span<tier::target_layer const> hot,
            tier::page_moves const& moves, cudaStream_t s) const {
    return mover.load(cold, hot, moves, number_of(s));
  }
  static int number_of(cudaStream_t s) {
    return static_cast<int>(reinterpret_cast<std::intptr_t>(s));
  }
};

TEST_CASE("on a device blobs and hot pages are those of the host, in the stream's order") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  for (int run = 0; run < 40; ++run) {
    engine e(random), host = e;
    test::scripted_device d(random.bits());
    std::vector<std::byte> slices(2 * 3 * 8192);
    for (auto const* const memory : {&e.pools[0], &e.pools[1], &slices}) d.own(*memory);
    tier::staging_ring<test::scripted_device> out_ring(d, {slices.data(), 3 * 8192}, 3);
    tier::staging_ring<test::scripted_device> in_ring(d, {slices.data() + 3 * 8192, 3 * 8192}, 3);
    tier::transfer_options const way{run % 2 == 0 ? 0 : 1 << 20};
    tier::page_mover out(d, out_ring, way), in(d, in_ring, way);
    cold_page_codec<scripted_mover> on_device(options(), {{&out, &in}});
    auto const on_host = codec_of(options());
    trt::IKvCacheColdPageCodec& codec = on_device;
    REQUIRE(codec.configure(&e.desc, trt::PoolGroupIndex{1}));
    REQUIRE(on_host->configure(&host.desc, trt::PoolGroupIndex{1}));

    std::vector<std::byte> cold(blobs * blob_bytes), host_cold = cold;
    trt::PageIndexPair const to[] = {{3, 1}, {0, 5}, {4, 2}}, back[] = {{5, 3}, {1, 4}};
    auto const stream = reinterpret_cast<cudaStream_t>(std::intptr_t{2});
    REQUIRE(codec.encode(group, cold.data(), to, 3, stream));
    REQUIRE(codec.decode(group, cold.data(), back, 2, stream));  // right behind it
    d.finish();
    REQUIRE(d.faults.empty());
    REQUIRE(on_host->encode(group, host_cold.data(), to, 3, nullptr));
    REQUIRE(on_host->decode(group, host_cold.data(), back, 2, nullptr));
    REQUIRE(cold == host_cold);
    REQUIRE(e.pools[0] == host.pools[0]);
    REQUIRE(e.pools[1] == host.pools[1]);
  }
}

TEST_CASE("transforms are taken by layer") {
  auto const seed = test::test_seed();
  CAPTURE(seed);
  test::random_source random(seed);
  engine e(random);
  std::vector<float> const center(heads * head_dim, 1000.0f);
  for (int slot = 0; slot < slots; ++slot) {
    for (int v = 0; v < page_values; ++v) e.row(0, slot, 1, 0, 0)[v] += 1000.0f;
  }
  std::vector<transform_view> const keys{{}, {center.data(), nullptr, head_dim, {1, 1}}};
  auto o = options();
  o.key_transforms = keys;
  auto const codec = codec_of(o);
  REQUIRE(codec->configure(&e.desc, trt::PoolGroupIndex{1}));
  std::vector<std::byte> cold(blob_bytes);
  trt::PageIndexPair const out{0, 3}, in{2, 0};
  REQUIRE(codec->encode(group, cold.data(), &out, 1, nullptr));
  REQUIRE(codec->decode(group, cold.data(), &in, 1, nullptr));
  for (int v = 0; v < page_values; ++v) {
    REQUIRE(std::fabs(e.row(0, 2, 1, 0, 0)[v] - e.row(0, 3, 1, 0, 0)[v]) < 0.2f);
  }
}

TEST_CASE("what does not fit is refused as the interface says") {
  test::random_source random(1);
  engine e(random);
  auto const codec = codec_of(options());
  CHECK(codec->queryColdPageBytes(group) == 0);
  CHECK(codec->queryPageIndexLocation(group) == trt::PageIndexLocation::kBadLocation);
  REQUIRE(codec->configure(&e.desc, trt::PoolGroupIndex{1}));
  std::vector<std::byte> cold(blobs * blob_bytes, std::byte{0x5A});
  auto const before = cold;
  trt::PageIndexPair const fine{0, 0}, outside{0, slots}, twice[] = {{1, 0}, {1, 2}};
  CHECK_FALSE(codec->encode(trt::LayerGroupId{3}, cold.data(), &fine, 1, nullptr));
  CHECK_FALSE(codec->encode(group, cold.data(), &outside, 1, nullptr));
  CHECK_FALSE(codec->encode(group, cold.data(), twice, 2, nullptr));
  CHECK(cold == before);

  auto const refused = [](engine const& changed, cold_page_options const& o = options()) {
    auto const fresh = codec_of(o);
    bool const configured = fresh->configure(&changed.desc, trt::PoolGroupIndex{1});
    return !configured && fresh->queryColdPageBytes(group) == 0;
  };
  auto const changed = [&](auto change) {
    engine other = e;
    change(other.desc);
    return other;
  };
  CHECK_FALSE(refused(e));
  CHECK(refused(changed([](auto& d) { d.pools[trt::PoolIndex{1}].slotBytes -= 4; })));
  CHECK(refused(changed([](auto& d) { d.pools[trt::PoolIndex{0}].slotBytes += 2; })));
  auto const buffers = [](auto& d) -> trt::CoalescedBuffer& {
    return d.slotDesc.variants[0].coalescedBuffers[trt::PoolIndex{0}];
  };
  CHECK(refused(changed([&](auto& d) { buffers(d).singleBufferSize -= 4; })));
  CHECK(refused(changed([&](auto& d) { buffers(d).bufferIds[1].role = "scale"; })));
  cold_page_options o = options();
  o.head_dim = 45;
  CHECK(refused(e, o));
  std::vector<transform_view> const one(1);
  o = options();
  o.key_transforms = one;
  CHECK(refused(e, o));
}

}  // namespace
