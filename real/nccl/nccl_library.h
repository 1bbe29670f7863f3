// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>
#include <stdexcept>
#include <string>

#include "nccl_api.h"

namespace rehearse::real {

// A library of the real mode is not there, or lacks a function. The text says what was tried and how to get it.
class LibraryError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// Why the loader could not do what it was asked last: dlerror(), which must be taken at once.
std::string loader_error();

// Opens libnccl and finds its functions; it stays open. `path`: a file, or a name that the loader looks for; null:
// libnccl.so.2, which is the one that LibTorch has opened where it has. Throws LibraryError.
std::unique_ptr<NcclApi> open_nccl(const char* path = nullptr);

// "NCCL 2.28.9"; "NCCL" where the library does not say its version.
std::string name_of(NcclApi& nccl);

}  // namespace rehearse::real
