// SPDX-License-Identifier: Apache-2.0
/// @file
/// An engine's day on a scripted device: pages are written, stored, written over, read by the CPU,
/// restored to pages that are still in use, read layer by layer, and the tier's are stored over;
/// other pages are stored meanwhile, on streams of their own. All events are waited for but those
/// left out.
#pragma once

#include "support/index_lists.hpp"
#include "support/scripted_device.hpp"
#include "support/tier_model.hpp"

#include <kvarts/tier/listed_moves.hpp>
#include <kvarts/tier/page_mover.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace kvarts::test {

/// A wait of the contract.
enum class wait_for {
  all,
  written,
  encoded,
  stored,
  host_free,
  slots_free,
  layers,
  last_use,
  filled,
  joined,
  lists
};

/// How pages move.
struct scenario_shape {
  tier::geometry g{};
  std::int64_t copy_from_bytes = 0;
  bool listed = false;  ///< by lists in device memory
  bool one_stream = false;
};

class scenario {
 public:
  using device = scripted_device;

  scenario(scenario_shape const& shape, std::uint64_t seed)
      : shape_(shape),
        random_(seed),
        device_(seed),
        model_(shape.g, random_),
        slices_(slice_count * slice_bytes),
        back_slices_(slices_),
        lists_(list_bytes),
        ring_(device_, {slices_.data(), std::ssize(slices_)}, slice_count),
        back_ring_(device_, {back_slices_.data(), std::ssize(back_slices_)}, slice_count),
        out_(device_, ring_, {shape.copy_from_bytes}),
        in_(device_, back_ring_, {shape.copy_from_bytes}),
        layers_(device_, shape.g.layers, 2) {
    for (auto const& p : model_.pools) device_.own(p.bytes);
    device_.own(slices_);
    device_.own(back_slices_);
    device_.own(lists_);
    for (event* e : {&written_, &encoded_, &stored_, &used_, &loaded_, &cpu_read_, &second_written_,
                     &second_stored_, &other_stored_}) {
      device_.make_event(*e);
    }
  }

  /// What went wrong, or nothing.
  std::string run(wait_for left_out) {
    choose_pages();
    problem const opened = layers_.open(generation_);
    if (opened) return opened.sentence();
    leave_out(left_out);
    first_store();
    other_store();
    restore();
    second_store();
    device_.finish();
    verify();
    return wrong_ + device_.faults;
  }

 private:
  using event = device::event;
  static constexpr int slice_count = 2;
  static constexpr std::int64_t slice_bytes = 2560;
  static constexpr std::int64_t list_bytes = 1024;
  static constexpr int model_stream = 2, cpu_stream = 3, user_stream = 6;

  tier::move_streams<device> store_streams() const { return {0, shape_.one_stream ? 0 : 1}; }
  tier::move_streams<device> load_streams() const {
    return shape_.one_stream ? store_streams() : tier::move_streams<device>{4, 5};
  }

  void choose_pages() {
    auto const device_pages = index_lists::different(random_, model_.pool_pages, 16);
    first_.assign(device_pages.begin(), device_pages.begin() + 4);
    target_.assign(device_pages.begin() + 4, device_pages.begin() + 8);
    second_.assign(device_pages.begin() + 8, device_pages.begin() + 12);
    other_.assign(device_pages.begin() + 12, device_pages.end());
    auto const tier_pages = index_lists::different(random_, model_.tier_pages, 8);
    host_.assign(tier_pages.begin(), tier_pages.begin() + 4);
    other_host_.assign(tier_pages.begin() + 4, tier_pages.end());
    if (random_.between(0, 1) == 0) std::sort(host_.begin(), host_.end());
  }

  void leave_out(wait_for w) {
    left_out_ = w;
    auto& ignored = device_.ignored;
    if (w == wait_for::written) ignored.insert({written_, second_written_});
    if (w == wait_for::encoded) ignored.insert(encoded_);
    if (w == wait_for::stored) ignored.insert(stored_);
    if (w == wait_for::host_free) ignored.insert(loaded_);
    if (w == wait_for::joined) ignored.insert(joined_);
    if (w == wait_for::slots_free) ignored.insert(used_);
    for (int l = 0; w == wait_for::layers && l < shape_.g.layers; ++l) {
      ignored.insert(layers_.event_of(generation_, l));
    }
    for (auto const* r : {&ring_, &back_ring_}) {
      for (int i = 0; i < r->slices(); ++i) {
        if (w == wait_for::last_use) ignored.insert(r->slice(i).last_use);
        if (w == wait_for::filled) ignored.insert(r->slice(i).filled);
      }
    }
  }

  /// Content 1 is written and stored, then content 2 is written over it. The CPU reads the records.
  void first_store() {
    model_.write(device_, model_stream, second_, 4);
    model_.write(device_, model_stream, other_, 5);
    device_.record(second_written_, model_stream);
    model_.write(device_, model_stream, first_, 1);
    device_.record(written_, model_stream);
    store(first_, host_, store_streams(), {written_, {}, encoded_, stored_});
    device_.wait(model_stream, encoded_);
    model_.write(device_, model_stream, first_, 2);
    device_.wait(cpu_stream, stored_);
    model_.copy_tier(device_, cpu_stream);
    device_.record(cpu_read_, cpu_stream);
  }

