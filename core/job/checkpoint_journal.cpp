// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/job/checkpoint_journal.h>

#include <algorithm>
#include <map>
#include <tuple>

namespace rehearse::elastic {
namespace {

using Saved = CheckpointJournal::Saved;
using Tensors = std::vector<CheckpointJournal::TensorHash>;

std::vector<std::string> names_of_differences(const Tensors& tensors, const Tensors& reference) {
  std::vector<std::string> names;
  for (const auto& tensor : tensors) {
    if (std::ranges::find(reference, tensor) == reference.end()) names.push_back(tensor.name);
  }
  return names;
}

}  // namespace

std::optional<StateDifference> first_difference(const CheckpointJournal& journal, const CheckpointJournal& reference) {
  using Key = std::tuple<int, std::int64_t, int>;  // run, steps, rank
  std::map<Key, const Saved*> expected;
  for (const Saved& saved : reference.saved()) expected.emplace(Key{saved.in.run, saved.steps, saved.rank}, &saved);

  std::vector<const Saved*> by_step;
  for (const Saved& saved : journal.saved()) by_step.push_back(&saved);
  std::ranges::stable_sort(by_step, [](const Saved* a, const Saved* b) {
    return std::tie(a->in.run, a->steps, a->in.round) < std::tie(b->in.run, b->steps, b->in.round);
  });

  std::optional<StateDifference> difference;
  for (const Saved* const saved : by_step) {
    if (difference && (saved->in != difference->in || saved->steps != difference->steps)) break;
    const auto twin = expected.find({saved->in.run, saved->steps, saved->rank});
    if (twin == expected.end() || twin->second->tensors == saved->tensors) continue;
    if (!difference) {
      difference = {saved->in, saved->steps, {}, names_of_differences(saved->tensors, twin->second->tensors)};
    }
    difference->ranks.push_back(saved->rank);
  }
  if (difference) std::ranges::sort(difference->ranks);
  return difference;
}

}  // namespace rehearse::elastic
