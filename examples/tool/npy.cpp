// SPDX-License-Identifier: Apache-2.0
#include "npy.hpp"

#include "tool_error.hpp"

#include <kvarts/bits.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <array>
#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace kvarts::tool {

namespace {

constexpr std::string_view magic = "\x93NUMPY";

struct type_code {
  std::string_view code;
  file_dtype type;
};

constexpr std::array<type_code, 12> type_codes = {{{"|b1", file_dtype::boolean},
                                                   {"|u1", file_dtype::u8},
                                                   {"|i1", file_dtype::i8},
                                                   {"<u2", file_dtype::u16},
                                                   {"<i2", file_dtype::i16},
                                                   {"<f2", file_dtype::f16},
                                                   {"<u4", file_dtype::u32},
                                                   {"<i4", file_dtype::i32},
                                                   {"<f4", file_dtype::f32},
                                                   {"<u8", file_dtype::u64},
                                                   {"<i8", file_dtype::i64},
                                                   {"<f8", file_dtype::f64}}};

/// Reads the Python dictionary of a header:
/// `{'descr': '<f2', 'fortran_order': False, 'shape': (3, 4), }` and white space after it.
class header_parser {
 public:
  header_parser(std::string_view text, std::string_view name) : rest_(text), name_(name) {}

  tensor parse() {
    expect('{', "'{' at the header's begin");
    while (!accept('}')) {
      parse_entry();
      if (!accept(',')) {
        expect('}', "',' or '}' after an entry of the header");
        break;
      }
    }
    skip_space();
    if (!rest_.empty()) fail("the header goes on after its '}'");
    if (!type_) fail("the header lacks 'descr'");
    if (!order_seen_) fail("the header lacks 'fortran_order'");
    if (!shape_) fail("the header lacks 'shape'");
    return {*type_, std::move(*shape_), {}};
  }

 private:
  [[noreturn]] void fail(std::string const& what) const {
    throw tool_error(fmt::format("{}: {}", name_, what));
  }

  void parse_entry() {
    std::string_view const key = string("a key of the header");
    expect(':', "':' after a key of the header");
    if (key == "descr") {
      if (type_) fail("the header has 'descr' twice");
      type_ = parse_type();
    } else if (key == "fortran_order") {
      if (order_seen_) fail("the header has 'fortran_order' twice");
      parse_order();
      order_seen_ = true;
    } else if (key == "shape") {
      if (shape_) fail("the header has 'shape' twice");
      shape_ = parse_shape();
    } else {
      fail("the header has an unknown key " + in_quotes(key));
    }
  }

  file_dtype parse_type() {
    skip_space();
    if (rest_.starts_with('[')) fail("structured arrays are not supported");
    std::string_view const code = string("a type name after 'descr'");
    for (type_code const& known : type_codes) {
      if (known.code == code) return known.type;
    }
    if (code.starts_with('>')) {
      fail(fmt::format("big-endian type {} is not supported; store it little-endian",
                       in_quotes(code)));
    }
    fail(fmt::format("type {} is not supported", in_quotes(code)));
  }

  void parse_order() {
    skip_space();
    if (accept_word("False")) return;
    if (accept_word("True")) {
      fail("Fortran order is not supported; store the array in C order");
    }
    fail("expected True or False after 'fortran_order'");
  }

  std::vector<std::int64_t> parse_shape() {
    std::vector<std::int64_t> shape;
    expect('(', "'(' after 'shape'");
    while (!accept(')')) {
      if (shape.size() == max_rank) fail(fmt::format("more than {} dimensions", max_rank));
      shape.push_back(integer());
      bool const comma = accept(',');
      if (accept(')')) {
        if (!comma && shape.size() == 1) fail("the shape is a number in brackets, not a tuple");
        break;
      }
      if (!comma) fail("expected ',' or ')' in the shape");
    }
    return shape;
  }

  std::int64_t integer() {
    skip_space();
    std::int64_t value = 0;
    auto const [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), value);
    if (error == std::errc::result_out_of_range) fail("a dimension does not fit 63 bits");
    if (error != std::errc()) fail("expected a number in the shape");
    if (value < 0) fail(fmt::format("a dimension is {}", value));
    rest_.remove_prefix(static_cast<std::size_t>(end - rest_.data()));
    return value;
  }

