// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/checks/world_checks.h>

#include <algorithm>
#include <cstring>
#include <optional>
#include <set>
#include <stdexcept>
#include <type_traits>
#include <utility>

#include <ATen/CPUGeneratorImpl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <rehearse_internal/checks/unwatched.h>
#include <rehearse_internal/exec/world_local.h>
#include <rehearse_internal/formatting/rank_list.h>

#include "checks/draws.h"
#include "checks/finite.h"
#include "checks/gradients.h"
#include "checks/missed_rounds.h"
#include "checks/replicas.h"
#include "checks/watch/rank_watch.h"

namespace rehearse::checks {
namespace {

constexpr const char* kAtItsEnd = " at its end";

// The key or name of a model's comparison at its end, as that of a forward.
std::string without_end(std::string text) {
  if (const auto end = text.find(kAtItsEnd); end != std::string::npos) text.erase(end, std::strlen(kAtItsEnd));
  return text;
}

std::string name_or(const CheckOptions& options, const char* own) { return options.name.empty() ? own : options.name; }

std::vector<int> in_order(std::vector<int> ranks) {
  std::ranges::sort(ranks);
  ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
  return ranks;
}

std::vector<int> ranks_of(const CheckOptions& options, int rank, int ranks) {
  if (options.ranks.empty()) return ranks_below(ranks);
  const auto of = in_order(options.ranks);
  const bool fits = of.front() >= 0 && of.back() < ranks && std::ranges::binary_search(of, rank);
  if (fits) return of;
  if (of.front() < 0 || of.back() >= ranks) {
    throw std::invalid_argument(fmt::format("CheckOptions::ranks has rank {}; those of the world are 0 to {}",
                                            of.front() < 0 ? of.front() : of.back(), ranks - 1));
  }
  throw std::invalid_argument(
      fmt::format("CheckOptions::ranks is {{{}}}, without rank {}, which makes the check", fmt::join(of, ", "), rank));
}

// The module of a sharded model, with the values of all ranks; null for other models. Also assembles the gradients.
std::shared_ptr<const ModelState> whole_module(ShownGradients& shown, const ModelState& state) {
  if (!state.lend_whole()) return nullptr;
  std::vector<NamedTensor> values;
  {
    const Unwatched own;
    values = shown.shards.values();
    shown.shards.add_gradients_to(shown.table);
  }
  return state.lend_whole()(values);
}

// Copies what all ranks have after a step to the tensors of the same names.
void give(const ReplicaTable& values, const ModelState& to) {
  const Unwatched own;
  for (const auto& row : values.rows()) {
    for (const auto& each : to.tensors()) {
      if (each.name == row.name) each.tensor.detach().copy_(row.versions.front().copy);
    }
  }
}

}  // namespace

// One check that a rank makes.
struct WorldChecks::Asked {
  std::string name;
  std::vector<int> of;
  std::optional<bool> buffers = {};
  bool by_program = true;
  std::string since = {};    // name of the log of writes that explains a finding; empty: `name`
  std::uint32_t group = 0;   // for automatic checks, because group names may repeat
  bool is_explained = true;  // whether the first write that differs explains a finding
  bool is_judged = true;     // see Round

  std::string key() const { return by_program ? name : fmt::format("{}\n{}", name, group); }
};

struct WorldChecks::Shown {
  Rounds<ShownReplicas> replicas;
  Rounds<ShownGradients> gradients;
  Rounds<ShownDraws> draws;
  Rounds<ShownStep> steps;
  std::map<std::string, std::pair<std::uint64_t, ReplicaTable>> last_step;  // by name: number, and what ranks then had
  std::map<std::string, std::map<int, std::uint64_t>> finite;               // number of checks, by name and rank
  Origins origins;
  Reductions reductions;
  std::vector<std::unique_ptr<RankWatch>> watches;  // by rank; empty: no operators are watched
  MissedRounds missed;
  std::set<std::string> equal;                   // models whose replicas were equal when they were last compared
  std::map<std::string, std::string> remarked;   // the first difference of each model that is no finding
  std::map<std::string, StateFinding> suspects;  // by key: what becomes a finding if it lasts until the model's end

  std::optional<StateFinding> judge_unasked(const ReplicaRound& round, std::optional<StateFinding> finding);
  void doubt_uneven();

