// SPDX-License-Identifier: BSD-3-Clause
#include "comm/matcher/dispute.h"

#include <algorithm>
#include <utility>

#include "comm/call/fingerprint.h"
#include "comm/group/group_state.h"

namespace rehearse::comm {
namespace {

constexpr VirtualDuration kPatience = std::chrono::seconds(1);

class Waiting final : public exec::Observer {
 public:
  Waiting(const Meeting& meeting, const RankWork& work) : meeting_(meeting), work_(work) {}
  std::string describe() const override { return meeting_.describe(work_); }
  std::string call() const override { return title_of(work_); }
  std::vector<int> waits_for() const override { return meeting_.waits_for(work_); }

 private:
  const Meeting& meeting_;
  const RankWork& work_;
};

}  // namespace

void Dispute::add(c10::intrusive_ptr<RankWork> work, exec::CallSite where) {
  const int rank = group_.global_rank(work->rank());
  const auto alike = [&work](const Party& party) {
    return party.work->fingerprint == work->fingerprint && same_payload(party.work->operation, work->operation);
  };
  const auto party = std::find_if(parties_.begin(), parties_.end(), alike);
  if (party != parties_.end()) {
    party->ranks.insert(std::lower_bound(party->ranks.begin(), party->ranks.end(), rank), rank);
  } else {
    parties_.push_back({std::move(work), std::move(where), {rank}});
  }
  if (++arrived_ == group_.ranks().size()) queue_.notify_all();
}

std::vector<int> Dispute::opponents(const RankWork& work) const {
  const int rank = group_.global_rank(work.rank());
  std::vector<int> others;
  for (const auto& party : parties_) {
    if (std::binary_search(party.ranks.begin(), party.ranks.end(), rank)) continue;
    others.insert(others.end(), party.ranks.begin(), party.ranks.end());
  }
  std::sort(others.begin(), others.end());
  return others;
}

void Dispute::wait_for_the_others(const Meeting& meeting, const RankWork& work) {
  auto& world = group_.world();
  Patience patience(queue_);
  world.executor().timers().arm(patience, world.now() + kPatience);
  const Waiting observer(meeting, work);
  struct Disarm {
    exec::TimerQueue& timers;
    Patience& patience;
    ~Disarm() { timers.cancel(patience); }
  } disarm{world.executor().timers(), patience};
  while (arrived_ < group_.ranks().size() && !patience.over) queue_.wait(observer);
}

bool Dispute::has_majority(const Party& party) const { return party.ranks.size() * 2 > group_.ranks().size(); }

Mismatch::Side Dispute::side_of(const Party& party) const {
  auto side = group_.side_of(*party.work, party.where);
  side.alike = party.ranks;
  return side;
}

Mismatch Dispute::mismatch() const {
  std::vector<const Party*> parties;
  for (const auto& party : parties_) parties.push_back(&party);
  std::stable_partition(parties.begin(), parties.end(), [this](const Party* party) { return has_majority(*party); });
  Mismatch mismatch;
  mismatch.kind = Mismatch::Kind::collective;
  mismatch.group = group_.name();
  mismatch.sequence = sequence_;
  mismatch.has_majority = has_majority(*parties[0]);
  mismatch.first = side_of(*parties[0]);
  mismatch.second = side_of(*parties[1]);
  for (std::size_t i = 2; i < parties.size(); ++i) mismatch.others.push_back(side_of(*parties[i]));
  mismatch.fields = differences(parties[0]->work->operation, parties[1]->work->operation);
  return mismatch;
}

}  // namespace rehearse::comm
