// SPDX-License-Identifier: BSD-3-Clause
#include "entry.h"

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace corpus {

Entries all_entries() {
  Entries all;
  for (const auto& entries : {averages(),      buffers(),      caches(),        checkpoints(),  collective_order(),
                              compiled(),      crashes(),      data_parallel(), drift(),        fully_sharded(),
                              groups(),        many_groups(),  messages(),      networks(),     object_collectives(),
                              rank_branches(), replicas(),     shapes(),        split_graphs(), stores(),
                              timeouts(),      uneven_inputs()}) {
    all.insert(all.end(), entries.begin(), entries.end());
  }
  std::sort(all.begin(), all.end(), [](const Entry& one, const Entry& other) { return one.report < other.report; });
  return all;
}

Marked marked_line(std::string_view report) {
  const auto mark = "// <- " + std::string(report);
  Marked found;
  int times = 0;
  for (const auto& file : std::filesystem::directory_iterator(REHEARSE_CORPUS_PROGRAMS)) {
    std::ifstream in(file.path());
    std::string text;
    for (int line = 1; std::getline(in, text); ++line) {
      if (!text.ends_with(mark)) continue;
      found = {file.path().filename().string(), line};
      ++times;
    }
  }
  return times == 1 ? found : Marked{};
}

}  // namespace corpus
