// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rehearse/job/program.h>

namespace rehearse {

// A program's shared object in memory. A file may be loaded several times; each image has its own globals, statics and
// thread_locals, and can be reset to its initial state. Images stay for the life of the process, because objects that
// outlive a world, such as exceptions, may have a type that an image defines.
class ModuleImage {
 public:
  // Loads the file by its path, and runs its static constructors. Throws ModuleError.
  static ModuleImage& load(const std::string& file);
  // Loads the same file again, from memory and under another name, so that it becomes another image. If a rank's fiber
  // calls this, the static constructors run as part of that rank. Call sites treat the addresses of the copy as
  // those in `original`.
  static ModuleImage& load_copy(const std::string& file, const ModuleImage& original);

  // The image that contains this address; null: none.
  static ModuleImage* with(const void* address) noexcept;

  explicit ModuleImage(const void* handle);  // for the function that a newly loaded module calls
  ModuleImage(const ModuleImage&) = delete;
  ModuleImage& operator=(const ModuleImage&) = delete;

  // Resets variables to their initial values, and runs static constructors again.
  void start_again();

  // Does what a process does after main() has returned: destroys the thread_locals, then the statics.
  void finish() noexcept;

  // The programs that its static constructors have registered.
  std::vector<Program> programs;

  void add_thread_exit(void (*destroy)(void*), void* object) { thread_exits_.push_back({destroy, object}); }

 private:
  struct ThreadExit {
    void (*destroy)(void*);
    void* object;
  };

  void locate();

  const void* const handle_;  // its __dso_handle
  std::span<std::byte> all_;  // from its lowest to its highest address
  std::vector<std::span<std::byte>> writable_;
  std::vector<std::byte> first_values_;       // contents of the writable ranges, one after the other
  std::span<const std::byte> thread_locals_;  // initial values; the rest of the block is zero
  std::size_t thread_locals_bytes_ = 0;
  std::span<const std::uintptr_t> constructors_;
  std::vector<ThreadExit> thread_exits_;
  const ModuleImage* next_ = nullptr;
};

}  // namespace rehearse
