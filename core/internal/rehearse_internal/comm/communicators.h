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

// The communication of one world: its process groups, what is in flight in them, and the checks that all ranks call
// the same things in the same order.
//
// Ownership: everything given to the constructor outlives this object. Process groups and works may outlive it: they
// then refuse with CommError. Destroy it when run() has returned: what is in flight is cancelled and let go.
// Fibers: the calls without a `rank` belong in a rank's fiber, the others anywhere on the executor's thread. A
// call that differs from that of an earlier rank blocks until the others have voted, a second of virtual time at
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

  // As new_group(), but called by the members alone: torch.distributed.new_group() with use_local_synchronization. A
  // rank's n-th such call with these ranks and this name takes the n-th such group. An empty name is made of the ranks.
  // Never null. Throws c10::ValueError when ranks are out of range or double, or the calling rank is not among them.
  c10::intrusive_ptr<c10d::ProcessGroup> new_local_group(std::span<const int> ranks, std::string_view name,
                                                         const c10::intrusive_ptr<c10d::Store>& store = {});

  // The group of all ranks, "world": a new_group() as any other.
  c10::intrusive_ptr<c10d::ProcessGroup> new_world_group(const c10::intrusive_ptr<c10d::Store>& store = {});

  // The end of the calling rank. c10d's registry of works, by which functional collectives find what to wait for, would
  // keep each work that nobody waited for as long as the process lives: takes the rank's out. Works that the program
  // still holds stay as they are. Time: works left behind, squared.
  void release_works() noexcept;

  // What `rank` calls the payload of its next operations; null: nothing. The string must live as long as this object.
  void set_label(int rank, const std::string* label) noexcept;

  // A label of that text which lives as long as this object.
  const std::string* kept_label(const std::string& text);
  // That of `rank`; null: none.
  const std::string* label(int rank) const noexcept;

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
  std::vector<ShortMessages> short_messages() const;

  // How ranks used their groups, by text: told however the run ends, and where it fails.
  const std::map<std::string, std::set<int>>& remarks() const noexcept;
  const std::map<std::string, std::set<int>>& notes() const noexcept;

  // The rank's oldest call under way for which a rank is missing: what its waits for futures are for. Those come in the
  // order of the calls, as those of DDP's reducer for its buckets do.
  Explanation explain_wait(int rank) const override;

  // `rank` has crashed. Its calls that still wait for peers are withdrawn, so that the peers see it as missing.
  // `connections_break`: calls of others that wait for it fail at once with CommError; else they wait until their time
  // is over. It is a member of none of the groups that there are any more. Anywhere on the executor's thread.
  void lose(int rank, bool connections_break);

  // `rank`, which is lost, begins again, without labels and payload names. Its new_group() calls count from the first,
  // as those of its former life did: where they come to a group that it has lost, they get that one, whose calls
  // nobody answers. Anywhere on the executor's thread.
  void begin_again(int rank) noexcept;

  const EventLog& events() const noexcept;
  const CommunicatorOptions& options() const noexcept;

 private:
  exec::RankExecutor& executor_;
  const std::unique_ptr<GroupWorld> world_;
};

}  // namespace rehearse::comm
