// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/meeting/divergence_model.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <random>

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace rehearse::compiler {
namespace {

using Together = DivergentProgram::Together;

// One rank's cache: entries for one length or for all, and what has been seen.
class Cache {
 public:
  bool serves(std::int64_t length) const {
    return std::any_of(entries_.begin(), entries_.end(), [&](const auto& entry) { return !entry || *entry == length; });
  }
  void see(std::int64_t length) {
    varies_ = varies_ || (seen_ && *seen_ != length);
    if (!seen_) seen_ = length;
  }
  void add(std::int64_t length) { entries_.push_back(varies_ ? std::nullopt : std::optional(length)); }

 private:
  std::vector<std::optional<std::int64_t>> entries_;
  std::optional<std::int64_t> seen_;
  bool varies_ = false;
};

struct Rank {
  enum class At { Working, Compiling, Barrier, End };

  Cache cache;
  std::size_t call = 0;
  At at = At::Working;
};

class Walk {
 public:
  explicit Walk(const DivergentProgram& program) : program_(program), ranks_(program.lengths.size()) {
    for (const auto& lengths : program.lengths) expected_.compiles.emplace_back(lengths.size(), 0);
  }

  Expected expected() {
    const bool guards = program_.together == Together::Guards || program_.together == Together::Both;
    if (program_.renamed && program_.together != Together::Nobody) {
      expected_.verdict = Verdict::mismatch;
    } else if (guards) {
      in_lockstep([&](const std::vector<bool>& hits) {
        const bool all = std::all_of(hits.begin(), hits.end(), [](bool hit) { return hit; });
        return std::vector<bool>(hits.size(), !all);
      });
    } else if (program_.together == Together::Compilers) {
      by_compilations();
    } else {
      alone();
    }
    return expected_;
  }

 private:
  std::int64_t length(std::size_t rank, std::size_t call) const { return program_.lengths[rank][call]; }

  // Call by call; `who` says, of who has a hit, who compiles.
  template <class Who>
  void in_lockstep(Who who) {
    for (std::size_t call = 0; call < program_.lengths[0].size(); ++call) {
      std::vector<bool> hits;
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank)
        hits.push_back(ranks_[rank].cache.serves(length(rank, call)));
      const auto compile = who(hits);
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
        if (!compile[rank]) continue;
        see(rank, call, compile);
        ranks_[rank].cache.add(length(rank, call));
        expected_.compiles[rank][call] = 1;
      }
      if (expected_.verdict != Verdict::ok) return;
    }
  }

  void see(std::size_t rank, std::size_t call, const std::vector<bool>& compile) {
    if (program_.together != Together::Both) return ranks_[rank].cache.see(length(rank, call));
    for (std::size_t other = 0; other < ranks_.size(); ++other) {
      if (compile[other]) ranks_[rank].cache.see(length(other, call));
    }
  }

  void alone() {
    std::size_t call = 0;
    in_lockstep([&](const std::vector<bool>& hits) {
      std::vector<bool> compile;
      for (const bool hit : hits) compile.push_back(!hit);
      note_divergence(compile, ++call);
      return compile;
    });
  }

  void note_divergence(const std::vector<bool>& compile, std::size_t call) {
    const auto differ = [](auto begin, auto end) {
      return std::adjacent_find(begin, end, std::not_equal_to<>()) != end;
    };
    // g, of the last rank alone, is another function.
    const bool of_f = differ(compile.begin(), compile.end() - (program_.renamed ? 1 : 0));
    if (of_f) expected_.remarks.push_back(fmt::format(" recompiled f in call {}", call));
    if (!program_.slow || !program_.barriers || !differ(compile.begin(), compile.end())) return;
    expected_.verdict = Verdict::timeout;
    if (of_f) expected_.in_headline = {expected_.remarks.back()};
  }

  // The k-th compilation of each rank meets the k-th of the others.
  void by_compilations() {
    for (;;) {
      for (std::size_t rank = 0; rank < ranks_.size(); ++rank) advance(rank);
      if (all_at(Rank::At::End)) return;
      if (all_at(Rank::At::Barrier)) {
        for (auto& rank : ranks_) next_call(rank);
      } else if (all_at(Rank::At::Compiling)) {
        meet();
      } else {
        return hang();
      }
    }
  }

  void advance(std::size_t index) {
    Rank& rank = ranks_[index];
    while (rank.at == Rank::At::Working) {
      if (rank.call == program_.lengths[index].size()) {
        rank.at = Rank::At::End;
      } else if (!rank.cache.serves(length(index, rank.call))) {
        rank.at = Rank::At::Compiling;
      } else {
        after_call(rank);
      }
    }
  }

  void after_call(Rank& rank) const {
    if (program_.barriers) {
      rank.at = Rank::At::Barrier;
    } else {
      next_call(rank);
    }
  }

  static void next_call(Rank& rank) {
    ++rank.call;
    rank.at = Rank::At::Working;
  }

  bool all_at(Rank::At at) const {
    return std::all_of(ranks_.begin(), ranks_.end(), [at](const Rank& rank) { return rank.at == at; });
  }

  void meet() {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      for (std::size_t other = 0; other < ranks_.size(); ++other) {
        ranks_[rank].cache.see(length(other, ranks_[other].call));
      }
      ranks_[rank].cache.add(length(rank, ranks_[rank].call));
      expected_.compiles[rank][ranks_[rank].call] = 1;
    }
    for (auto& rank : ranks_) after_call(rank);
  }

  void hang() {
    expected_.verdict = Verdict::deadlock;
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (ranks_[rank].at != Rank::At::Compiling) continue;
      expected_.in_headline.push_back(fmt::format(" f (call {}", ranks_[rank].call + 1));
      break;
    }
  }

  const DivergentProgram& program_;
  std::vector<Rank> ranks_;
  Expected expected_;
};

}  // namespace

std::string DivergentProgram::text() const {
  constexpr const char* kTogether[] = {"nobody", "compilers", "guards", "both"};
  return fmt::format("{}{}{}{}{}{} {}", kTogether[static_cast<int>(together)], barriers ? " barriers" : "",
                     slow ? " slow" : "", jitter ? " jitter" : "", fails ? " fails" : "", renamed ? " renamed" : "",
                     lengths);
}

DivergentProgram program_of(std::uint64_t seed) {
  std::mt19937_64 random(seed);
  const auto draw = [&](std::uint64_t below) { return random() % below; };
  DivergentProgram program;
  program.together = static_cast<Together>(draw(4));
  program.barriers = draw(2) == 0;
  program.slow = draw(2) == 0 && program.together != Together::Compilers;
  program.jitter = !program.slow && draw(3) == 0;
  program.fails = draw(2) == 0;
  program.renamed = draw(12) == 0;
  const auto ranks = 2 + draw(15), calls = 1 + draw(5);
  std::vector<std::int64_t> common;
  for (std::uint64_t call = 0; call < calls; ++call) common.push_back(static_cast<std::int64_t>(2 + draw(4)));
  program.lengths.assign(ranks, common);
  for (std::uint64_t odd = draw(5); odd > 0; --odd) {
    program.lengths[draw(ranks)][draw(calls)] = static_cast<std::int64_t>(2 + draw(6));
  }
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
