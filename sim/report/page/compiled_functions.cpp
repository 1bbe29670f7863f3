// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/compiled_functions.h"

#include <map>
#include <string>
#include <utility>
#include <vector>

#include <rehearse_internal/job/compile_journal.h>

#include "report/page/timeline_json.h"

namespace rehearse::sim {
namespace {

Json compile_json(const compiler::FunctionRecord::Compile& compile) {
  return {{"call", compile.call},
          {"why", compile.why},
          {"where", compile.where.describe()},
          {"communicates", compile.communicates}};
}

Json function_json(const compiler::FunctionRecord& function) {
  Json compiles = Json::array();
  for (const auto& compile : function.compiles()) compiles.push_back(compile_json(compile));
  return {{"name", function.name()},
          {"ranks", Json::array()},
          {"calls", function.calls()},
          {"meets", function.meets()},
          {"compiles", std::move(compiles)}};
}

}  // namespace

Json compiled_functions(const compiler::Journal& journal) {
  Json rows = Json::array();
  std::vector<std::vector<int>> ranks;
  std::map<std::string, std::size_t> known;  // by what is said
  for (const auto& function : journal.functions()) {
    Json row = function_json(*function);
    const auto [entry, is_new] = known.try_emplace(json_text(row), ranks.size());
    if (is_new) {
      rows.push_back(std::move(row));
      ranks.emplace_back();
    }
    ranks[entry->second].push_back(function->rank());
  }
  for (std::size_t i = 0; i < ranks.size(); ++i) rows.items()[i]["ranks"] = rank_runs(ranks[i]);
  return rows;
}

}  // namespace rehearse::sim
