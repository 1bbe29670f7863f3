// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace rehearse {

// A shared object with programs cannot be loaded or used. The text names the file and says why.
class ModuleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A static object of this type registers the programs of a shared object as if they were linked. Each rank that runs
// such a program has its own copy of the shared object, so that globals, statics and thread_locals belong to the rank.
// rehearse_add_program(<name> ... MODULE) generates the static object. The first call of programs() loads the file, and
// throws ModuleError if that fails.
class RegisteredModule {
 public:
  // `file`: a string literal, the file's name in the folder of the executable.
  explicit RegisteredModule(const char* file);
};

}  // namespace rehearse
