// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <string>
#include <vector>

namespace rehearse::sim {

// A few lines of a source file, as the file is now.
struct SourceExcerpt {
  std::string name, path;  // "train.cpp", "/src/train.cpp"
  int first = 1;           // the number of its first line
  std::vector<std::string> lines;
  std::vector<int> named;  // numbers of the lines that texts name, ascending
};

// The lines that `texts` name, as "train.cpp:41", with the lines around them; neighbours form one excerpt. `files` maps
// names to paths. Takes the first places, at most 80, and leaves out an excerpt if its file does not exist, or ends
// before a line that the texts name. Reads files; does not throw.
std::vector<SourceExcerpt> source_excerpts(const std::vector<std::string>& texts,
                                           const std::map<std::string, std::string>& files);

}  // namespace rehearse::sim
