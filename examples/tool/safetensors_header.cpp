// SPDX-License-Identifier: Apache-2.0
#include "safetensors_header.hpp"

#include "tool_error.hpp"

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include <cstddef>
#include <optional>
#include <set>
#include <utility>

namespace kvarts::tool {

namespace {

/// Events of nlohmann's SAX parser. Each says what may come next through `place_`.
class header_events final : public nlohmann::json_sax<nlohmann::json> {
 public:
  explicit header_events(std::string_view name) : name_(name) {}

  safetensors_header take() { return std::move(header_); }

  bool start_object(std::size_t) override {
    if (place_ == place::file) {
      place_ = place::names;
    } else if (place_ == place::entry) {
      fields_ = {};
      place_ = key_ == "__metadata__" ? place::metadata : place::fields;
    } else {
      unexpected("an object");
    }
    return true;
  }

  bool key(string_t& text) override {
    key_ = text;
    if (place_ == place::names) {
      if (!names_.insert(key_).second) fail(fmt::format("{} is there twice", in_quotes(key_)));
      entry_name_ = key_;
      place_ = place::entry;
    } else if (place_ == place::fields) {
      start_field();
    }
    return true;
  }

  bool end_object() override {
    if (place_ == place::fields) end_tensor();
    place_ = place_ == place::names ? place::file : place::names;
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ == place::shape) {
      place_ = place::shape_items;
      fields_.shape.emplace();
    } else if (place_ == place::offsets) {
      place_ = place::offset_items;
      fields_.offsets.emplace();
    } else {
      unexpected("an array");
    }
    return true;
  }

  bool end_array() override {
    if (place_ == place::offset_items && fields_.offsets->size() != 2) {
      fail_tensor(fmt::format("has {} data_offsets, not 2", fields_.offsets->size()));
    }
    place_ = place::fields;
    return true;
  }

  bool string(string_t& text) override {
    if (place_ == place::metadata) {
      if (!header_.metadata.emplace(key_, text).second) {
        fail(fmt::format("__metadata__ has {} twice", in_quotes(key_)));
      }
    } else if (place_ == place::dtype) {
      fields_.dtype = dtype_named(text);
      if (!fields_.dtype) fail_tensor(fmt::format("has an unknown type {}", in_quotes(text)));
      place_ = place::fields;
    } else {
      unexpected("a string");
    }
    return true;
  }

  bool number_unsigned(number_unsigned_t value) override {
    if (place_ == place::shape_items) {
      if (fields_.shape->size() == max_rank) {
        fail_tensor(fmt::format("has more than {} dimensions", max_rank));
      }
      if (value > INT64_MAX) fail_tensor(fmt::format("has a dimension of {}", value));
      fields_.shape->push_back(static_cast<std::int64_t>(value));
    } else if (place_ == place::offset_items) {
      if (fields_.offsets->size() == 2) fail_tensor("has more than 2 data_offsets");
      fields_.offsets->push_back(value);
    } else {
      unexpected("a number");
    }
    return true;
  }

  bool number_integer(number_integer_t value) override {
    unexpected(fmt::format("the negative number {}", value));
  }
  bool number_float(number_float_t, string_t const& text) override {
    unexpected("the number " + in_quotes(text));
  }
  bool null() override { unexpected("null"); }
  bool boolean(bool) override { unexpected("true or false"); }
  bool binary(binary_t&) override { unexpected("binary data"); }

  bool parse_error(std::size_t position, std::string const&,
                   nlohmann::json::exception const&) override {
    fail(fmt::format("not valid JSON at byte {}", position));
  }

 private:
  enum class place {
    file,          // outside of everything
    names,         // in the header's object
    entry,         // after the name of a tensor or __metadata__
    metadata,      // in __metadata__
    fields,        // in a tensor's object
    dtype,         // after "dtype"
    shape,         // after "shape"
    shape_items,   // in the array of "shape"
    offsets,       // after "data_offsets"
    offset_items,  // in the array of "data_offsets"
  };

  struct tensor_fields {
    std::optional<file_dtype> dtype;
    std::optional<std::vector<std::int64_t>> shape;
    std::optional<std::vector<std::uint64_t>> offsets;
  };

  [[noreturn]] void fail(std::string const& what) const {
    throw tool_error(fmt::format("{}: header: {}", name_, what));
  }

  [[noreturn]] void fail_tensor(std::string const& what) const {
    fail(fmt::format("tensor {} {}", in_quotes(entry_name_), what));
  }

  [[noreturn]] void unexpected(std::string_view what) const {
    std::string const where =
        place_ == place::file ? "" : fmt::format(" in {}", in_quotes(entry_name_));
    fail(fmt::format("{}{} is out of place", what, where));
  }

  void start_field() {
    auto const begin = [&](place next, bool seen) {
      if (seen) fail_tensor(fmt::format("has {} twice", key_));
      place_ = next;
    };
    if (key_ == "dtype") {
      begin(place::dtype, fields_.dtype.has_value());
    } else if (key_ == "shape") {
      begin(place::shape, fields_.shape.has_value());
    } else if (key_ == "data_offsets") {
      begin(place::offsets, fields_.offsets.has_value());
    } else {
      fail_tensor(fmt::format("has an unknown key {}", in_quotes(key_)));
    }
  }

  void end_tensor() {
    if (!fields_.dtype) fail_tensor("lacks dtype");
    if (!fields_.shape) fail_tensor("lacks shape");
    if (!fields_.offsets) fail_tensor("lacks data_offsets");
    header_.tensors.push_back({entry_name_,
                               *fields_.dtype,
                               std::move(*fields_.shape),
                               {fields_.offsets->front(), fields_.offsets->back()}});
  }

  std::string_view name_;
  safetensors_header header_;
  std::set<std::string> names_;
  place place_ = place::file;
  std::string key_;
  std::string entry_name_;
  tensor_fields fields_;
};

}  // namespace

safetensors_header parse_safetensors_header(std::string_view json, std::string_view name) {
  // The parser takes a zero byte for the end and would ignore what follows.
  if (std::size_t const zero = json.find('\0'); zero != std::string_view::npos) {
    throw tool_error(fmt::format("{}: header: not valid JSON at byte {}", name, zero + 1));
  }
  header_events events(name);
  nlohmann::json::sax_parse(json.begin(), json.end(), &events);
  return events.take();
}

}  // namespace kvarts::tool
