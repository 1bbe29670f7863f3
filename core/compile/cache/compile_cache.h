// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <rehearse/compile/backend.h>
#include <rehearse/compile/compile_options.h>
#include <rehearse/compile/explanation.h>

#include "compile/cache/cache_folder.h"

namespace rehearse::compiler {

// The graphs that one rank compiles of one function, with those that CompileOptions::cache_dir has of them.
class CompileCache {
 public:
  explicit CompileCache(const CompileOptions& options);

  struct Made {
    CompiledGraph graph;
    CacheUse use = CacheUse::Off;
    std::string reason = {};  // of a miss or a bypass
  };
  // backend.compile(), or what it made before. Throws what that throws, and nothing because of a file. In a simulation
  // taking a graph from the folder is a decision.
  Made compile(const BackendInput& input, Backend& backend);

  // Writes what has been compiled since: others find a graph once the time has passed that compiling it takes.
  void write_compiled();

  // Adds what has been counted.
  void add_to(CompileStats& stats) const noexcept;
  // Files that could not be used, and graphs that could not be written, oldest first.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  Made compile_in_folder(const CacheFolder& folder, const BackendInput& input, Backend& backend,
                         const std::string& of_backend);
  Made compile_anew(const CacheFolder& folder, const BackendInput& input, Backend& backend, const std::string& key,
                    std::string why);
  std::optional<CompiledGraph> take(const CacheFolder& folder, const BackendInput& input, Backend& backend,
                                    const std::string& key, std::string& why_not);
  void warn(const std::string& what);

  std::string folder_;  // empty: there is none
  std::uint64_t limit_bytes_;
  struct Compiled {
    CacheFolder folder;
    std::string key, text;
  };
  std::vector<Compiled> compiled_;  // and not written
  std::vector<std::string> warnings_;
  std::int64_t hits_ = 0, misses_ = 0, bypasses_ = 0;
};

}  // namespace rehearse::compiler
