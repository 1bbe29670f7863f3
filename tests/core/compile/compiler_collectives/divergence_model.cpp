// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/compiler_collectives/divergence_model.h"

#include <algorithm>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/compile/compiler_collectives/divergence_walk.h"

namespace rehearse::compiler {
namespace {

using Kind = DivergentProgram::Kind;
using Together = DivergentProgram::Together;
using At = RankModel::At;

class Walk {
 public:
  explicit Walk(const DivergentProgram& program) : program_(program) {
    for (std::size_t rank = 0; rank < program.lengths.size(); ++rank) ranks_.emplace_back(program, rank);
  }

  Expected expected() {
    if (program_.renamed && program_.together != Together::Nobody) {
      expected_.verdict = Verdict::mismatch;
    } else {
      for (auto& rank : ranks_) rank.begin_call();
      while (expected_.verdict == Verdict::ok && !all_at(At::End)) step();
    }
    for (const auto& rank : ranks_) expected_.compiles.push_back(rank.compiles);
    if (expected_.verdict == Verdict::ok) expected_.remarks = divergences();
    return expected_;
  }

 private:
  bool any_at(At at) const {
    return std::any_of(ranks_.begin(), ranks_.end(), [at](const RankModel& rank) { return rank.at == at; });
  }
  bool all_at(At at) const {
    return std::all_of(ranks_.begin(), ranks_.end(), [at](const RankModel& rank) { return rank.at == at; });
  }

  void step() {
    if (all_at(At::Guard)) return compare();
    if (all_at(At::Compile)) return compile_all();
    if (all_at(At::Reduce)) {
      for (auto& rank : ranks_) rank.reduced();
    } else if (all_at(At::Barrier)) {
      pass_barrier();
    } else if ((any_at(At::Reduce) && any_at(At::Barrier)) || (any_at(At::Guard) && any_at(At::Compile))) {
      expected_.verdict = Verdict::mismatch;
    } else {
      hang();
    }
  }

  void compare() {
    const bool all = std::all_of(ranks_.begin(), ranks_.end(), [](const RankModel& rank) { return rank.has; });
    for (auto& rank : ranks_) rank.guarded(all);
  }

  // The k-th compilations of all ranks match. A compilation of a branch exchanges no lengths.
  void compile_all() {
    for (auto& rank : ranks_) {
      if (rank.in_branch) continue;
      for (const auto& other : ranks_) {
        if (program_.compilers() ? !other.in_branch : &other == &rank) rank.cache.see(other.length());
      }
    }
    for (auto& rank : ranks_) rank.compiled();
  }

  void pass_barrier() {
    const auto minutes = [&](const RankModel& rank) { return rank.minutes == ranks_[0].minutes; };
    if (program_.slow && !std::all_of(ranks_.begin(), ranks_.end(), minutes)) {
      expected_.verdict = Verdict::timeout;
      const auto told = divergences();
      const auto call = fmt::format(" recompiled f in call {}", ranks_[0].call + 1);
      if (!told.empty() && told.back() == call) expected_.in_headline = {call};
      return;
    }
    const auto& small = program_.small_buckets;
    if (program_.fixed_buckets && std::find(small.begin(), small.end(), !small[0]) != small.end()) {
      expected_.verdict = Verdict::mismatch;  // the all-reduces have different sizes
      return;
    }
    for (auto& rank : ranks_) {
      ++rank.call;
      rank.begin_call();
    }
  }

  void hang() {
    expected_.verdict = Verdict::deadlock;
    for (const auto& rank : ranks_) {
      if (rank.at != At::Compile && rank.at != At::Guard) continue;
      const auto call = rank.call + 1;
      expected_.in_headline.push_back(rank.at == At::Compile ? fmt::format(" f (call {}", call)
                                                             : fmt::format(" in call {} of f", call));
      return;
    }
    // No rank waits in a compiler collective, so some ranks wait in an all-reduce of the function.
    const auto told = divergences();
    if (!told.empty()) expected_.in_headline = {told.back()};
  }

