// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>

namespace rehearse::exec {

// Is asked before a rank writes to a file: by write(), pwrite() and writev(), which C++ streams and LibTorch's writers
// call; not by stdio, which calls the kernel unseen. Lent to a world by WorldLocal<FileInterceptor>. Called in the
// rank's fiber, which it may suspend or end.
class FileInterceptor {
 public:
  struct Answer {
    int error = 0;                  // of errno: the write fails with it
    std::size_t bytes = 0;          // without an error: so many are written
    std::function<void()> after{};  // then; empty: nothing
  };

  virtual ~FileInterceptor() = default;

  // `file`: a file descriptor, of no pipe and no socket. May be anything else: a terminal, a file of another program.
  virtual Answer before_write(int rank, int file, std::size_t bytes) = 0;
};

}  // namespace rehearse::exec
