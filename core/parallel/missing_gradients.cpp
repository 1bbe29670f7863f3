// SPDX-License-Identifier: BSD-3-Clause
#include "parallel/missing_gradients.h"

#include <cstddef>
#include <map>
#include <unordered_set>

#include <fmt/format.h>

#include <rehearse_internal/formatting/name_list.h>

namespace rehearse::parallel {
namespace {

// LibTorch's reducer keeps the set of ready parameters private. Its errors name the parameters that are not ready, but
// only as text. An explicit instantiation may name private members.
struct ReadyParameters {
  using Member = std::unordered_set<std::size_t> c10d::Reducer::*;
  friend Member member_of(ReadyParameters);
};

template <ReadyParameters::Member member>
struct Opened {
  friend ReadyParameters::Member member_of(ReadyParameters) { return member; }
};
template struct Opened<&c10d::Reducer::perIterationReadyParams_>;

// The other members are protected, so a derived class can read them.
struct Iteration : c10d::Reducer {
  static bool is_unfinished(const Reducer& reducer) { return reducer.*(&Iteration::require_finalize_); }
  static bool expects_hooks(const Reducer& reducer) { return reducer.*(&Iteration::expect_autograd_hooks_); }
  static std::size_t bucket_of(const Reducer& reducer, std::size_t index) {
    return (reducer.*(&Iteration::variable_locators_))[index].bucket_index;
  }
  static std::size_t bucket_count(const Reducer& reducer) { return (reducer.*(&Iteration::buckets_)).size(); }
};

}  // namespace

std::string missing_gradients(const c10d::Reducer& reducer, const std::vector<std::string>& names) {
  if (!Iteration::is_unfinished(reducer)) return "";
  const auto& ready = reducer.*member_of(ReadyParameters());
  std::map<std::size_t, std::vector<std::string>> missing;  // by bucket
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (!ready.contains(i)) missing[Iteration::bucket_of(reducer, i)].push_back(names[i]);
  }
  std::string text;
  for (const auto& [bucket, of_bucket] : missing) {
    text += fmt::format("{}{} of DDP bucket {} of {}", text.empty() ? "no gradient came for parameters: " : ", ",
                        some_names(of_bucket), bucket, Iteration::bucket_count(reducer));
  }
  return text;
}

bool waits_for_backward(const c10d::Reducer& reducer) {
  return Iteration::expects_hooks(reducer) && !Iteration::is_unfinished(reducer);
}

}  // namespace rehearse::parallel
