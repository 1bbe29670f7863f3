// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string_view>
#include <vector>

namespace rehearse::torch_state {

// A function of LibTorch that Rehearse replaces. The dynamic linker prefers an executable's definition to LibTorch's,
// also for calls that LibTorch makes. The function may have another name in another version of LibTorch, and Rehearse
// defines all names.
struct Interposed {
  struct Name {
    const char* symbol;  // mangled
    const void* ours;
  };
  std::string_view function;
  std::string_view without;  // what happens if LibTorch's own is called
  std::vector<Name> names;
};

// Looks for the function in the libraries behind the executable. Throws TorchStateError if none of them has it under
// any of its names, or if calls of one that they have do not come to us.
void require_interposed(const Interposed& interposed);

}  // namespace rehearse::torch_state
