// SPDX-License-Identifier: Apache-2.0
/// @file
/// The golden vectors: the cases of index.csv and the tensors of golden.safetensors.
#pragma once

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace kvarts::test {

/// A line of index.csv.
struct golden_case {
  std::string name, codec, bits, variant, along, group, input;
};

inline std::vector<golden_case> golden_cases() {
  std::ifstream index(std::string(KVARTS_TEST_DATA) + "/index.csv");
  std::vector<golden_case> cases;
  std::string line;
  std::getline(index, line);  // headings
  while (std::getline(index, line)) {
    // Some fields are quoted, with a comma and no quote inside.
    std::vector<std::string> fields(1);
    bool quoted = false;
    for (char const c : line) {
      if (c == '"') {
        quoted = !quoted;
      } else if (c == ',' && !quoted) {
        fields.emplace_back();
      } else {
        fields.back() += c;
      }
    }
    if (fields.size() != 8) throw std::runtime_error("index.csv: " + line);
    cases.push_back({fields[0], fields[1], fields[2], fields[3], fields[4], fields[5], fields[6]});
  }
  return cases;
}

/// The tensors by name. Reads the one file that lies here, whose header has neither spaces nor
/// escapes.
class golden_file {
 public:
  golden_file() {
    std::ifstream in(std::string(KVARTS_TEST_DATA) + "/golden.safetensors", std::ios::binary);
    file_.assign(std::istreambuf_iterator<char>(in), {});
    std::uint64_t length = 0;
    std::memcpy(&length, file_.data(), sizeof(length));
    header_ = std::string_view(file_).substr(8, length);
    data_ = std::string_view(file_).substr(8 + length);
  }
  golden_file(golden_file const&) = delete;
  golden_file& operator=(golden_file const&) = delete;

  /// "[24,80]" of a shape gives {24, 80}.
  std::vector<std::int64_t> shape(std::string const& name) const {
    return numbers(name, "\"shape\":[");
  }

  /// "F16", "BF16", ...
  std::string_view dtype(std::string const& name) const {
    constexpr std::string_view key = "\"dtype\":\"";
    auto const begin = header_.find(key, entry_of(name)) + key.size();
    return header_.substr(begin, header_.find('"', begin) - begin);
  }

  /// Names of all tensors "CASE.NAME" of a case.
  std::vector<std::string> outputs_of(golden_case const& c) const {
    std::vector<std::string> names;
    std::string const quoted = "\"" + c.name + ".";
    for (auto at = header_.find(quoted); at != std::string_view::npos;
         at = header_.find(quoted, at + 1)) {
      names.emplace_back(header_.substr(at + 1, header_.find('"', at + 1) - at - 1));
    }
    return names;
  }

  /// The elements of a tensor, whose type must be as large as `T`.
  template <class T>
  std::vector<T> values(std::string const& name) const {
    auto const bounds = numbers(name, "\"data_offsets\":[");
    std::size_t count = 1;
    for (auto const extent : shape(name)) count *= static_cast<std::size_t>(extent);
    auto const begin = static_cast<std::size_t>(bounds.at(0));
    auto const bytes = static_cast<std::size_t>(bounds.at(1)) - begin;
    if (bytes != count * sizeof(T)) throw std::runtime_error("not of this type: " + name);
    std::vector<T> all(count);
    std::memcpy(all.data(), data_.data() + begin, bytes);
    return all;
  }

 private:
  std::size_t entry_of(std::string const& name) const {
    auto const entry = header_.find("\"" + name + "\":{");
    if (entry == std::string_view::npos) throw std::runtime_error("no tensor " + name);
    return entry;
  }

  /// The numbers between this key of a tensor and the next ']'.
  std::vector<std::int64_t> numbers(std::string const& name, std::string_view key) const {
    auto const begin = header_.find(key, entry_of(name)) + key.size();
    char const* at = header_.data() + begin;
    char const* const end = header_.data() + header_.find(']', begin);
    std::vector<std::int64_t> all;
    while (at < end) {
      std::int64_t number = 0;
      at = std::from_chars(at, end, number).ptr + 1;  // over the comma
      all.push_back(number);
    }
    return all;
  }

  std::string file_;
  std::string_view header_;
  std::string_view data_;
};

}  // namespace kvarts::test
