// SPDX-License-Identifier: Apache-2.0
// What the program shows people: tables, guesses at mistyped names, progress.
#include "progress.hpp"
#include "support/catch.hpp"
#include "table.hpp"
#include "unknown_name.hpp"

#include <chrono>
#include <pty.h>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

using namespace kvarts::tool;
using Catch::Matchers::ContainsSubstring;
using names = std::vector<std::string>;

TEST_CASE("a table's columns are as wide as their widest cell") {
  table t({{"name", false}, {"bits"}, {"source", false}});
  t.add({"int8_head", "8.125", "HiQCache"});
  t.add({"f16", "16"});
  CHECK(t.text() ==
        "name        bits  source\n"
        "int8_head  8.125  HiQCache\n"
        "f16           16\n");
}

TEST_CASE("a table without rows is its headings") {
  CHECK(table({{"a"}, {"b"}}).text() == "a  b\n");
}

TEST_CASE("near names are those that few letters away or begin alike") {
  names const known = {"int8_head", "symmetric3_narrow", "symmetric3_wide", "midrise3", "f16",
                       "bf16"};
  CHECK(near_names("int8_haed", known) == names{"int8_head"});
  CHECK(near_names("symmetric3", known) == names{"symmetric3_narrow", "symmetric3_wide"});
  CHECK(near_names("fp16", known) == names{"f16"});
  CHECK(near_names("mdrise3", known) == names{"midrise3"});
  CHECK(near_names("codebook4", known).empty());
  CHECK(near_names("", known).empty());
  CHECK(near_names(std::string(1'000'000, 'x'), known).empty());
  CHECK(near_names("aaaa", {"aaab", "aaac", "aaad", "aaae"}).size() == 3);
}

TEST_CASE("an unknown name comes with a guess or with advice") {
  CHECK(unknown_name("codec", "f61", {"f16", "midrise3"}, "look it up") ==
        "unknown codec \"f61\"; look it up");
  CHECK(unknown_name("codec", "midrse3", {"f16", "midrise3"}, "look it up") ==
        "unknown codec \"midrse3\"; did you mean midrise3?");
  CHECK(unknown_name("codec", "a\nb", {}, "look it up") == "unknown codec \"a\\nb\"; look it up");
}

/// What `work` writes to stderr where that is a terminal.
template <class F>
std::string on_a_terminal(F work) {
  int screen = -1;
  pid_t const child = ::forkpty(&screen, nullptr, nullptr, nullptr);
  REQUIRE(child >= 0);
  if (child == 0) {
    work();
    ::_exit(0);
  }
  std::string seen;
  char buffer[256];
  for (ssize_t n = 0; (n = ::read(screen, buffer, sizeof buffer)) > 0;) {
    seen.append(buffer, static_cast<std::size_t>(n));
  }
  ::waitpid(child, nullptr, 0);
  ::close(screen);
  return seen;
}

TEST_CASE("work of over a second shows a bar on a terminal, and removes it") {
  std::string const seen = on_a_terminal([] {
    progress bar("encoding", 4);
    bar.advance(1);
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    bar.advance(1);
  });
  CHECK(seen == "\rencoding [####################....................]  50%\r\x1b[K");
}

TEST_CASE("quick work shows nothing") {
  CHECK(on_a_terminal([] {
          progress bar("encoding", 2);
          bar.advance(2);
        }).empty());
}

}  // namespace
