// SPDX-License-Identifier: BSD-3-Clause
#include "core/compile/compiler_collectives/divergence_walk.h"

#include <algorithm>

namespace rehearse::compiler {

using Kind = DivergentProgram::Kind;
using Together = DivergentProgram::Together;

bool CacheModel::find(std::int64_t length) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const Entry& entry) {
    if (entry.length) return *entry.length == length;
    return kind_ != Kind::Reduces || entry.is_long == DivergentProgram::is_long(length);
  });
  if (found == entries_.end()) return false;
  std::rotate(entries_.begin(), found, found + 1);
  return true;
}

void CacheModel::see(std::int64_t length) {
  varies_ = varies_ || (seen_ && *seen_ != length);
  if (!seen_) seen_ = length;
}

void CacheModel::add(std::int64_t length) {
  Entry entry{.length = std::nullopt, .is_long = DivergentProgram::is_long(length)};
  if (!varies_) entry.length = length;
  entries_.insert(entries_.begin(), entry);
}

void RankModel::begin_call() {
  if (call == compiles.size()) {
    at = At::End;
    return;
  }
  in_branch = false;
  minutes = 0;
  look(cache.find(length()));
}

void RankModel::look(bool has_it) {
  has = has_it;
  if (program.guards()) {
    at = At::Guard;
  } else {
    guarded(has_it);
  }
}

void RankModel::guarded(bool is_served) {
  if (is_served) return in_branch ? behind_code() : behind_entry();
  compiles[call] = 1;
  minutes += program.kind == Kind::Reads && !in_branch ? 2 : 1;
  at = At::Compile;
  if (program.together != Together::Nobody) return;
  if (!in_branch) cache.see(length());
  compiled();
}

void RankModel::compiled() {
  if (in_branch) {
    cache.add_branch(negative());
    return behind_code();
  }
  cache.add(length());
  behind_entry();
}

// Continues after the entry's first segment.
void RankModel::behind_entry() {
  if (program.kind != Kind::Reads) return behind_code();
  in_branch = true;
  look(cache.has_branch(negative()));
}

void RankModel::behind_code() {
  reductions = program.kind != Kind::Reduces ? 0 : DivergentProgram::is_long(length()) ? 2 : 1;
  ++reductions;
  reduced();
}

void RankModel::reduced() {
  if (--reductions > 0) {
    at = At::Reduce;
  } else if (program.barriers) {
    at = At::Barrier;
  } else {
    ++call;
    begin_call();
  }
}

}  // namespace rehearse::compiler
