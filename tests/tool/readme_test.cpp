// SPDX-License-Identifier: Apache-2.0
// Everything in README.md is true: code is quoted from files that are compiled and run, commands run and
// print what stands below them, figures of presets are those of the program, links exist.

#include "support/catch.hpp"
#include "support/program.hpp"

#include <nlohmann/json.hpp>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

using namespace kvarts::test;
namespace fs = std::filesystem;

namespace {

fs::path const source = KVARTS_SOURCE;

std::string read(fs::path const& path) {
  std::ifstream in(path);
  REQUIRE(in);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::vector<std::string> lines_of(std::string const& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

struct block {
  std::string language;
  std::string text;
};

/// The fenced blocks, in order.
std::vector<block> blocks() {
  std::vector<block> found;
  bool inside = false;
  for (std::string const& line : lines_of(read(source / "README.md"))) {
    if (line.starts_with("```")) {
      inside = !inside;
      if (inside) found.push_back({line.substr(3), ""});
    } else if (inside) {
      found.back().text += line + "\n";
    }
  }
  REQUIRE(!inside);
  return found;
}

/// A folder that looks to commands like a checkout after `cmake/dev.sh demo`, with `kvarts` in the PATH.
class checkout {
 public:
  checkout() : root_(fs::path(folder_ / "checkout")) {
    fs::create_directories(root_ / "build/release");
    fs::create_directory_symlink(source / "examples", root_ / "examples");
    fs::create_directory_symlink(fs::path(KVARTS_TOOL_EXE).parent_path(),
                                 root_ / "build/release/bin");
  }

  void write(std::string const& name, std::string const& text) const {
    std::ofstream(root_ / name) << text;
  }

  /// Runs a block of commands, which must succeed; returns what they print.
  std::string run(std::string const& commands) const {
    std::ofstream(root_ / "commands.sh") << commands;
    std::string const line = "cd '" + root_.string() +
                             "' && PATH=\"$PWD/build/release/bin:$PATH\" bash -euo pipefail "
                             "commands.sh >out 2>err </dev/null";
    int const status = std::system(line.c_str());
    INFO(commands << read(root_ / "err"));
    REQUIRE(status == 0);
    return read(root_ / "out");
  }

 private:
  scratch_folder folder_;
  fs::path root_;
};

/// The cells of a row of a table.
std::vector<std::string> cells(std::string const& line) {
  std::vector<std::string> found;
  std::istringstream in(line.substr(1));
  for (std::string cell; std::getline(in, cell, '|');) {
    auto const begin = cell.find_first_not_of(' ');
    auto const end = cell.find_last_not_of(' ');
    found.push_back(begin == std::string::npos ? "" : cell.substr(begin, end - begin + 1));
  }
  return found;
}

std::string three_digits(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g", x);
  return text;
}

}  // namespace

TEST_CASE("code in the README stands in an example") {
  std::string examples;
  for (auto const& entry : fs::directory_iterator(source / "examples")) {
    if (entry.path().extension() == ".cpp") examples += read(entry.path());
  }
  int count = 0;
  for (block const& b : blocks()) {
    if (b.language != "cpp") continue;
    INFO(b.text);
    CHECK(examples.find(b.text) != std::string::npos);
    ++count;
  }
  CHECK(count >= 3);
}

TEST_CASE("the CMake lines of the README are those of a tested consumer") {
  auto const consumer = read(source / "tests/package/find_package/CMakeLists.txt");
  for (block const& b : blocks()) {
    if (b.language != "cmake") continue;
    for (std::string const& line : lines_of(b.text)) {
      INFO(line);
      CHECK(consumer.find(line) != std::string::npos);
    }
  }
}

TEST_CASE("commands of the README run and print what it says") {
  checkout const here;
  std::string const dev_commands = read(source / "cmake/dev.sh");
  std::string printed;
  for (block const& b : blocks()) {
    if (b.language == "sh" && b.text.starts_with("cmake/dev.sh")) {
      for (std::string const& line : lines_of(b.text)) {  // run by people and CI, not from here
        std::string const command = line.substr(13, line.find(' ', 13) - 13);
        INFO(line);
        CHECK(dev_commands.find("\n  " + command + ") ") != std::string::npos);
      }
    } else if (b.language == "json") {
      here.write("mine.json", b.text);
    } else if (b.language == "sh") {
      printed = here.run(b.text);
    } else if (b.language == "text") {
      INFO(printed);
      CHECK(printed.find(b.text) != std::string::npos);
    }
  }
}

TEST_CASE("figures of the presets in the README are those of the program") {
  checkout const here;
  here.run(
      "kvarts codecs --json > codecs.json\n"
      "kvarts eval examples/data/sample.safetensors --json eval.json "
      "--calibration examples/data/sample.calibration.safetensors\n");
  auto const codecs = nlohmann::json::parse(here.run("cat codecs.json"));
  auto const eval = nlohmann::json::parse(here.run("cat eval.json"));
  auto const text = read(source / "README.md");
  int rows = 0;
  for (auto const& preset : codecs["presets"]) {
    std::string const name = preset["name"];
    auto const begin = text.find("\n| `" + name + "` |");
    INFO(name);
    REQUIRE(begin != std::string::npos);
    auto const row = cells(text.substr(begin + 1, text.find('\n', begin + 1) - begin - 1));
    REQUIRE(row.size() >= 7);
    auto const& bits = preset["bits"];
    CHECK(row[1] == nlohmann::json(bits["k"]).dump() + " / " + nlohmann::json(bits["v"]).dump());
    for (auto const& result : eval["results"]) {
      if (result["preset"] != name) continue;
      CHECK(row[4] == three_digits(result["mean"]["attention_kl"]));
      CHECK(row[5] == three_digits(result["mean"]["output_rel_err"]));
      ++rows;
    }
  }
  CHECK(rows == static_cast<int>(codecs["presets"].size()));
}

TEST_CASE("links of the README lead somewhere") {
  std::string const text = read(source / "README.md");
  int count = 0;
  for (auto at = text.find("]("); at != std::string::npos; at = text.find("](", at + 2)) {
    std::string const target = text.substr(at + 2, text.find(')', at) - at - 2);
    if (target.starts_with("https://")) continue;
    INFO(target);
    CHECK(fs::exists(source / target));
    ++count;
  }
  CHECK(count > 10);
}
