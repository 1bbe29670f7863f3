// SPDX-License-Identifier: BSD-3-Clause
#include "compile/compiler_collectives/agreement.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include <rehearse/compile/errors.h>
#include <rehearse_internal/exec/check.h>

namespace rehearse::compiler {
namespace {

InputFact fact_of(const Leaf& leaf, const std::string& source) {
  InputFact fact;
  fact.source = source;
  switch (leaf.kind) {
    case LeafKind::Tensor:
      fact.kind = InputFact::Kind::Tensor;
      fact.dtype = leaf.tensor->scalar_type();
      if (!leaf.tensor->is_nested()) fact.sizes = leaf.tensor->sizes().vec();
      break;
    case LeafKind::Undefined:
      fact.kind = InputFact::Kind::None;
      break;
    case LeafKind::SymInt:
      fact.kind = InputFact::Kind::SymInt;
      fact.int_value = leaf.sym_int->as_int_unchecked();
      break;
    case LeafKind::Int:
      fact.kind = InputFact::Kind::Int;
      fact.int_value = leaf.number;
      break;
    case LeafKind::Bool:
      fact.kind = InputFact::Kind::Bool;
      fact.int_value = leaf.number;
      break;
    case LeafKind::Double:
      fact.kind = InputFact::Kind::Float;
      fact.float_value = std::bit_cast<double>(leaf.number);
      break;
    case LeafKind::Text:
      fact.kind = InputFact::Kind::String;
      fact.text = *leaf.text;
      break;
    case LeafKind::Group:
      fact.kind = InputFact::Kind::Group;
      if (leaf.group != nullptr) fact.text = leaf.group->getGroupName();
      break;
    case LeafKind::Length:
    case LeafKind::Choice:
      fact.kind = InputFact::Kind::Other;
      fact.text = text_of(leaf.kind);
      fact.int_value = leaf.number;
      break;
  }
  return fact;
}

bool look_alike(const InputFact& a, const InputFact& b) {
  return a.kind == b.kind && a.dtype == b.dtype && a.sizes.size() == b.sizes.size();
}

bool may_vary(const InputFact& fact) {
  return fact.kind == InputFact::Kind::Tensor || fact.kind == InputFact::Kind::SymInt;
}

bool is_constant(const InputFact& fact) {
  using Kind = InputFact::Kind;
  return fact.kind == Kind::Int || fact.kind == Kind::Bool || fact.kind == Kind::Float || fact.kind == Kind::String;
}

std::set<std::string_view> sources_of_constants(const std::vector<InputFacts>& all) {
  std::set<std::string_view> sources;
  for (const auto& facts : all) {
    for (const auto& fact : facts) {
      if (is_constant(fact)) sources.insert(fact.source);
    }
  }
  return sources;
}

// True if `own` has a fact with the same source that looks like `fact`, or if `own` has no fact with this source.
// Several facts may have one source: a std::optional has a fact about its length and one about its value, and a
// std::variant has a fact about its type and one about its value.
bool fits(const InputFact& fact, const InputFacts& own) {
  bool has_source = false;
  for (const auto& mine : own) {
    if (mine.source != fact.source) continue;
    if (look_alike(mine, fact)) return true;
    has_source = true;
  }
  return !has_source;
}

// For example "y is 4, guard y == 3 of entry 0".
std::string text_of_miss(const GuardFailure& failure, std::size_t entry) {
  if (failure.source == kFunctionItself) return fmt::format("it gives another graph than entry {} now", entry);
  // The texts of a condition on sizes name the sizes.
  if (failure.source == "sizes") return fmt::format("{}, guard {} of entry {}", failure.found, failure.expected, entry);
  return fmt::format("{} is {}, guard {} == {} of entry {}", failure.source, failure.found, failure.source,
                     failure.expected, entry);
}

}  // namespace

InputFacts facts_of(const LeafList& leaves, const std::vector<std::string>& sources) {
  InputFacts facts;
  for (std::size_t i = 0; i < leaves.size(); ++i) facts.push_back(fact_of(leaves[i], sources[i]));
  return facts;
}

InputFacts facts_to_absorb(const std::vector<InputFacts>& all, const InputFacts& own) {
  const std::set<std::string_view> constants = sources_of_constants(all);
  InputFacts taken;
  for (const auto& facts : all) {
    for (const auto& fact : facts) {
      const bool is_constant_elsewhere = may_vary(fact) && constants.contains(fact.source);
      if (!is_constant_elsewhere && fits(fact, own)) taken.push_back(fact);
    }
  }
  return taken;
}

Agreement::Agreement(const CompileOptions& options)
    : compiler_collectives_(options.group && options.compiler_collectives),
      guard_collectives_(options.guard_collectives),
      same_graphs_(options.same_graphs),
      record_(record_function(options.name, compiler_collectives_ || guard_collectives_ || same_graphs_)) {
  if ((guard_collectives_ || same_graphs_) && !options.group) {
    throw CompileError(
        fmt::format("'{}' is compiled with {} and without a group: say with .group which ranks compare {}",
                    options.name, guard_collectives_ ? "guard_collectives" : "same_graphs",
                    guard_collectives_ ? "their guards" : "their graphs"));
  }
  if (record_->uses_collectives()) collectives_.emplace(options.group.get());
}

CollectiveLabel Agreement::label() const {
  return {record_->name(), record_->compiles().empty() ? "" : record_->compiles().back().where.describe()};
}

Ability Agreement::compare(Ability own) {
  if (!guard_collectives_) return own;
  record_->agrees();
  return collectives_->least(own, {record_->name(), {}});
}

void Agreement::begin_compile(const std::vector<GuardFailure>& failures, std::size_t entries) {
  is_open_ = true;
  first_of_call_ = record_->compiles().size();
  std::vector<std::string> misses;
  std::string why = entries == 0 ? "" : "its own guards hold, another rank's do not";
  if (failures.size() == entries && entries > 0) {
    for (std::size_t i = 0; i < entries; ++i) misses.push_back(text_of_miss(failures[entries - 1 - i], i));
    why = misses.back();
  }
  record_->compiles(std::move(why), exec::CallSite::capture(), std::move(misses));
}

std::vector<InputFacts> Agreement::exchange(const InputFacts& own) {
  try {
    return collectives_->exchange(own, label());
  } catch (const CompileError&) {
    is_open_ = false;
    record_->done();
    throw;
  }
}

void Agreement::absorb(const LeafList& leaves, const std::vector<std::string>& sources, Dynamism& dynamism) {
  const InputFacts own = facts_of(leaves, sources);
  const auto all = compiler_collectives_ ? exchange(own) : std::vector<InputFacts>{own};
  for (const InputFact& fact : facts_to_absorb(all, own)) {
    if (fact.kind == InputFact::Kind::Tensor) dynamism.absorb_tensor(fact.source, fact.sizes);
    if (fact.kind == InputFact::Kind::SymInt) dynamism.absorb_int(fact.source, fact.int_value);
  }
}

void Agreement::begin_segment(const std::string& why, exec::CallSite where) {
  is_open_ = true;
  record_->compiles(why, std::move(where));
  // A rank knows the segment's inputs from its own run of the code, so it uses no facts of other ranks.
  if (compiler_collectives_) exchange({{.source = "segment", .kind = InputFact::Kind::Other, .text = why}});
}

void Agreement::fail(const std::string& error) {
  if (is_open_) commit(ErrorText{error});
}

void Agreement::run_once(const std::string& refusal) {
  if (is_open_) commit(RunsOnce{refusal});
}

void Agreement::refuse_different(const std::vector<GraphHash>& hashes) {
  InputFacts own;
  for (const auto& node : record_->compiles().back().graph->nodes) {
    own.push_back({.source = node.target, .kind = InputFact::Kind::Other, .text = node.arguments});
    own.push_back({.source = node.where.describe(), .kind = InputFact::Kind::Other});
  }
  const auto all = collectives_->exchange(own, label());
  const std::vector<int> members = world_ranks_of(*collectives_->group());
  std::size_t other = 0;
  while (hashes[other] == hashes[0]) ++other;
  std::vector<int> ranks, others;
  for (std::size_t i = 0; i < hashes.size(); ++i) {
    if (hashes[i] == hashes[0]) ranks.push_back(members[i]);
    if (hashes[i] == hashes[other]) others.push_back(members[i]);
  }
  const auto outline = [](const InputFacts& nodes) {
    GraphOutline graph;
    for (std::size_t i = 0; i + 1 < nodes.size(); i += 2) {
      graph.nodes.push_back({nodes[i].source, nodes[i].text, {}, nodes[i + 1].source});
    }
    return graph;
  };
  const auto difference = difference_of(record_->name(), ranks, outline(all[0]), others, outline(all[other]));
  throw CompileError(to_string(difference, [](const auto& node) { return node.place; }) +
                     ". CompileOptions::same_graphs asks for equal ones");
}

bool Agreement::commit(const graph::GraphModule& module, const std::vector<InputBinding>& inputs) {
  GraphOutline outline = outline_of(module, inputs);
  const GraphHash hash{outline.hash};
  record_->gives(std::move(outline));
  return commit(hash);
}

bool Agreement::commit(const CompileOutcome& outcome) {
  REHEARSE_CHECK(is_open_, record_->name());
  is_open_ = false;
  runs_once_ = false;
  bool any = std::holds_alternative<GraphHash>(outcome);
  try {
    if (collectives_) {
      const auto hashes = collectives_->commit(outcome, label());
      any = !hashes.empty();
      const bool differ = std::adjacent_find(hashes.begin(), hashes.end(), std::not_equal_to<>()) != hashes.end();
      if (same_graphs_ && differ) refuse_different(hashes);
      runs_once_ = !any && !std::holds_alternative<ErrorText>(outcome);
      if (runs_once_ && refusal_.empty()) refusal_ = collectives_->refusal();
    }
  } catch (const CompileError&) {
    record_->done();
    throw;
  }
  record_->done();
  return any;
}

}  // namespace rehearse::compiler
