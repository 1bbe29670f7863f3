// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <rehearse/job/program.h>

namespace rehearse {

// A program's shared object in memory. However often a file is loaded, each image has globals, statics and
// thread_locals of its own, and can be set back to how it was loaded. Images stay for the life of the process: what
// outlives a world, such as an exception, may be of a type that one of them defines.
class ModuleImage {
 public:
  // By its path. Runs its static constructors. Throws ModuleError.
  static ModuleImage& load(const std::string& file);
  // The same file once more, from memory: under another name, so that it is another image. In a rank's fiber its static
  // constructors are the rank's. Addresses in it are told as those in `original`.
  static ModuleImage& load_copy(const std::string& file, const ModuleImage& original);

  // The image with this address in it; null: none.
  static ModuleImage* with(const void* address) noexcept;

  explicit ModuleImage(const void* handle);  // for whoever is told that one has been loaded
  ModuleImage(const ModuleImage&) = delete;
  ModuleImage& operator=(const ModuleImage&) = delete;

  // Variables get their first values again, and static constructors run once more.
  void start_again();

  // What a process does when main() has returned: destroys the thread_locals, then the statics.
  void finish() noexcept;

  // Those that its static constructors have registered.
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
  std::vector<std::byte> first_values_;       // of what is writable, side by side
  std::span<const std::byte> thread_locals_;  // first values; what lies behind them is 0
  std::size_t thread_locals_bytes_ = 0;
  std::span<const std::uintptr_t> constructors_;
  std::vector<ThreadExit> thread_exits_;
  const ModuleImage* next_ = nullptr;
};

}  // namespace rehearse
