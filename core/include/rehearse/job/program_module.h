// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <stdexcept>

namespace rehearse {

// A shared object with programs cannot be what it is to be; the text names the file and says why.
class ModuleError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

// A static object of this type makes the programs of a shared object known, as if they were linked; each rank that runs
// one has a copy of the object for itself, so that its globals, statics and thread_locals are the rank's own.
// rehearse_add_program(<name> ... MODULE) writes it. The file is loaded when programs are first asked for, by
// programs(), which then throws ModuleError where that fails.
class RegisteredModule {
 public:
  // A literal: the file's name in the folder of the executable.
  explicit RegisteredModule(const char* file);
};

}  // namespace rehearse
