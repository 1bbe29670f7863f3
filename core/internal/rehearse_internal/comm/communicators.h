// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <rehearse/comm/event_log.h>
#include <rehearse_internal/comm/communicator_options.h>
#include <rehearse_internal/comm/fabric.h>
#include <rehearse_internal/comm/mismatch.h>
#include <rehearse_internal/comm/pending.h>
#include <rehearse_internal/exec/executor.h>

namespace rehearse::comm {

class GroupWorld;

// The communication of one world: its process groups, their operations in flight, and the checks that all ranks make
// the same calls in the same order.
//
// Ownership: everything passed to the constructor must outlive this object. Process groups and works may outlive this
// object; their calls then throw CommError. Destroy it after run() has returned: operations in flight are cancelled and
// released. Fibers: call new_group(), new_local_group(), new_world_group() and release_works() in a rank's fiber, the
// others anywhere on the executor's thread. A call that differs from an earlier rank's call blocks until the others
// have voted, for at most a second of virtual time; nothing else here blocks. Errors: see each function; MismatchError
// also ends the world (RankExecutor::stop).
class Communicators final : public exec::WaitExplainer {
 public:
  Communicators(exec::RankExecutor& executor, Fabric& fabric, EventLog& events, CheckerSink& sink,
                const CommunicatorOptions& options = {});
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;
  ~Communicators() override;

  // Makes the calling rank's process group for a new group. `ranks`: ranks of the world; the position is the rank in
  // the group. Returns null if the calling rank is not among them. As torch.distributed.new_group: every rank of the
  // world must call it, members or not, in the same order and with the same ranks. An empty name becomes "group<n>". If
  // `store` is not null, the group's store is `store` with the group's name as prefix. Throws MismatchError if this
  // rank's n-th call differs from an earlier rank's n-th call, after the vote; c10::ValueError if `ranks` is empty, if
  // ranks are out of range or repeated, or if another group made by all ranks has the name.
  c10::intrusive_ptr<c10d::ProcessGroup> new_group(std::span<const int> ranks, std::string_view name,
                                                   const c10::intrusive_ptr<c10d::Store>& store = {});

  // Like new_group(), but only the members call it: torch.distributed.new_group() with use_local_synchronization. The
  // n-th such call of a rank with these ranks and this name joins the n-th such group. An empty name becomes one that
  // lists the ranks. Never returns null. Throws c10::ValueError if `ranks` is empty, if ranks are out of range or
  // repeated, or if the calling rank is not among them.
  c10::intrusive_ptr<c10d::ProcessGroup> new_local_group(std::span<const int> ranks, std::string_view name,
                                                         const c10::intrusive_ptr<c10d::Store>& store = {});

  // The group of all ranks, "world": a new_group() like any other.
  c10::intrusive_ptr<c10d::ProcessGroup> new_world_group(const c10::intrusive_ptr<c10d::Store>& store = {});

  // Call it at the end of the calling rank. Functional collectives find their works in c10d's registry, which would
  // keep each work that nobody waited for until the process ends. This function removes the rank's works from the
  // registry. Works that the program still holds stay valid. Takes time quadratic in the works left behind.
  void release_works() noexcept;

  // Waits for all operations of the calling rank that are in flight, as when a program waits for its whole GPU. Throws
  // as their wait() does.
  void wait_for_works();

  // Sets the label of the next operations of this thread of `rank`, which names their payload; null: none. The string
  // must live as long as this object.
  void set_label(int rank, const std::string* label);

  // A label with that text, which lives as long as this object.
  const std::string* kept_label(const std::string& text);
  // Null: none.
  const std::string* label(int rank) const noexcept;

  // Names the payload of `rank`'s calls whose only input is this tensor. Reports show the name. If ranks call a
  // collective with different names, that is a mismatch (a call without a name matches every name). Does not keep the
  // tensor alive. Costs a hash table lookup per call, and nothing in a world without names.
  void name_payload(int rank, const at::Tensor& tensor, const std::string& name);
  void forget_payload(int rank, const c10::TensorImpl* tensor) noexcept;

  // The operations still in flight, for reports after the end of the world, in the order of the calls. Also lists calls
  // of an incomplete collective that have timed out. If a call is in flight although all ranks returned, another rank
  // never made its call, or the transfer had not ended. `only_of`: this rank only; negative: all ranks.
  std::vector<PendingOperation> pending(int only_of = -1) const;
  std::vector<PendingGroup> pending_groups() const;

  // Leaves out groups if another group of the same place was used: a loop makes the groups of all ranks, and a mesh
  // those of all dimensions. Also leaves out the world's group, and groups that only their members made.
  std::vector<UnusedGroups> unused_groups() const;

  // unwaited_calls() and short_messages() return one item for each kind of call, in the order of the first calls of
  // each kind.
  std::vector<UnwaitedCalls> unwaited_calls() const;
  std::vector<ShortMessages> short_messages() const;

  // Texts about how ranks used their groups, each with the ranks that it concerns. Reports show remarks() always, and
  // notes() if the run failed.
  const std::map<std::string, std::set<int>>& remarks() const noexcept;
  const std::map<std::string, std::set<int>>& notes() const noexcept;
  // Groups on which several threads of a rank make collectives without taking turns.
  const std::set<std::string>& raced_groups() const noexcept;

  // For a rank that waits for a future: describes the rank's oldest call in flight for which another rank is missing.
  // Assumes that ranks wait in the order of their calls, as DDP's reducer does for its buckets.
  exec::Wait explain_wait(int rank) const override;

  // `rank` has crashed. Withdraws its calls that still wait for peers, so that the peers see the rank as missing.
  // `connections_break`: other ranks' calls that wait for `rank` fail at once with CommError; otherwise these calls
  // wait until their time limit. `rank` is no longer a member of any existing group. Call it anywhere on the executor's
  // thread.
  void lose(int rank, bool connections_break);

  // The lost rank `rank` is restarted, without a label. Its new_group() calls count from the first again, as those of
  // its previous incarnation did. If such a call leads to a group that existed before the crash, the rank gets that
  // group, in which no other rank answers its calls. Call it anywhere on the executor's thread.
  void begin_again(int rank) noexcept;

  const EventLog& events() const noexcept;
  const CommunicatorOptions& options() const noexcept;

 private:
  exec::RankExecutor& executor_;
  const std::unique_ptr<GroupWorld> world_;
};

}  // namespace rehearse::comm
