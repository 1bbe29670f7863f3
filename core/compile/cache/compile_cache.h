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

// Compiles graphs for one rank and function, or takes them from CompileOptions::cache_dir.
class CompileCache {
 public:
  explicit CompileCache(const CompileOptions& options);

  struct Made {
    CompiledGraph graph;
    CacheUse use = CacheUse::Off;
    std::string reason = {};  // for a miss or a bypass
  };
  // Returns backend.compile(), or what the folder holds for this input. Throws what the back end throws, but never
  // because of a file.
  Made compile(const BackendInput& input, Backend& backend);

  // Writes the graphs compiled since the last call. Call it after the time for compiling them has passed, so that other
  // ranks cannot find them earlier.
  void write_compiled();

  void add_to(CompileStats& stats) const noexcept;
  // Messages about unusable files, and about graphs that could not be written, oldest first.
  const std::vector<std::string>& warnings() const noexcept { return warnings_; }

 private:
  Made compile_in_folder(const CacheFolder& folder, const BackendInput& input, Backend& backend,
                         const std::string& of_backend);
  Made compile_anew(const CacheFolder& folder, const BackendInput& input, Backend& backend, const std::string& key,
                    std::string why);
  std::optional<CompiledGraph> take(const CacheFolder& folder, const BackendInput& input, Backend& backend,
                                    const std::string& key, std::string& why_not);
  void warn(const std::string& what);

  std::string folder_;  // empty: no folder
  std::uint64_t limit_bytes_;
  struct Compiled {
    CacheFolder folder;
    std::string key, text;
  };
  std::vector<Compiled> compiled_;  // not written yet
  std::vector<std::string> warnings_;
  std::int64_t hits_ = 0, misses_ = 0, bypasses_ = 0;
};

}  // namespace rehearse::compiler
