// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/tensor.h>
#include <fmt/format.h>
#include <torch/csrc/jit/serialization/pickle.h>
#include <torch/csrc/distributed/c10d/PrefixStore.hpp>

#include <rehearse/elastic/run.h>
#include <rehearse/job/rank_context.h>
#include <rehearse/parallel/shard_state.h>

// Each rank saves its rows under its own key in the job's store. A checkpoint counts when all ranks of its round have
// saved. If a rank is lost while it saves, the previous checkpoint remains.
namespace elastic_fsdp {

struct Loaded {
  std::int64_t steps = 0;  // 0: there is no checkpoint
  std::vector<rehearse::SavedRows> rows;
};

inline std::string packed(const std::vector<rehearse::SavedRows>& rows) {
  std::vector<c10::IValue> values;
  for (const auto& each : rows)
    values.push_back(c10::ivalue::Tuple::create({each.name, each.sizes, each.first_row, each.rows}));
  const auto bytes = torch::jit::pickle_save(c10::ivalue::Tuple::create(std::move(values)));
  return {bytes.begin(), bytes.end()};
}

inline void unpack(const std::string& bytes, std::vector<rehearse::SavedRows>& rows) {
  const auto values = torch::jit::pickle_load({bytes.begin(), bytes.end()});
  for (const auto& value : values.toTupleRef().elements()) {
    const auto& each = value.toTupleRef().elements();
    rows.push_back({each[0].toStringRef(), each[1].toIntVector(), each[2].toInt(), each[3].toTensor()});
  }
}

class ShardedCheckpoint {
 public:
  explicit ShardedCheckpoint(rehearse::elastic::Round& round)
      : round_(round), store_(c10::make_intrusive<c10d::PrefixStore>("sharded checkpoint", round.context().store())) {}

  // Returns what all ranks of an earlier round saved last. All ranks of this round must call it; blocks.
  Loaded load() {
    Last last;
    if (round_.group().rank() == 0) last = claim();
    const auto told = at::tensor({last.round, last.steps, last.ranks});
    round_.group().broadcast(told)->wait();
    last = {0, told[0].item<std::int64_t>(), told[1].item<std::int64_t>(), told[2].item<std::int64_t>()};
    Loaded loaded{last.steps, {}};
    for (int rank = 0; rank < last.ranks; ++rank) unpack(part(last, rank), loaded.rows);
    return loaded;
  }

  // Saves this rank's rows. All ranks must call it; none waits for the others.
  void save(std::int64_t steps, const std::vector<rehearse::SavedRows>& rows) {
    const Last own{round_.number(), round_.number(), steps, round_.group().size()};
    store_->set(own.key(round_.group().rank()), packed(rows));
    if (store_->add(own.key() + "parts", 1) == own.ranks) publish(own);
  }

 private:
  // The last checkpoint, and the last round that resumed from it or saved it.
  struct Last {
    std::int64_t claimed_by = -1, round = -1, steps = 0, ranks = 0;

    std::string key() const { return fmt::format("{}/{}/", round, steps); }
    std::string key(int rank) const { return key() + std::to_string(rank); }
    std::string text() const { return fmt::format("{} {} {} {}", claimed_by, round, steps, ranks); }
    static Last from(const std::string& text) {
      Last last;
      if (!text.empty()) std::istringstream(text) >> last.claimed_by >> last.round >> last.steps >> last.ranks;
      return last;
    }
  };

  // Lets `change` modify "last", unless `change` returns false. Returns the old value, and whether it was replaced.
  template <class Change>
  std::pair<Last, bool> replace(Change&& change) {
    for (auto text = store_->compareSet("last", "", "");;) {
      const Last before = Last::from(text);
      Last after = before;
      if (!change(after)) return {before, false};
      const auto now = store_->compareSet("last", text, after.text());
      if (now == after.text()) return {before, true};
      text = now;
    }
  }

  // Ranks of earlier rounds may not know yet that their round is over. From now on they cannot replace the checkpoint.
  Last claim() {
    return replace([this](Last& last) { return std::exchange(last.claimed_by, round_.number()) < round_.number(); })
        .first;
  }

  void publish(const Last& own) {
    const auto [before, is_published] = replace([&](Last& last) {
      const bool is_later = std::pair(own.round, own.steps) > std::pair(last.round, last.steps);
      if (own.round < last.claimed_by || !is_later) return false;
      last = own;
      return true;
    });
    forget(is_published ? before : own);
  }

  void forget(const Last& checkpoint) {
    for (int rank = 0; rank < checkpoint.ranks; ++rank) store_->deleteKey(checkpoint.key(rank));
    if (checkpoint.ranks > 0) store_->deleteKey(checkpoint.key() + "parts");
  }

  // Does not wait, because a missing part means that a later round has replaced the checkpoint.
  std::string part(const Last& checkpoint, int rank) {
    const auto bytes = store_->compareSet(checkpoint.key(rank), "", "");
    TORCH_CHECK_WITH(DistBackendError, !bytes.empty(), "round ", round_.number(), " is over: a later one has replaced ",
                     "the checkpoint after ", checkpoint.steps, " steps");
    return {bytes.begin(), bytes.end()};
  }

  rehearse::elastic::Round& round_;
  const c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace elastic_fsdp
