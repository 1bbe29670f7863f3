// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse/exec/time.h>
#include <rehearse/job/fault_line.h>
#include <rehearse/sim/fault.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

namespace rehearse::sim {

// The calls of one rank that a fault almost fitted. They explain why the fault did not fire.
class NearMisses {
 public:
  // A call on the fault's group, and which of the fault's conditions it meets: kind and number.
  struct Call {
    const comm::Operation& operation;
    const comm::GroupIdentity& group;
    std::uint64_t sequence;
    bool is_of_kind;
    bool has_number;
  };
  void look_at(const Fault& fault, const Call& call);

  // Notes that the call for which the fault was planned failed before the fault could fire, and why.
  void refuse(const std::string& why) { refused_ = why; }
  // Like refuse(), for a call of the store. Counts the call, because look_at() gets only calls on groups.
  void refuse_its_kind(const std::string& why) {
    ++calls_;
    refuse(why);
  }

  // The number of calls of the fault's kind. If the fault names a label, only calls with that label count.
  std::uint64_t calls() const noexcept { return calls_; }

  // Why the fault did not fire on `rank`. Empty: nothing is known except that no call fitted.
  std::string text(const Fault& fault, int rank, const std::vector<comm::EventLog::Group>& groups) const;

 private:
  struct Numbers {
    std::uint64_t count = 0;
    std::vector<std::uint64_t> first;
  };

  std::string about_label(const Fault& fault) const;
  std::string about_number(const Fault& fault) const;

  std::uint64_t calls_ = 0;
  bool label_was_there_ = false;
  std::set<std::string> labels_;              // some of the labels that other calls had
  std::map<std::uint32_t, Numbers> of_kind_;  // by group
  std::string other_;  // a call of another kind with the fault's number: "#2 on group "world" was an allreduce"
  std::uint32_t group_of_other_ = 0;
  std::string output_;  // describes a call that fits, except that its output lacks the fault's element
  std::string refused_;
};

// One fault of a world, with its firings so far and its near misses.
struct FaultPlan {
  // Each rank is a target of its own.
  struct Target {
    std::uint64_t fired = 0;
    NearMisses nearly;
  };
  const Fault* fault = nullptr;
  FaultLine line;
  std::map<int, Target> targets;  // by rank
  std::uint64_t drawn = 0;        // how often the oracle drew for it
};

bool is_of(const Fault& fault, int rank);

// True if the fault happens at a time or when another fault fires, and not at a call.
bool needs_no_call(const Fault& fault);

// The time from which `fault`, a fault of one of the plans, may fire. Nothing: the fault on which it depends has not
// fired.
std::optional<VirtualTime> due(const Fault& fault, const std::vector<FaultPlan>& plans);

// A hash, for the run's identity, of what each fault did, where and when, but not of what brought the fault about. 0:
// no fault fired.
std::uint64_t hash_of(const std::vector<FaultPlan>& plans);

}  // namespace rehearse::sim
