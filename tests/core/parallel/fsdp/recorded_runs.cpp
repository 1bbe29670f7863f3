// SPDX-License-Identifier: BSD-3-Clause
#include "core/parallel/fsdp/recorded_runs.h"

#include <stdexcept>

#include "core/graph/recorded_graph.h"
#include "core/parallel/splitter/truth_file.h"

namespace rehearse_test {
namespace {

std::string name_of(const nlohmann::json& run) {
  return run.at("case").get<std::string>() + "_" + run.at("world").dump();
}

}  // namespace

const RecordedRuns& RecordedRuns::load() {
  static const RecordedRuns loaded = [] {
    RecordedRuns runs;
    runs.cases_ = rehearse::graph::read_json_gz(truth_folder() + "/fsdp.json.gz").at("cases");
    return runs;
  }();
  return loaded;
}

std::vector<std::string> RecordedRuns::names() const {
  std::vector<std::string> names;
  for (const auto& run : cases_) names.push_back(name_of(run));
  return names;
}

const nlohmann::json& RecordedRuns::at(const std::string& name) const {
  for (const auto& run : cases_) {
    if (name_of(run) == name) return run;
  }
  throw std::runtime_error("fsdp.json.gz has no case " + name);
}

}  // namespace rehearse_test
