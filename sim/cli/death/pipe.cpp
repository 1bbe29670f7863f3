// SPDX-License-Identifier: BSD-3-Clause
#include "cli/death/pipe.h"

#include <cerrno>
#include <system_error>

#include <fcntl.h>
#include <rehearse_internal/exec/kept_files.h>
#include <unistd.h>

namespace rehearse::cli {
namespace {

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

Fd::Fd(int fd) noexcept : fd_(fd) { keep(); }

Fd::~Fd() {
  if (fd_ < 0) return;
  exec::stop_keeping(fd_);
  close(fd_);
}

void Fd::keep() const noexcept {
  if (fd_ >= 0) exec::keep_open(fd_);
}

Pipe make_pipe() {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail("a pipe for a worker");
  return {Fd(ends[0]), Fd(ends[1])};
}

bool read_whole(int fd, void* data, std::size_t size) {
  auto* bytes = static_cast<char*>(data);
  while (size > 0) {
    const ssize_t got = read(fd, bytes, size);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    bytes += got;
    size -= static_cast<std::size_t>(got);
  }
  return true;
}

void write_whole(int fd, const void* data, std::size_t size) {
  const auto* bytes = static_cast<const char*>(data);
  while (size > 0) {
    const ssize_t written = write(fd, bytes, size);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("the other side of a worker's pipe");
    bytes += written;
    size -= static_cast<std::size_t>(written);
  }
}

std::string contents(int fd) {
  std::string text;
  char buffer[4096];
  for (off_t at = 0;; at = static_cast<off_t>(text.size())) {
    const ssize_t got = pread(fd, buffer, sizeof buffer, at);
    if (got <= 0) return text;
    text.append(buffer, static_cast<std::size_t>(got));
  }
}

}  // namespace rehearse::cli
