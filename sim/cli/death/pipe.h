// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <string>
#include <utility>

namespace rehearse::cli {

// Owns a file descriptor and closes it at the end of its life. Until then, a program that closes files which it did not
// open cannot close this one (rehearse_internal/exec/kept_files.h).
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

  // Call this in a forked process to protect the file there, too: a fork inherits the file, but not its protection.
  void keep() const noexcept;

 private:
  int fd_;
};

struct Pipe {
  Fd read_end, write_end;
};
Pipe make_pipe();  // throws std::system_error

// Blocks until all bytes are there. False if the other side closes first, or if reading fails.
bool read_whole(int fd, void* data, std::size_t size);

// Blocks until all bytes are written. Throws std::system_error, also if nobody reads any more (then SIGPIPE must be
// ignored).
void write_whole(int fd, const void* data, std::size_t size);

// The whole content of a file, whatever its current position is.
std::string contents(int fd);

}  // namespace rehearse::cli