  RankWatch* watch_of(int rank) const noexcept {
    return watches.empty() ? nullptr : watches[static_cast<std::size_t>(rank)].get();
  }
};

// Judges a comparison of replicas for which nobody has asked. Replicas may differ on purpose: until the next step, or
// for good. So a difference that the Reducer alone should have prevented is a finding only if the replicas still differ
// at the model's end. Others are remarks.
std::optional<StateFinding> WorldChecks::Shown::judge_unasked(const ReplicaRound& round,
                                                              std::optional<StateFinding> finding) {
  const auto key = without_end(round.key), name = without_end(round.name);
  const bool were_equal = equal.erase(round.key) > 0;
  if (!finding) {
    if (!round.is_full()) return std::nullopt;
    equal.insert(round.key);
    suspects.erase(key);
    return std::nullopt;
  }
  if (key != round.key) {
    if (auto suspect = suspects.extract(key)) {
      remarked.erase(name);
      return std::move(suspect.mapped());
    }
  }
  if (round.is_judged && were_equal) suspects.try_emplace(key, *finding);
  remarked.try_emplace(name, finding->headline + ". If this is not on purpose, [checks] replicas = true says more");
  return std::nullopt;
}

// Call it after a run in which all ranks returned: in another one, some ranks have merely come further.
void WorldChecks::Shown::doubt_uneven() {
  std::set<std::string> uneven;
  for (const auto& [key, round] : replicas.open()) uneven.insert(round.name);
  for (auto& [model, text] : remarked) {
    if (uneven.contains(model))
      text += ", but ranks made different numbers of forwards, so these may belong to different steps";
  }
}

WorldChecks::WorldChecks(exec::RankExecutor& executor, AutomaticChecks automatic, Counts& held, const LabelOf& label_of)
    : executor_(executor), automatic_(automatic), held_(held), shown_(std::make_unique<Shown>()) {
  if (!automatic_.explain) return;
  for (int rank = 0; rank < executor.options().ranks; ++rank) {
    shown_->watches.push_back(
        std::make_unique<RankWatch>(rank, shown_->origins, [label_of, rank] { return label_of(rank); }));
  }
}

WorldChecks::~WorldChecks() = default;

Origins& WorldChecks::origins() noexcept { return shown_->origins; }
Reductions& WorldChecks::reductions() noexcept { return shown_->reductions; }

operators::OperatorWatcher* WorldChecks::watcher_of(int rank) noexcept { return shown_->watch_of(rank); }

void WorldChecks::found(StateFinding finding) {
  if (executor_.ending()) return;
  executor_.stop(finding.headline);
  findings_.push_back(std::move(finding));
}

// Returns a finding if the states differ.
template <class Round>
std::optional<StateFinding> WorldChecks::judge(const Round& round) {
  auto finding = evaluate(round);
  if constexpr (std::is_same_v<Round, ReplicaRound>) {
    if (!round.is_asked && !automatic_.replicas.value_or(false))
      return shown_->judge_unasked(round, std::move(finding));
  }
  return finding;
}

// Call it when a rank has arrived at `round`. Compares and closes `round` if it is full, else the oldest round of its
// key if too many are open.
template <class Rounds, class Round>
void WorldChecks::settle_due(Rounds& rounds, Round& round) {
  auto* const due = round.is_full() ? &round : rounds.overdue(round.key);
  if (due == nullptr) return;
  if (auto finding = judge(*due)) {
    found(std::move(*finding));
  } else if (due->is_full() && (due->is_asked || automatic_.replicas.value_or(false) || automatic_.draws)) {
    ++held_[due->name];
  }
  if (due->is_asked) shown_->missed.add(*due, true);
  rounds.close(*due);
}

void WorldChecks::replicas(int rank, const ModelState& state, const CheckOptions& options) {
  show_replicas(
      rank, state,
      {name_or(options, kReplicas), ranks_of(options, rank, executor_.options().ranks), options.buffers, true, {}});
}

void WorldChecks::show_replicas(int rank, const ModelState& state, const Asked& asked) {
  const Unwatched own;
  const auto shown = state.with_buffers(asked.buffers);
  auto* const watch = asked.is_explained ? shown_->watch_of(rank) : nullptr;
  auto writes = watch == nullptr ? std::vector<Write>()
                                 : watch->take_writes(asked.since.empty() ? asked.name : asked.since, shown);
  auto& rounds = shown_->replicas;
  auto* const round = rounds.next(rank, asked.key(), asked.name, asked.of);
  if (round == nullptr) return;
  round->is_asked = asked.by_program;
  round->is_judged = round->is_judged && asked.is_judged;
  // One rank's forward may have left out the broadcast of buffers that another rank's forward has made.
  if (!asked.by_program && !asked.buffers.value_or(true)) round->shown.with_buffers = false;
  const bool is_first = round->number == 1 || rounds.was_given_up(round->key, round->number - 1);
  round->shown.before = !asked.since.empty() ? ""
                        : round->number == 1 ? "this is the first check of this name: nothing was compared before"
                        : is_first           ? fmt::format("check #{} was not compared", round->number - 1)
                                             : fmt::format("in check #{} all ranks were equal", round->number - 1);
  round->shown.table.add(rank, shown);
  const bool any_before = !is_first || !asked.since.empty();
  if (any_before && watch != nullptr) round->shown.writes[rank] = std::move(writes);
  settle_due(rounds, *round);
}

void WorldChecks::gradients(int rank, const ModelState& state, const at::Generator& generator,
                            const std::function<at::Tensor()>& loss, const CheckOptions& options) {
  auto& rounds = shown_->gradients;
  const auto name = name_or(options, kGradients);
  auto* const round = rounds.next(rank, name, name, ranks_of(options, rank, executor_.options().ranks));
  if (round == nullptr) return;
  {
    const Unwatched own;
    round->shown.table.add(rank, gradients_of(state));
    round->shown.shards.add(rank, state);
  }
  round->needs_all = true;
  if (!round->is_full()) {
    if (auto* const late = rounds.overdue(name)) {
      shown_->missed.add(*late, true);
      rounds.close(*late);
    }
    return shown_->reductions.begin(rank);
  }
  auto complete = std::move(*round);
  rounds.close(complete);
  const auto lent = whole_module(complete.shown, state);
  const ModelState& whole = lent != nullptr ? *lent : state;
  // The function belongs to the user and may switch fibers. Other ranks no longer see the round, because it is a local
  // object by now.
  const auto reference = reference_gradients(whole, generator, loss);
  const Unwatched own;
  if (auto finding = evaluate(complete, gradients_of(whole), reference, options.tolerance, &shown_->reductions)) {
    found(std::move(*finding));
  } else {
    ++held_[complete.name];
  }
  shown_->reductions.begin(rank);
}

void WorldChecks::step(int rank, const ModelState& model, const ModelState& one, const at::Generator& generator,
                       const std::function<void()>& step_of_one, const CheckOptions& options) {
  auto& rounds = shown_->steps;
  const auto name = name_or(options, kSteps);
  const auto of = ranks_of(options, rank, executor_.options().ranks);
  const bool buffers = options.buffers.value_or(false);
  std::vector<ReferencePart> parts;
  if (rank == of.front()) {
    const auto reference = one.with_buffers(buffers);
    if (const auto& last = shown_->last_step[name]; last.first == rounds.count(name, rank))
      give(last.second, reference);
    parts = reference_step(reference, generator, step_of_one);
  }
  auto* const round = rounds.next(rank, name, name, of);
  if (round == nullptr) return;
  const Unwatched own;
  round->needs_all = true;
  auto& shown = round->shown;
  shown.tolerance = options.tolerance;
  const auto state = model.with_buffers(buffers);
  shown.table.add(rank, state);
  shown.shards.add(rank, state);
  if (rank == of.front()) shown.reference = std::move(parts);
  if (round->is_full()) {
    shown.shards.add_values_to(shown.table);
    shown_->last_step[name] = {round->number, shown.table};
  }
  settle_due(rounds, *round);
}

void WorldChecks::draws(int rank, const at::Generator& generator, Draws wanted, const CheckOptions& options) {
  show_draws(rank, generator, wanted,
             {name_or(options, kDraws), ranks_of(options, rank, executor_.options().ranks), std::nullopt, true, {}});
}

void WorldChecks::show_draws(int rank, const at::Generator& generator, Draws wanted, const Asked& asked) {
  auto* const watch = shown_->watch_of(rank);
  auto draws = watch == nullptr ? std::vector<Drawn>() : watch->take_draws(asked.key());
  auto& rounds = shown_->draws;
  auto* const round = rounds.next(rank, asked.key(), asked.name, asked.of);
  if (round == nullptr) return;
  round->is_asked = asked.by_program;
  round->shown.wanted = wanted;
  round->shown.states.insert_or_assign(rank, GeneratorState::of(generator));
  if (watch != nullptr) round->shown.draws[rank] = std::move(draws);
  settle_due(rounds, *round);
}

void WorldChecks::finite(int rank, const ModelState& state, const CheckOptions& options) {
  const Unwatched own;
  const auto name = name_or(options, kFinite);
  const auto number = ++shown_->finite[name][rank];
  auto finding = first_non_finite(state, options.buffers, rank, name, number);
  if (!finding) {
    ++held_[name];
    return;
  }
  if (shown_->watch_of(rank) != nullptr) {
    const auto origin = shown_->origins.of(finding->tensor);
    finding->finding.details.push_back(origin ? fmt::format("the {} was {}", origin->kind, origin->text())
                                              : "no operator that was seen made it");
    if (origin) {
      finding->finding.ranks = {origin->rank};
      finding->finding.where = origin->where.place();
    }
  }
  found(std::move(finding->finding));
}

void WorldChecks::at_construction(int rank, const torch::nn::Module& module, const Forward& made) {
  auto* const watch = shown_->watch_of(rank);
  if (!automatic_.compares_replicas() || watch == nullptr) return;
  const Unwatched own;
  watch->take_writes(made.model, ModelState(module, made.ignored).with_buffers(false));
}

void WorldChecks::at_forward(int rank, const torch::nn::Module& module, const Forward& forward) {
  const Asked asked{forward.model, in_order(forward.ranks), forward.buffers_are_equal, false, {}, forward.group,
                    true,          forward.was_reduced};
  if (automatic_.compares_replicas()) show_replicas(rank, ModelState(module, forward.ignored), asked);
  draws_at_forward(rank, forward);
}

void WorldChecks::draws_at_forward(int rank, const Forward& forward) {
  if (!automatic_.draws) return;
  show_draws(rank, at::detail::getDefaultCPUGenerator(), *automatic_.draws,
             {forward.model, in_order(forward.ranks), std::nullopt, false, {}, forward.group});
}

// Even ranks with different numbers of forwards must agree at the end, so this is a separate check.
void WorldChecks::at_end(int rank, const torch::nn::Module& module, const Forward& last) {
  if (automatic_.compares_replicas()) at_sharded_end(rank, ModelState(module, last.ignored), last);
}

void WorldChecks::at_sharded_forward(int rank, const ModelState& shown, const Forward& forward, bool is_explained) {
  if (!automatic_.compares_replicas()) return;
  show_replicas(rank, shown,
                {forward.model, in_order(forward.ranks), false, false, {}, forward.group, is_explained, false});
}

void WorldChecks::at_sharded_end(int rank, const ModelState& shown, const Forward& last) {
  if (!automatic_.compares_replicas() || executor_.ending()) return;
  show_replicas(rank, shown,
                {last.model + kAtItsEnd, in_order(last.ranks), false, false, last.model, last.group, true, false});
}

template <class Rounds>
void WorldChecks::compare_open(Rounds& rounds) {
  for (auto& [key, round] : rounds.open()) {
    if (auto finding = judge(round)) findings_.push_back(std::move(*finding));
    if (round.is_asked) shown_->missed.add(round, false);
  }
}

void WorldChecks::compare_what_is_left() {
  const Unwatched own;
  compare_open(shown_->replicas);
  shown_->doubt_uneven();
  compare_open(shown_->draws);
  compare_open(shown_->steps);
  for (auto& [key, round] : shown_->gradients.open()) shown_->missed.add(round, false);
}

std::vector<std::string> WorldChecks::remarks() const {
  auto lines = shown_->missed.lines();
  for (const auto& [model, text] : shown_->remarked) lines.push_back(text);
  return lines;
}

WorldChecks* world_checks() noexcept { return exec::WorldLocal<WorldChecks>::find(); }

}  // namespace rehearse::checks