  // Parts of the remarks on the calls of f in which some ranks compiled and others did not. Ranks that compile together
  // get no such remark.
  std::vector<std::string> divergences() const {
    std::vector<std::string> told;
    if (program_.together != Together::Nobody) return told;
    for (std::size_t call = 0; call < program_.lengths[0].size(); ++call) {
      bool any = false, none = false;
      for (const auto& rank : ranks_) {
        const bool of_g = program_.renamed && rank.rank + 1 == ranks_.size();
        const bool made = rank.call > call || (rank.call == call && rank.at != At::End);
        if (of_g || !made) continue;
        (rank.compiles[call] == 1 ? any : none) = true;
      }
      if (any && none) told.push_back(fmt::format(" recompiled f in call {}", call + 1));
    }
    return told;
  }

  const DivergentProgram& program_;
  std::vector<RankModel> ranks_;
  Expected expected_;
};

}  // namespace

std::string DivergentProgram::text() const {
  constexpr const char* kTogether[] = {"nobody", "compilers", "guards", "both"};
  constexpr const char* kKinds[] = {"plain", "reduces", "reads", "splits"};
  return fmt::format("{} {}{}{}{}{}{}{} {} {} {}", kTogether[static_cast<int>(together)],
                     kKinds[static_cast<int>(kind)], barriers ? " barriers" : "", slow ? " slow" : "",
                     jitter ? " jitter" : "", fails ? " fails" : "", renamed ? " renamed" : "",
                     fixed_buckets ? " fixed_buckets" : "", small_buckets, lengths, negative);
}

DivergentProgram program_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  DivergentProgram program;
  program.together = static_cast<Together>(draw(4));
  program.kind = static_cast<Kind>(draw(4));
  program.barriers = draw(2) == 0 || program.kind == Kind::Splits;
  const bool may_be_slow = program.kind == Kind::Plain || program.kind == Kind::Reads;
  program.slow = draw(2) == 0 && program.together != Together::Compilers && may_be_slow;
  program.jitter = !program.slow && draw(3) == 0;
  program.fails = draw(2) == 0;
  program.renamed = draw(12) == 0;
  program.fixed_buckets = draw(2) == 0 && program.kind == Kind::Splits;
  const auto ranks = 2 + draw(15), calls = 1 + draw(5);
  std::vector<std::int64_t> lengths;
  std::vector<bool> signs;
  const bool is_steady = draw(3) != 0;  // all calls have the same length, except the odd ones below
  for (std::uint64_t call = 0; call < calls; ++call) {
    const auto other = static_cast<std::int64_t>(2 + draw(4));
    lengths.push_back(is_steady && call > 0 ? lengths[0] : other);
    signs.push_back(draw(3) == 0);
  }
  program.lengths.assign(ranks, lengths);
  program.negative.assign(ranks, signs);
  program.small_buckets.assign(ranks, draw(2) == 0);
  for (std::uint64_t odd = draw(5); odd > 0; --odd) {
    auto& length = program.lengths[draw(ranks)][draw(calls)];
    const auto other = static_cast<std::int64_t>(2 + draw(6));
    length = draw(2) == 0 ? other : length ^ 1;  // `^ 1` changes is_long() only for 4 and 5
    if (draw(2) == 0) program.negative[draw(ranks)][draw(calls)].flip();
  }
  if (draw(2) == 0) program.small_buckets[draw(ranks)].flip();
  return program;
}

Expected expectation(const DivergentProgram& program) {
  Expected expected = Walk(program).expected();
  if (expected.verdict == Verdict::ok && program.fails && !expected.remarks.empty()) {
    expected.verdict = Verdict::check_failed;
    expected.in_headline = {expected.remarks.front()};
  }
  return expected;
}

}  // namespace rehearse::compiler
