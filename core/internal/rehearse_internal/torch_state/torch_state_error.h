// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>
#include <string>
#include <utility>

namespace rehearse::torch_state {

// TorchRankState's constructor throws this error if ranks cannot share the LibTorch that is loaded. The constructor has
// then changed nothing.
class TorchStateError : public std::runtime_error {
 public:
  enum class Reason {
    not_loaded,          // libc10 or libtorch_cpu is not a shared library of this process
    unreadable,          // the library's file cannot be read
    no_symbol_table,     // the library's file has been stripped
    version_differs,     // LibTorch's thread-local variables, functions or default generators are others
    interposer_missing,  // the executable does not export Rehearse's replacement of a C++ or LibTorch function
    device_missing,      // a device does not exist or has another type than the first, or no library for it is loaded
    loaded_late,         // LibTorch sees no GPU: none exists, or code asked for GPUs before the CUDA library was loaded
  };

  TorchStateError(Reason reason, std::string library, const std::string& what)
      : std::runtime_error("rehearse: " + what), reason_(reason), library_(std::move(library)) {}

  Reason reason() const noexcept { return reason_; }
  const std::string& library() const noexcept { return library_; }

 private:
  Reason reason_;
  std::string library_;
};

}  // namespace rehearse::torch_state
