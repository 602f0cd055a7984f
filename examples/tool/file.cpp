// SPDX-License-Identifier: Apache-2.0
#include "file.hpp"

#include "tool_error.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/stat.h>
#include <system_error>
#include <unistd.h>

namespace kvarts::tool {

namespace {

[[noreturn]] void fail(std::string const& path, std::string_view what) {
  throw tool_error(fmt::format("{}: {}: {}", path, what, std::generic_category().message(errno)));
}

class descriptor {
 public:
  explicit descriptor(int fd) noexcept : fd_(fd) {}
  descriptor(descriptor const&) = delete;
  descriptor& operator=(descriptor const&) = delete;
  ~descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const noexcept { return fd_; }
  int close() noexcept { return ::close(std::exchange(fd_, -1)); }

 private:
  int fd_;
};

/// A new file beside the one it will replace; removed unless it has done so.
class temporary_file {
 public:
  explicit temporary_file(std::string const& target) : target_(target), fd_(create()) {}
  temporary_file(temporary_file const&) = delete;
  temporary_file& operator=(temporary_file const&) = delete;
  ~temporary_file() {
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(std::span<std::byte const> bytes) {
    constexpr std::size_t largest_call = std::size_t{1} << 30;
    while (!bytes.empty()) {
      auto const written = ::write(fd_.get(), bytes.data(), std::min(bytes.size(), largest_call));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) fail(target_, "cannot write");
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void commit() {
    // A full disk may show only when the data is pushed out.
    if (::fsync(fd_.get()) != 0 || fd_.close() != 0) fail(target_, "cannot write");
    if (std::rename(path_.c_str(), target_.c_str()) != 0) fail(target_, "cannot write");
    path_.clear();
  }

 private:
  int create() {
    for (int attempt = 0;; ++attempt) {
      std::string const name = fmt::format("{}.{}-{}.tmp", target_, ::getpid(), attempt);
      int const fd = ::open(name.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (fd >= 0) {
        path_ = name;
        return fd;
      }
      if (errno != EEXIST || attempt == 100) fail(target_, "cannot create the file");
    }
  }

  std::string target_;
  std::string path_;  // empty when there is nothing to remove
  descriptor fd_;
};

/// The file that `path` names, through symbolic links, which stay. Refuses to replace anything but
/// a regular file.
std::string replaceable(std::string const& path) {
  std::error_code ignored;  // what matters fails again, with its reason, in the calls that follow
  auto const type = std::filesystem::status(path, ignored).type();
  if (type == std::filesystem::file_type::not_found) return path;
  if (type == std::filesystem::file_type::directory) {
    throw tool_error(path + ": cannot write: it is a directory");
  }
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::none) {
    throw tool_error(path + ": cannot write: it is not a regular file");
  }
  auto const real = std::filesystem::canonical(path, ignored);
  return ignored ? path : real.string();
}

/// Whether two names lead to one file, there or not yet.
bool same_file(std::string const& a, std::string const& b) {
  if (a.empty() || b.empty()) return false;
  std::error_code error;
  if (std::filesystem::equivalent(a, b, error)) return true;
  auto const plain = [&](std::string const& name) {
    return std::filesystem::absolute(name, error).lexically_normal();
  };
  return plain(a) == plain(b);
}

}  // namespace

mapped_file::mapped_file(std::string path) : path_(std::move(path)) {
  // O_NONBLOCK: a named pipe must be refused below, not waited for.
  descriptor const fd(::open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (fd.get() < 0) fail(path_, "cannot open");
  struct stat facts {};
  if (::fstat(fd.get(), &facts) != 0) fail(path_, "cannot read");
  if (S_ISDIR(facts.st_mode)) throw tool_error(path_ + ": is a directory, not a file");
  if (!S_ISREG(facts.st_mode)) throw tool_error(path_ + ": is not a regular file");
  if (facts.st_size == 0) return;  // an empty mapping is an error
  auto const size = static_cast<std::size_t>(facts.st_size);
  void* const memory = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, fd.get(), 0);
  if (memory == MAP_FAILED) fail(path_, "cannot read");
  bytes_ = {static_cast<std::byte const*>(memory), size};
}

mapped_file::~mapped_file() {
  if (bytes_.empty()) return;
  ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

void write_file(std::string const& path, std::vector<std::span<std::byte const>> const& parts) {
  temporary_file file(replaceable(path));
  for (auto const& part : parts) file.write(part);
  file.commit();
}

void check_outputs(std::vector<std::string> const& outputs,
                   std::vector<std::string> const& inputs) {
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    for (std::string const& input : inputs) {
      if (!same_file(outputs[i], input)) continue;
      throw tool_error(outputs[i] + ": is read and written; give what is written another name", 2);
    }
    for (std::size_t j = 0; j < i; ++j) {
      if (!same_file(outputs[i], outputs[j])) continue;
      throw tool_error(outputs[i] + ": is written twice; give each output a name of its own", 2);
    }
  }
}

void write_file(std::string const& path, std::string_view text) {
  write_file(path, {std::as_bytes(std::span(text))});
}

}  // namespace kvarts::tool
