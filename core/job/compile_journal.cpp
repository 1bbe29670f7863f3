// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/compile_journal.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include <rehearse_internal/exec/check.h>
#include <rehearse_internal/exec/this_rank.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/formatting/rank_list.h>
#include <rehearse_internal/hash/fnv1a.h>

namespace rehearse::compiler {
namespace {

// A function, with the record of each rank that has it.
struct Function {
  std::string name;
  std::vector<const FunctionRecord*> of_ranks;
};

// The n-th records of one name on all ranks form one function. Functions are in order of their first records.
std::vector<Function> functions_of(const Journal& journal) {
  std::vector<Function> functions;
  std::map<std::pair<std::string, int>, std::size_t> index_of;  // by name and occurrence
  std::map<std::pair<std::string, int>, int> made;              // by name and rank
  for (const auto& record : journal.functions()) {
    const int occurrence = made[{record->name(), record->rank()}]++;
    const auto [entry, is_new] = index_of.try_emplace({record->name(), occurrence}, functions.size());
    if (is_new) functions.push_back({record->name(), {}});
    functions[entry->second].of_ranks.push_back(record.get());
  }
  return functions;
}

// False if a compilation is over and has given no graph, because the code was refused or has thrown.
bool counts(const FunctionRecord& record, const FunctionRecord::Compile& compile) {
  const bool is_open = record.doing() == FunctionRecord::Doing::Compiling && &compile == &record.compiles().back();
  return compile.graph != nullptr || is_open;
}

const FunctionRecord::Compile* compile_in(const FunctionRecord& record, std::uint64_t call) {
  const auto& all = record.compiles();
  const auto found =
      std::ranges::find_if(all, [&](const auto& compile) { return compile.call == call && counts(record, compile); });
  return found != all.end() ? &*found : nullptr;
}

bool communicates_in(const FunctionRecord& record, std::uint64_t call) {
  const auto& all = record.compiles();
  return std::ranges::any_of(all, [&](const auto& each) { return each.call == call && each.communicates; });
}

std::set<std::uint64_t> calls_that_compiled(const Function& function) {
  std::set<std::uint64_t> calls;
  for (const auto* record : function.of_ranks) {
    for (const auto& compile : record->compiles()) {
      if (counts(*record, compile)) calls.insert(compile.call);
    }
  }
  return calls;
}

// Why `compile` did not use the entry that served the call on another rank. Null: no entry did.
const std::string* miss_of_entry_of(const FunctionRecord& other, const FunctionRecord::Compile& compile) {
  const auto later = std::ranges::find_if(other.hits(), [&](const auto& hit) { return hit.first > compile.call; });
  if (later == other.hits().begin()) return nullptr;
  const std::size_t entry = std::prev(later)->second;
  return entry < compile.misses.size() ? &compile.misses[entry] : nullptr;
}

Divergence compare(const Function& function, std::uint64_t call) {
  Divergence divergence{function.name, call, {}, {}, {}, {}, {}};
  const FunctionRecord::Compile* first = nullptr;
  for (const auto* record : function.of_ranks) {
    if (record->uses_collectives() || record->calls() < call) continue;
    const auto* const compile = compile_in(*record, call);
    (compile != nullptr ? divergence.compiled : divergence.others).push_back(record->rank());
    if (first == nullptr) first = compile;
    if (compile != nullptr && record->calls() == call) divergence.latest.push_back(record->rank());
    divergence.communicates |= compile != nullptr && communicates_in(*record, call);
  }
  std::ranges::sort(divergence.compiled);
  std::ranges::sort(divergence.others);
  std::ranges::sort(divergence.latest);
  if (first == nullptr) return divergence;
  std::tie(divergence.why, divergence.where) = std::tie(first->why, first->where);
  for (const auto* record : function.of_ranks) {
    if (divergence.others.empty() || record->rank() != divergence.others.front()) continue;
    if (const auto* const miss = miss_of_entry_of(*record, *first)) divergence.why = *miss;
  }
  return divergence;
}

// Graphs of a function that were compiled under equal guards, with the ranks that compiled them.
using RanksByGraph = std::map<const GraphOutline*, std::set<int>>;
using RanksOfGraph = RanksByGraph::value_type;

std::vector<int> less(const std::set<int>& ranks, const std::set<int>& without) {
  std::vector<int> left;
  std::set_difference(ranks.begin(), ranks.end(), without.begin(), without.end(), std::back_inserter(left));
  return left;
}

// Two graphs, each with a rank that did not compile the other one, in order of their lowest ranks. Null: none.
std::pair<const RanksOfGraph*, const RanksOfGraph*> first_that_differ(const RanksByGraph& ranks) {
  std::map<std::pair<int, std::uint64_t>, const RanksOfGraph*> ordered;
  for (const auto& graph : ranks) ordered[{*graph.second.begin(), graph.first->hash}] = &graph;
  for (auto a = ordered.begin(); a != ordered.end(); ++a) {
    for (auto b = std::next(a); b != ordered.end(); ++b) {
      const auto &with_a = a->second->second, &with_b = b->second->second;
      if (!less(with_a, with_b).empty() && !less(with_b, with_a).empty()) return {a->second, b->second};
    }
  }
  return {};
}

}  // namespace

void FunctionRecord::compiles(std::string why, exec::CallSite where, std::vector<std::string> misses) {
  doing_ = Doing::Compiling;
  last_hit_ = -1;
  compiles_.push_back({.call = calls_, .why = std::move(why), .where = std::move(where), .misses = std::move(misses)});
  if (exec::this_rank::is_fiber()) compiles_.back().at = exec::this_rank::now();
}

void FunctionRecord::gives(GraphOutline graph) {
  REHEARSE_CHECK(!compiles_.empty(), name_, calls_);
  auto* const journal = exec::this_rank::is_fiber() ? exec::WorldLocal<Journal>::find() : nullptr;
  auto& shared = journal != nullptr ? journal->outlines_[graph.hash] : compiles_.back().graph;
  if (shared == nullptr) shared = std::make_shared<GraphOutline>(std::move(graph));
  compiles_.back().graph = shared;
}

void FunctionRecord::compare_under(std::uint64_t guards, std::size_t first) {
  REHEARSE_CHECK(first <= compiles_.size(), name_, first);
  std::string path;  // what the code has read before
  for (std::size_t i = first; i < compiles_.size(); ++i) {
    if (i > first) path += compiles_[i].why + "\n";
    compiles_[i].guards = guards ^ fnv1a(path);
  }
}

std::string FunctionRecord::text(bool several) const {
  if (calls_ == 0) return fmt::format("never called {}", name_);
  if (doing_ == Doing::Agreeing)
    return fmt::format("{} agreeing with the other ranks in call {} of {}", several ? "are" : "is", calls_, name_);
  if (doing_ == Doing::Compiling) {
    const auto& compile = compiles_.back();
    return fmt::format("{} {} (call {}{}{})", several ? "compile" : "compiles", name_, compile.call,
                       compile.why.empty() ? "" : ": ", compile.why);
  }
  if (runs_eagerly_ || (last_hit_ < 0 && compiles_.empty()))
    return fmt::format("ran {} uncompiled in call {}", name_, calls_);
  if (last_hit_ >= 0) return fmt::format("used compiled entry {} in call {}", last_hit_, calls_);
  return fmt::format("compiled {} in call {}", name_, compiles_.back().call);
}

std::shared_ptr<FunctionRecord> Journal::add(std::string name, int rank, bool uses_collectives) {
  return functions_.emplace_back(std::make_shared<FunctionRecord>(std::move(name), rank, uses_collectives));
}

std::shared_ptr<FunctionRecord> record_function(std::string name, bool uses_collectives) {
  auto* const journal = exec::WorldLocal<Journal>::find();
  if (journal == nullptr || !exec::this_rank::is_fiber()) {
    return std::make_shared<FunctionRecord>(std::move(name), -1, uses_collectives);
  }
  return journal->add(std::move(name), exec::this_rank::rank(), uses_collectives);
}

std::vector<Divergence> divergences(const Journal& journal) {
  std::vector<Divergence> found;
  for (const auto& function : functions_of(journal)) {
    for (const auto call : calls_that_compiled(function)) {
      auto divergence = compare(function, call);
      if (!divergence.compiled.empty() && !divergence.others.empty()) found.push_back(std::move(divergence));
    }
  }
  return found;
}

std::string to_string(const Divergence& divergence) {
  const auto why = divergence.why.empty() ? "" : ": " + divergence.why;
  const auto ranks = describe_ranks(divergence.compiled);
  if (divergence.compiled.size() == 1) {
    return fmt::format("{} alone recompiled {} in call {}{}", ranks, divergence.function, divergence.call, why);
  }
  return fmt::format("{} recompiled {} in call {} and {} did not{}", ranks, divergence.function, divergence.call,
                     describe_ranks(divergence.others), why);
}

GraphDifference difference_of(const std::string& function, std::vector<int> ranks, const GraphOutline& graph,
                              std::vector<int> others, const GraphOutline& other) {
  const auto same = [](const auto& a, const auto& b) { return a.target == b.target && a.arguments == b.arguments; };
  const auto &a = graph.nodes, &b = other.nodes;
  const auto [in_a, in_b] = std::mismatch(a.begin(), a.end(), b.begin(), b.end(), same);
  const GraphOutline::Node end{"the end"};
  GraphDifference difference{function, std::move(ranks), std::move(others), in_a != a.end() ? *in_a : end,
                             in_b != b.end() ? *in_b : end};
  if (difference.node.target != difference.other_node.target) {
    difference.node.arguments = difference.other_node.arguments = "";
  }
  return difference;
}

std::vector<GraphDifference> graph_differences(const Journal& journal, const std::function<bool(int)>& is_left_out) {
  std::map<std::pair<std::string, std::uint64_t>, RanksByGraph> by_guards;
  for (const auto& record : journal.functions()) {
    if (!record->uses_collectives() && is_left_out(record->rank())) continue;
    for (const auto& compile : record->compiles()) {
      if (compile.graph == nullptr || compile.guards == 0 || compile.graph->has_root) continue;
      by_guards[{record->name(), compile.guards}][compile.graph.get()].insert(record->rank());
    }
  }
  std::vector<GraphDifference> differences;
  std::set<std::tuple<std::string, std::uint64_t, std::uint64_t>> named;
  for (const auto& [key, ranks] : by_guards) {
    const auto [a, b] = first_that_differ(ranks);
    if (a == nullptr || !named.emplace(key.first, a->first->hash, b->first->hash).second) continue;
    differences.push_back(
        difference_of(key.first, less(a->second, b->second), *a->first, less(b->second, a->second), *b->first));
  }
  return differences;
}

std::string to_string(const GraphDifference& difference,
                      const std::function<std::string(const GraphOutline::Node&)>& place) {
  const auto text = [&](const GraphOutline::Node& node, const std::vector<int>& ranks) {
    const auto where = place(node);
    return fmt::format("{}{}{} on {}", node.target, node.arguments, where.empty() ? "" : " at " + where,
                       describe_ranks(ranks));
  };
  return fmt::format("{} and {} compiled different graphs of {}: {}, {}", describe_ranks(difference.ranks),
                     describe_ranks(difference.others), difference.function, text(difference.node, difference.ranks),
                     text(difference.other_node, difference.others));
}

}  // namespace rehearse::compiler