  /// The target's pages hold content 3, which is read once more before the restore; the model reads
  /// them layer by layer behind it.
  void restore() {
    model_.write(device_, user_stream, target_, 3);
    model_.read_all(device_, user_stream, target_, before_);
    device_.record(used_, user_stream);
    tier::load_order<device> const order{stored_, used_, loaded_, &layers_, generation_};
    load(order);
    for (int l = 0; l < shape_.g.layers; ++l) {
      require_none(layers_.wait(generation_, l, model_stream));
      model_.read_layer(device_, model_stream, target_, l, restored_);
    }
    layers_.close(generation_);
  }

  /// Content 4, written long before, takes the same pages of the tier.
  void second_store() {
    for (int const s : {store_streams().kernels, store_streams().copies}) {
      device_.wait(s, cpu_read_);
    }
    store(second_, host_, store_streams(), {second_written_, loaded_, {}, second_stored_});
  }

  void other_store() {
    store(other_, other_host_, {7, 8}, {second_written_, {}, {}, other_stored_});
  }

  void store(std::vector<std::int64_t> const& from, std::vector<std::int64_t> const& host,
             tier::move_streams<device> const& streams, tier::store_order<device> const& order) {
    auto const layers = model_.layers<std::byte const>();
    tier::layer_range const all{0, shape_.g.layers};
    if (shape_.listed) {
      auto const lists = make_lists(host, from);
      require_none(store_listed(device_, model_.tier(), std::span(layers), all,
                                shape_.g.page_tokens, lists, streams.kernels, order));
      release_lists(*order.stored);
      return;
    }
    index_lists pairs(host, from);
    require_none(out_.store(model_.tier(), std::span(layers), all,
                            {pairs.pairs(), shape_.g.page_tokens, 1}, streams, order));
    pairs.scramble();
  }

  void load(tier::load_order<device> const& order) {
    auto const layers = model_.layers<std::byte>();
    tier::layer_range const all{0, shape_.g.layers};
    if (shape_.listed) {
      auto const lists = make_lists(host_, target_);
      require_none(load_listed(device_, model_.tier(), std::span(layers), all, shape_.g.page_tokens,
                               lists, load_streams().kernels, order));
      release_lists(*order.loaded);
      return;
    }
    index_lists pairs(target_, host_);
    require_none(in_.load(model_.tier(), std::span(layers), all,
                          {pairs.narrow(), shape_.g.page_tokens, 1}, load_streams(), order));
    pairs.scramble();
  }

  /// Lists at a new place of device memory; they are written over once `release_lists` allows it.
  tier::page_lists make_lists(std::vector<std::int64_t> const& host,
                              std::vector<std::int64_t> const& tensors) {
    auto* const to = reinterpret_cast<std::int32_t*>(lists_.data() + next_list_);
    next_list_ += 64;
    for (std::size_t i = 0; i < host.size(); ++i) {
      to[i] = static_cast<std::int32_t>(host[i]);
      to[i + host.size()] = static_cast<std::int32_t>(tensors[i]);
    }
    return {to, to + host.size(), static_cast<std::int64_t>(host.size())};
  }
  void release_lists(event done) {
    if (left_out_ != wait_for::lists) device_.wait(cpu_stream, done);
    std::byte* const from = lists_.data() + next_list_ - 64;
    device_.run(cpu_stream, 1, [from](int) { std::fill(from, from + 64, std::byte{0}); });
  }

  void require_none(problem const& p) {
    if (p) wrong_ += p.sentence() + "; ";
  }

  void verify() {
    if (!model_.tier_copy_has(host_, first_, 1)) wrong_ += "the CPU read other records; ";
    if (!model_.holds_plain(before_, target_, 3)) wrong_ += "slots were restored too early; ";
    if (!model_.holds_coded(restored_, first_, 1)) wrong_ += "the model read other rows; ";
    model_.copy_tier_now();
    if (!model_.tier_copy_has(host_, second_, 4)) wrong_ += "the second store went wrong; ";
    if (!model_.tier_copy_has(other_host_, other_, 5)) wrong_ += "the other store went wrong; ";
  }

  scenario_shape shape_;
  random_source random_;
  device device_;
  tier_model model_;
  std::vector<std::byte> slices_, back_slices_, lists_;
  tier::staging_ring<device> ring_, back_ring_;
  tier::page_mover<device> out_;
  event joined_ = device_.last_event();  ///< of launches and copies of `out_`
  tier::page_mover<device> in_;
  tier::layer_events<device> layers_;
  event written_{}, encoded_{}, stored_{}, used_{}, loaded_{}, cpu_read_{}, second_written_{},
      second_stored_{}, other_stored_{};
  std::int64_t generation_ = 0;
  std::int64_t next_list_ = 0;
  wait_for left_out_ = wait_for::all;
  std::vector<std::int64_t> first_, target_, second_, other_, host_, other_host_;
  page_contents before_, restored_;
  std::string wrong_;
};

}  // namespace kvarts::test
