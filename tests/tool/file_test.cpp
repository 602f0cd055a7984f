// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include "support/byte_strings.hpp"
#include "support/catch.hpp"
#include "support/tool_faults.hpp"

#include <csignal>
#include <filesystem>
#include <fstream>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

namespace {

using namespace kvarts::test;
using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;

std::string contents(std::string const& path) { return text_of(mapped_file(path).bytes()); }

std::string open_error(std::string const& path) {
  return sentence_of([&] { mapped_file{path}; });
}

TEST_CASE("files are mapped whole, empty ones too") {
  scratch_folder const folder;
  write_file(folder / "empty", "");
  CHECK(mapped_file(folder / "empty").bytes().empty());
  write_file(folder / "a", {bytes_of("key"), bytes_of(""), bytes_of("s")});
  mapped_file first(folder / "a");
  CHECK(text_of(first.bytes()) == "keys");
  mapped_file second(std::move(first));
  CHECK(text_of(second.bytes()) == "keys");
  second = mapped_file(folder / "empty");
  CHECK(second.bytes().empty());
  CHECK(second.path() == folder / "empty");
}

TEST_CASE("what is not a readable regular file is refused by name") {
  scratch_folder const folder;
  CHECK_THAT(open_error(folder / "none"), ContainsSubstring("none: cannot open: No such file"));
  CHECK_THAT(open_error(folder / ""), ContainsSubstring("is a directory, not a file"));
  CHECK_THAT(open_error("/dev/null"), ContainsSubstring("/dev/null: is not a regular file"));
  REQUIRE(::mkfifo((folder / "pipe").c_str(), 0600) == 0);
  CHECK_THAT(open_error(folder / "pipe"), ContainsSubstring("is not a regular file"));
  if (::geteuid() != 0) {  // root reads everything
    write_file(folder / "secret", "x");
    REQUIRE(::chmod((folder / "secret").c_str(), 0) == 0);
    CHECK_THAT(open_error(folder / "secret"), ContainsSubstring("Permission denied"));
  }
}

TEST_CASE("writing replaces a file at once, through symbolic links") {
  scratch_folder const folder;
  write_file(folder / "a", "old");
  mapped_file const old(folder / "a");
  std::filesystem::create_symlink("a", folder / "link");
  write_file(folder / "link", "new and longer");
  CHECK(contents(folder / "a") == "new and longer");
  CHECK(std::filesystem::is_symlink(folder / "link"));
  CHECK(text_of(old.bytes()) == "old");  // whoever reads the old file keeps it
  CHECK(folder.files() == 2);
}

TEST_CASE("what cannot be written is refused by name and leaves nothing behind") {
  scratch_folder const folder;
  auto const write_error = [](std::string const& path) {
    return sentence_of([&] { write_file(path, "x"); });
  };
  CHECK_THAT(write_error(folder / "none/a"), ContainsSubstring("No such file or directory"));
  CHECK_THAT(write_error(folder / ""), ContainsSubstring("it is a directory"));
  CHECK_THAT(write_error("/dev/null"), ContainsSubstring("it is not a regular file"));
  CHECK(std::filesystem::is_character_file("/dev/null"));
  CHECK(folder.files() == 0);
}

TEST_CASE("a write that fails half-way keeps the old file") {
  scratch_folder const folder;
  write_file(folder / "a", "old");
  rlimit before{};
  REQUIRE(::getrlimit(RLIMIT_FSIZE, &before) == 0);
  auto* const handler = std::signal(SIGXFSZ, SIG_IGN);
  rlimit const small{4096, before.rlim_max};
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &small) == 0);
  std::string const sentence =
      sentence_of([&] { write_file(folder / "a", std::string(5000, 'x')); });
  REQUIRE(::setrlimit(RLIMIT_FSIZE, &before) == 0);
  std::signal(SIGXFSZ, handler);
  CHECK_THAT(sentence, ContainsSubstring("a: cannot write: File too large"));
  CHECK(contents(folder / "a") == "old");
  CHECK(folder.files() == 1);
}

}  // namespace
