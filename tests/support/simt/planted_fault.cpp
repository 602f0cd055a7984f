// SPDX-License-Identifier: Apache-2.0
#include "support/simt/planted_fault.hpp"

#include "support/simt/sanitizers.hpp"

#include <cstdlib>
#include <sys/wait.h>
#include <unistd.h>

namespace kvarts::kernels::simt {

namespace {

enum exit_code { right = 10, wrong = 11, diagnosed = 12 };

[[noreturn]] void run_in_child(trial run, schedule const& s, int output) {
  dup2(output, STDOUT_FILENO);
  dup2(output, STDERR_FILENO);
  set_schedule(s);
  int code = right;
  try {
    if (!run()) code = wrong;
  } catch (fault_error const& e) {
    std::fprintf(stderr, "%s\n", e.what());
    code = diagnosed;
  }
  _exit(code);
}

std::string read_all(int input) {
  std::string text;
  char part[4096];
  for (ssize_t n = read(input, part, sizeof part); n > 0; n = read(input, part, sizeof part)) {
    text.append(part, static_cast<std::size_t>(n));
  }
  return text;
}

}  // namespace

std::string to_string(finder set) {
  struct {
    finder one;
    char const* name;
  } constexpr names[] = {{finder::result, "result"}, {finder::diagnosis, "diagnosis"},
                         {finder::asan, "ASan"},     {finder::ubsan, "UBSan"},
                         {finder::tsan, "TSan"},     {finder::crash, "crash"}};
  std::string text;
  for (auto const& [one, name] : names) {
    if ((set & one) != finder::none) text += (text.empty() ? "" : ", ") + std::string(name);
  }
  return text;
}

finder findings(trial run, schedule const& s, std::string& text) {
  int ends[2];
  if (pipe(ends) != 0) throw fault_error("no pipe");
  std::fflush(nullptr);
  pid_t const child = fork();
  if (child < 0) throw fault_error("no process");
  if (child == 0) run_in_child(run, s, ends[1]);
  close(ends[1]);
  text = read_all(ends[0]);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  finder found = finder::none;
  auto const wrote = [&](char const* part) { return text.find(part) != std::string::npos; };
  if (wrote("ERROR: AddressSanitizer")) found = found | finder::asan;
  if (wrote("runtime error: ")) found = found | finder::ubsan;
  if (wrote("ThreadSanitizer: data race")) found = found | finder::tsan;
  int const code = WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (code == wrong) found = found | finder::result;
  if (code == diagnosed) found = found | finder::diagnosis;
  if (found == finder::none && code != right) return finder::crash;
  return found;
}

finder due(finder found_by) {
  finder const here = asan ? finder::asan | finder::ubsan : tsan ? finder::tsan : finder::none;
  if ((found_by & here) != finder::none) return found_by & here;  // a sanitizer ends the program
  return found_by & (finder::result | finder::diagnosis);
}

}  // namespace kvarts::kernels::simt
