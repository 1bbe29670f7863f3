// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <set>
#include <string>

namespace rehearse::sim {

// The paths of source files by their names, because reports write places with the name only.
class SourceFiles {
 public:
  void add(const std::string& path) {
    const auto name = path.substr(path.find_last_of('/') + 1);
    if (name.empty()) return;
    const auto [known, is_new] = paths_.try_emplace(name, path);
    if (!is_new && known->second != path) ambiguous_.insert(name);
  }

  // Leaves out names that several files have, because nobody can tell which of them a report means.
  std::map<std::string, std::string> unambiguous() const {
    auto paths = paths_;
    for (const auto& name : ambiguous_) paths.erase(name);
    return paths;
  }

 private:
  std::map<std::string, std::string> paths_;
  std::set<std::string> ambiguous_;
};

}  // namespace rehearse::sim
