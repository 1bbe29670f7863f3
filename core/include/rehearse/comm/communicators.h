// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse/comm/event_log.h>
#include <rehearse/comm/fabric.h>
#include <rehearse/comm/mismatch.h>
#include <rehearse/comm/rank_work.h>
#include <rehearse/exec/executor.h>

namespace rehearse::comm {

class CreationDispute;
class GroupState;

struct CommunicatorOptions {
  // Of each operation, in virtual time, unless the call or ProcessGroup::setTimeout() says otherwise. 0: none.
  std::chrono::milliseconds timeout = std::chrono::minutes(30);

  // A send completes at once (its data is copied), not when it is received: hides deadlocks, as small messages do.
  bool buffered_sends = false;

  // The sends and receives between startCoalescing() and endCoalescing() are one unit, as NCCL launches them: none
  // moves before all of them, and those of every such unit that they meet, have met their peers. Otherwise each goes
  // alone.
  bool coalesced_as_one = false;

  // Keep where each operation was called. Slow: a stack walk for each.
  bool call_sites = false;

  // Register groups by name for c10d::resolve_process_group(). Needs registries by rank (TorchRankState makes them).
  bool register_groups = true;
};

// An operation that some ranks have called and that is not complete. Ranks are ranks of the world.
struct PendingOperation {
  int rank = -1;  // who called it
  std::string group;
  std::uint64_t sequence = 0;
  std::string call;             // as Observer::call()
  std::string description;      // as Observer::describe()
  std::vector<int> waits_for;   // who is missing; empty: the transfer is under way
  bool timed_out = false;       // its own time was over: it has failed, and is here for those who never came
  bool gave_up = false;         // the program knows: a wait met TimeoutError, a future holds it, or it asked for it
  std::uint64_t record_id = 0;  // Event::record_id of the call; RankWork::kNotRecorded for what a buffered send left
  std::string receiver{};  // of a send: what its peer receives instead, "rank 1 receives from rank 2"; empty: nothing
  bool is_send = false;
  std::uint64_t sent_as = 0;  // of a send: record_id, that of the call also where only its buffer is left
};

// A new_group() that not all ranks of the world have made, or a split(), merge() or shrink() that not all members have.
struct PendingGroup {
  std::string call;  // "new_group #3", "split"
  std::string name;
  std::vector<int> called_by, missing;
  exec::CallSite where{};  // of one of those who called it; empty unless captured
};

// Calls of one kind whose Work nobody ever asked: not waited for, not seen complete, no future taken. Left out are
// those that a rank's exception dropped, and those before a barrier of their group for which the rank waited.
struct UnwaitedCalls {
  std::string call;  // the first one, as in PendingOperation
  struct OfRank {
    int rank = -1;
    std::uint64_t times = 0;
    std::uint64_t last = 0;  // Event::record_id
  };
  std::vector<OfRank> ranks;
  exec::CallSite where{};  // of the first one; empty unless captured
};

// The communication of one world: its process groups, what is in flight in them, and the checks that all ranks call
// the same things in the same order.
//
// Ownership: everything given to the constructor outlives this object. Process groups and works may outlive it: they
// then refuse with CommError. Destroy it when run() has returned: what is in flight is cancelled and let go.
// Fibers: the calls without a `rank` belong in a rank's fiber, the others anywhere on the executor's thread. A
// call that differs from that of an earlier rank blocks until the others have taken a side, a second of virtual time at
// most; nothing else here blocks. Errors: see each call; MismatchError also ends the world (RankExecutor::stop).
class Communicators final : public exec::WaitExplainer {
 public:
  Communicators(exec::RankExecutor& executor, Fabric& fabric, EventLog& events, CheckerSink& sink,
                CommunicatorOptions options = {});
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  ~Communicators() override;

  // The calling rank's end of a new group of `ranks` (of the world; position = rank in the group), null when it is
  // not among them. As torch.distributed.new_group: every rank of the world calls it, members or not, in the same
  // order and with the same ranks. An empty name becomes "group<n>". `store` may be null; otherwise the group's store
  // is `store` with the group's name as prefix.
  // Throws MismatchError when this rank's n-th call differs from that of an earlier rank, once the others have taken a
  // side (after a second of virtual time at most); c10::ValueError when ranks are out of range or double, or when
  // another group has the name.
  c10::intrusive_ptr<c10d::ProcessGroup> new_group(std::span<const int> ranks, std::string_view name,
                                                   const c10::intrusive_ptr<c10d::Store>& store = {});

  // The group of all ranks, "world": a new_group() as any other.
  c10::intrusive_ptr<c10d::ProcessGroup> new_world_group(const c10::intrusive_ptr<c10d::Store>& store = {});

  // The end of the calling rank. c10d's registry of works, by which functional collectives find what to wait for, would
  // keep each work that nobody waited for as long as the process lives: takes the rank's out. Works that the program
  // still holds stay as they are. Time: works left behind, squared.
  void release_works() noexcept;

  // For split() and its like: the group of these ranks of the world under this name that `rank`, one of them, has not
  // yet taken. Its n-th such call takes the n-th such group, whatever else it does in between.
  c10::intrusive_ptr<GroupState> derive_group(const char* call, const std::string& name, const std::vector<int>& ranks,
                                              int rank);

  // For RankBackend::companion(): the group of `group`'s ranks under this name, made when it is first asked for.
  c10::intrusive_ptr<GroupState> companion_group(const GroupState& group, const std::string& name);

