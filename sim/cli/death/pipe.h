// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace rehearse::cli {

// A file descriptor that is closed when it goes, and not before: a program that closes files which are not its own does
// not reach it (rehearse_internal/exec/kept_files.h).
class Fd {
 public:
  explicit Fd(int fd = -1) noexcept;
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd();

  int get() const noexcept { return fd_; }

  // In a process that was forked: what the program may not close is its parent's until this is said.
  void keep() const noexcept;

 private:
  int fd_;
};

struct Pipe {
  Fd read_end, write_end;
};
Pipe make_pipe();  // throws std::system_error

// Blocks until all is there. False when the other side was closed first.
bool read_whole(int fd, void* data, std::size_t size);

// Blocks until all is written. Throws std::system_error, also when nobody reads any more (SIGPIPE is ignored
// then).
void write_whole(int fd, const void* data, std::size_t size);

// All that lies in a file, wherever it is read and written just now.
std::string contents(int fd);

}  // namespace rehearse::cli
