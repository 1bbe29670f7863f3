// SPDX-License-Identifier: BSD-3-Clause
// Writes of ranks to files, in which a world may inject faults.
#include "file_writes.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <vector>

#include <rehearse_internal/exec/file_interceptor.h>
#include <rehearse_internal/exec/world_local.h>
#include <sys/uio.h>
#include <unistd.h>

#include "exec/interpose/real.h"
#include "exec/interpose/sync/preempt.h"
#include "exec/interpose/world_state.h"
#include "file_ends.h"

namespace rehearse::exec::interpose {

ssize_t file_writev(int file, const iovec* pieces, int count) REHEARSE_INTERPOSES("writev");
ssize_t file_pwrite(int file, const void* data, size_t bytes, off_t from) REHEARSE_INTERPOSES("pwrite");
ssize_t file_pwrite64(int file, const void* data, size_t bytes, off64_t from) REHEARSE_INTERPOSES("pwrite64");

namespace {

constinit Real<ssize_t (*)(int, const void*, size_t)> real_file_write("write");
constinit Real<ssize_t (*)(int, const iovec*, int)> real_writev("writev");
constinit Real<ssize_t (*)(int, const void*, size_t, off_t)> real_pwrite("pwrite");
constinit Real<ssize_t (*)(int, const void*, size_t, off64_t)> real_pwrite64("pwrite64");

// `write` writes up to the given number of bytes, and returns what write() returns.
template <class Write>
ssize_t through_gate(int file, size_t bytes, const Write& write) {
  Fiber* const fiber = current_fiber();
  FileInterceptor* const interceptor = fiber != nullptr ? WorldLocal<FileInterceptor>::find() : nullptr;
  if (interceptor == nullptr || bytes == 0 || ::getpid() != fiber->world->process) return write(bytes);
  const auto answer = interceptor->before_write(fiber->rank, file, bytes);
  if (answer.error != 0) {
    errno = answer.error;
    return -1;
  }
  const ssize_t written = write(answer.bytes);
  const int error = errno;
  if (answer.after) answer.after();
  errno = error;
  return written;
}

size_t bytes_of(const iovec* pieces, int count) {
  size_t bytes = 0;
  for (int i = 0; i < count; ++i) bytes += pieces[i].iov_len;
  return bytes;
}

ssize_t write_pieces(int file, const iovec* pieces, int count, size_t most) {
  std::vector<iovec> first(pieces, pieces + count);
  for (auto& piece : first) {
    piece.iov_len = std::min(piece.iov_len, most);
    most -= piece.iov_len;
  }
  return real_writev(file, first.data(), count);
}

}  // namespace

ssize_t write_to_file(int file, const void* data, std::size_t bytes) {
  return through_gate(file, bytes, [=](size_t most) { return real_file_write(file, data, most); });
}

ssize_t file_writev(int file, const iovec* pieces, int count) {
  if (may_be_shared(file)) preempt_file_call(__builtin_return_address(0), file);
  if (current_fiber() == nullptr || count <= 0) return real_writev(file, pieces, count);
  const auto all = bytes_of(pieces, count);
  return through_gate(file, all, [=](size_t most) {
    return most == all ? real_writev(file, pieces, count) : write_pieces(file, pieces, count, most);
  });
}

ssize_t file_pwrite(int file, const void* data, size_t bytes, off_t from) {
  if (may_be_shared(file)) preempt_file_call(__builtin_return_address(0), file);
  return through_gate(file, bytes, [=](size_t most) { return real_pwrite(file, data, most, from); });
}

ssize_t file_pwrite64(int file, const void* data, size_t bytes, off64_t from) {
  if (may_be_shared(file)) preempt_file_call(__builtin_return_address(0), file);
  return through_gate(file, bytes, [=](size_t most) { return real_pwrite64(file, data, most, from); });
}

std::span<const Interposed> write_functions() {
  static const std::array functions = {
      Interposed{"writev", reinterpret_cast<const void*>(file_writev)},
      Interposed{"pwrite", reinterpret_cast<const void*>(file_pwrite)},
      Interposed{"pwrite64", reinterpret_cast<const void*>(file_pwrite64)},
  };
  return functions;
}

}  // namespace rehearse::exec::interpose
