// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "nccl_api.h"

namespace rehearse::real {

// A library that the real mode needs is missing, or lacks a function. The text says what was tried and how to get the
// library.
class LibraryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Why the loader's last operation failed: dlerror(). Call it at once, before another operation.
std::string loader_error();

// Opens libnccl and finds its functions; the library stays open. `path`: a file, or a name for the loader; null:
// libnccl.so.2. If LibTorch has opened a library of that name, the loader returns the same one. Throws LibraryError.
std::unique_ptr<NcclApi> open_nccl(const char* path = nullptr);

// For example "NCCL 2.28.9"; "NCCL" if the library does not tell its version.
std::string name_of(NcclApi& nccl);

}  // namespace rehearse::real
