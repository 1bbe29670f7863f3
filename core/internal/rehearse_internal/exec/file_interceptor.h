// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <functional>

namespace rehearse::exec {

// Called before a rank writes to a file by write(), pwrite() or writev(), which C++ streams and LibTorch's writers
// call. stdio calls the kernel directly and is not intercepted. Lent to a world by WorldLocal<FileInterceptor>. Runs in
// the rank's fiber, which it may suspend or end.
class FileInterceptor {
 public:
  struct Answer {
    int error = 0;                  // an errno with which the write fails; 0: none
    std::size_t bytes = 0;          // if there is no error: how many bytes are written
    std::function<void()> after{};  // called after the write; may be empty
  };

  virtual ~FileInterceptor() = default;

  // `file`: any file descriptor on which writes do not suspend the rank. It may be a terminal, or a file that another
  // program uses.
  virtual Answer before_write(int rank, int file, std::size_t bytes) = 0;
};

}  // namespace rehearse::exec
