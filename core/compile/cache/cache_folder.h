// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace rehearse::compiler {

// A folder of files, each with one stored text under its key. Several processes may use it at once: a file is written
// under a name of its own, and then renamed. A folder that cannot be used stops no program: the caller gets the reason.
class CacheFolder {
 public:
  // `limit_bytes`: what the files may take together. `program`: who reads and writes, see program_id().
  CacheFolder(std::filesystem::path folder, std::uint64_t limit_bytes, std::string program)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes), program_(std::move(program)) {}

  struct Found {
    std::optional<std::string> stored = std::nullopt;
    std::string why_not = {};    // names the file; empty where it was read
    bool is_unexpected = false;  // the file is there, and is damaged, or another program's or key's
  };
  // Reads what this program has stored under the key.
  Found read(const std::string& key) const;

  // Stores `text` under the key, in the place of what was there, and removes the oldest files beyond the limit. Returns
  // why it could not, with the file; empty: it could.
  std::string write(const std::string& key, const std::string& text) const;

  std::filesystem::path file_of(const std::string& key) const;
  const std::filesystem::path& folder() const noexcept { return folder_; }

 private:
  std::string write_aside(const std::filesystem::path& file, const std::string& content) const;
  void remove_oldest() const;

  std::filesystem::path folder_;
  std::uint64_t limit_bytes_;
  std::string program_;
};

}  // namespace rehearse::compiler
