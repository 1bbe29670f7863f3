// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

namespace rehearse::compiler {

// A folder with one file for each key and program. Several processes may use the folder at once: each file is written
// under a unique temporary name and then renamed. A folder that cannot be used never stops a program; the caller gets
// the reason.
class CacheFolder {
 public:
  // `limit_bytes`: limit for the total size of all files. `program`: identifies the program that reads and writes, see
  // program_id().
  CacheFolder(std::filesystem::path folder, std::uint64_t limit_bytes, std::string program)
      : folder_(std::move(folder)), limit_bytes_(limit_bytes), program_(std::move(program)) {}

  struct Found {
    std::optional<std::string> stored = std::nullopt;
    std::string why_not = {};    // names the file; empty if it was read
    bool is_unexpected = false;  // the file exists, but this program cannot use it for this key
  };
  Found read(const std::string& key) const;

  // Stores `text` under the key, replaces an older file, and removes the oldest files beyond the limit. Returns an
  // error message; empty on success.
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