  /// A string literal without escapes; no valid header needs one.
  std::string_view string(std::string_view what) {
    skip_space();
    char const quote = rest_.empty() ? '\0' : rest_.front();
    std::size_t const end = rest_.find(quote, 1);
    if ((quote != '\'' && quote != '"') || end == std::string_view::npos) {
      fail(fmt::format("expected {}", what));
    }
    std::string_view const text = rest_.substr(1, end - 1);
    rest_.remove_prefix(end + 1);
    return text;
  }

  void skip_space() {
    while (!rest_.empty() && (rest_.front() == ' ' || rest_.front() == '\n'))
      rest_.remove_prefix(1);
  }

  bool accept(char c) {
    skip_space();
    if (!rest_.starts_with(c)) return false;
    rest_.remove_prefix(1);
    return true;
  }

  bool accept_word(std::string_view word) {
    if (!rest_.starts_with(word)) return false;
    rest_.remove_prefix(word.size());
    return true;
  }

  void expect(char c, std::string_view what) {
    if (!accept(c)) fail(fmt::format("expected {}", what));
  }

  std::string_view rest_;
  std::string_view name_;
  std::optional<file_dtype> type_;
  std::optional<std::vector<std::int64_t>> shape_;
  bool order_seen_ = false;
};

/// Splits off the header's text; what remains of `file` are the array's bytes.
std::string_view take_header(std::span<std::byte const>& file, std::string_view name) {
  auto const need = [&](std::size_t bytes) {
    if (file.size() < bytes) {
      throw tool_error(
          fmt::format("{}: cut inside the header: {} bytes left of {}", name, file.size(), bytes));
    }
  };
  need(magic.size() + 2);
  std::string_view const begin(reinterpret_cast<char const*>(file.data()), magic.size() + 2);
  if (!begin.starts_with(magic)) throw tool_error(fmt::format("{}: not a .npy file", name));
  int const major = std::to_integer<int>(file[6]);
  int const minor = std::to_integer<int>(file[7]);
  if (major < 1 || major > 3 || minor != 0) {
    throw tool_error(fmt::format("{}: .npy version {}.{} is not supported", name, major, minor));
  }
  file = file.subspan(begin.size());
  std::size_t const length_bytes = major == 1 ? 2 : 4;
  need(length_bytes);
  std::size_t const length = major == 1 ? load_unaligned<std::uint16_t>(file.data())
                                        : load_unaligned<std::uint32_t>(file.data());
  file = file.subspan(length_bytes);
  need(length);
  std::string_view const text(reinterpret_cast<char const*>(file.data()), length);
  file = file.subspan(length);
  return text;
}

}  // namespace

tensor parse_npy(std::span<std::byte const> file, std::string_view name) {
  std::string_view const header = take_header(file, name);
  tensor array = header_parser(header, name).parse();
  array.bytes = file;
  check_size(array, name);
  return array;
}

std::string npy_prologue(file_dtype type, std::span<std::int64_t const> shape,
                         std::string_view name) {
  std::string_view code;
  for (type_code const& known : type_codes) {
    if (known.type == type) code = known.code;
  }
  if (code.empty()) throw tool_error(fmt::format("{}: NumPy has no type {}", name, name_of(type)));
  std::string header = fmt::format("{{'descr': '{}', 'fortran_order': False, 'shape': ({}{}), }}",
                                   code, fmt::join(shape, ", "), shape.size() == 1 ? "," : "");
  // The array begins at a multiple of 64 bytes.
  constexpr std::size_t fixed = magic.size() + 4;
  auto const total =
      static_cast<std::size_t>(round_up(static_cast<std::int64_t>(fixed + header.size() + 1), 64));
  header.resize(total - fixed - 1, ' ');
  header += '\n';
  std::size_t const length = header.size();
  std::string prologue(magic);
  for (std::size_t const byte : {std::size_t{1}, std::size_t{0}, length & 0xFF, length >> 8}) {
    prologue += static_cast<char>(byte);
  }
  return prologue + header;
}

void write_npy(std::string const& path, tensor const& values) {
  check_size(values, path);
  std::string const prologue = npy_prologue(values.dtype, values.shape, path);
  write_file(path, {std::as_bytes(std::span(prologue)), values.bytes});
}

}  // namespace kvarts::tool