  // What `rank` calls the payload of its next operations; null: nothing. The string must live as long as this object.
  void set_label(int rank, const std::string* label) noexcept;

  // A label of that text which lives as long as this object.
  const std::string* kept_label(const std::string& text) { return &*kept_labels_.insert(text).first; }

  // Names what `rank`'s calls with exactly this tensor bring: reports show it, and ranks that meet in a collective with
  // different names are a mismatch (one without a name fits all). The tensor is not kept alive. A world without names
  // pays nothing for them, one with names a look into a hash table for each call.
  void name_payload(int rank, const at::Tensor& tensor, const std::string& name);
  void forget_payload(int rank, const c10::TensorImpl* tensor) noexcept;

  // What is still in flight: for reports when the world has ended. After a run in which all ranks returned, anything
  // left is a call that other ranks never made (its Work was dropped or never waited for). In order of the calls.
  // `only_of`: of this rank only; negative: of all.
  std::vector<PendingOperation> pending(int only_of = -1) const;
  std::vector<PendingGroup> pending_groups() const;

  // In order of each kind's first call.
  std::vector<UnwaitedCalls> unwaited_calls() const;

  // The rank's oldest call under way for which a rank is missing: what its waits for futures are for. Those come in the
  // order of the calls, as those of DDP's reducer for its buckets do.
  Explanation explain_wait(int rank) const override;

  const EventLog& events() const noexcept { return events_; }
  const CommunicatorOptions& options() const noexcept { return options_; }

  // What follows is for groups and works.

  struct Label {
    const std::string* text = nullptr;
    std::uint64_t hash = 0;  // of the text
  };
  const Label& label(int rank) const noexcept { return labels_[static_cast<std::size_t>(rank)]; }
  const PayloadName* payload(int rank, const Operation& call) const noexcept {
    if (payload_names_.empty() || call.inputs.size() != 1) return nullptr;
    return find_payload(payloads_[static_cast<std::size_t>(rank)], call);
  }
  exec::RankExecutor& executor() noexcept { return executor_; }
  Fabric& fabric() noexcept { return fabric_; }
  EventLog& event_log() noexcept { return events_; }
  VirtualTime now() const noexcept { return clock_.now(); }
  void note_unwaited(const RankWork& work);
  void note_work(int rank, RankWork& work) noexcept { works_[static_cast<std::size_t>(rank)].push_back(work); }

  // One mismatch ends the world: whoever begins a dispute while another goes on has nothing to add.
  bool begin_dispute() noexcept { return !std::exchange(in_dispute_, true); }
  void report(const Mismatch& mismatch) { sink_.on_mismatch(mismatch); }

  // Reports, stops the world, and throws MismatchError.
  [[noreturn]] void fail(const Mismatch& mismatch);

 private:
  // A weak reference: as long as it is there, no other tensor can have the address.
  struct NamedTensor {
    c10::weak_intrusive_ptr<c10::TensorImpl, c10::UndefinedTensorImpl> tensor;
    const PayloadName* name;
  };
  using NamedTensors = std::unordered_map<const c10::TensorImpl*, NamedTensor>;  // looked up, never walked
  static const PayloadName* find_payload(const NamedTensors& names, const Operation& call) noexcept;

  // One new_group() of the world: made by the first rank that calls it.
  struct Creation {
    c10::intrusive_ptr<GroupState> group;
    std::string given_name;
    std::vector<char> called;                  // by rank
    int first = -1;                            // the lowest of those ranks
    exec::CallSite where;                      // its call
    std::unique_ptr<CreationDispute> dispute;  // null: all calls so far agree
  };

  // A group made from others, by its members alone.
  struct Derivation {
    c10::intrusive_ptr<GroupState> group;
    const char* call;
    std::vector<char> taken;  // by rank in the group
    exec::CallSite where;     // of the first call
  };

  void check_name_is_free(std::string_view name, std::size_t groups) const;  // among the first `groups`
  void start_creation(std::span<const int> ranks, std::string_view name, int rank);
  void join_creation(std::span<const int> ranks, std::string_view name, std::size_t index, int rank);

  exec::RankExecutor& executor_;
  exec::Clock& clock_;
  Fabric& fabric_;
  EventLog& events_;
  CheckerSink& sink_;
  const CommunicatorOptions options_;
  std::set<std::string> kept_labels_;
  std::vector<Label> labels_;           // by rank
  std::vector<NamedTensors> payloads_;  // by rank
  std::map<std::string, PayloadName> payload_names_;
  std::vector<std::size_t> groups_made_;  // by rank: how many new_group() calls
  std::vector<RankWorks> works_;          // by rank: those that still exist
  std::vector<Creation> creations_;       // in order
  std::vector<Derivation> derivations_;   // in order of each one's first rank
  // In order of their making: which group's, and under which name.
  std::vector<std::pair<const GroupState*, c10::intrusive_ptr<GroupState>>> companions_;
  bool in_dispute_ = false;

  struct Unwaited {
    c10::intrusive_ptr<GroupState> group;
    std::string call;
    std::uint64_t first = 0;  // Event::record_id
    exec::CallSite where;
    std::map<int, UnwaitedCalls::OfRank> ranks;
  };
  std::map<std::tuple<std::uint32_t, std::uint64_t, std::uint32_t>, Unwaited> unwaited_;  // by group, signature, place
};

}  // namespace rehearse::comm
