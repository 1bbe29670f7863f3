// SPDX-License-Identifier: BSD-3-Clause
#include "report/page/compiled_functions.h"

#include <algorithm>
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
          {"uses_collectives", function.uses_collectives()},
          {"compiles", std::move(compiles)}};
}

// Functions of several ranks that have the same row.
struct SameFunctions {
  Json row;
  std::vector<const compiler::FunctionRecord*> records;
};

void add_times(SameFunctions& same, std::size_t compile) {
  std::vector<VirtualTime> times;
  for (const auto* const record : same.records) {
    times.push_back(record->compiles()[compile].at);
    if (times.back() == compiler::FunctionRecord::Compile::kNotKnown) return;
  }
  same.row["compiles"].items()[compile]["times_ns"] = rank_times(times);
}

Json told(SameFunctions same) {
  std::ranges::stable_sort(same.records, [](const auto* a, const auto* b) { return a->rank() < b->rank(); });
  std::vector<int> ranks;
  for (const auto* const record : same.records) ranks.push_back(record->rank());
  for (std::size_t i = 0; i < same.records.front()->compiles().size(); ++i) add_times(same, i);
  same.row["ranks"] = rank_runs(ranks);
  return std::move(same.row);
}

}  // namespace

Json compiled_functions(const compiler::Journal& journal) {
  std::vector<SameFunctions> functions;
  // The key is the text of the row, and the number of equal rows that the same rank had before. So equal functions of
  // one rank, such as two of the same name, stay apart.
  std::map<std::pair<std::string, int>, std::size_t> known;
  std::map<std::pair<std::string, int>, int> of_rank;
  for (const auto& function : journal.functions()) {
    Json row = function_json(*function);
    const auto text = json_text(row);
    const auto [entry, is_new] = known.try_emplace({text, of_rank[{text, function->rank()}]++}, functions.size());
    if (is_new) functions.push_back({std::move(row), {}});
    functions[entry->second].records.push_back(function.get());
  }
  Json rows = Json::array();
  for (auto& same : functions) rows.push_back(told(std::move(same)));
  return rows;
}

}  // namespace rehearse::sim
