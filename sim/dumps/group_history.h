// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <rehearse_internal/comm/mismatch.h>

#include "comm/agree/collective_calls.h"
#include "comm/agree/mailboxes.h"
#include "dumps/call_of_dump.h"
#include "dumps/dumped_job.h"
#include "report/diagnosis/headline_parts.h"

namespace rehearse::sim {

// A call that is not complete. Ranks are ranks of the world.
struct OpenCall {
  int rank = -1;
  std::string title;           // `allreduce #7 on group "0:default_pg"`
  std::string description;     // `... (3 of 4 ranks have called it)`
  std::vector<int> waits_for;  // empty: all ranks have made the call
  bool unknown = false;        // nobody knows whether these ranks made the call: their dumps are missing or too short
  bool seen = true;            // the dumps hold the call of each rank that made it
  const DumpedCall* call = nullptr;
};

// A call with its title: `allreduce #7 on group "0:default_pg"`.
struct TitledCall {
  const DumpedCall* call = nullptr;
  std::string title;
};

// The facts about one group that the dumps show.
struct GroupDiagnosis {
  std::optional<comm::Mismatch> mismatch;   // the first of the group; later ones follow from it
  std::optional<Imbalance> imbalance;       // an all-to-all whose splits cannot fit
  std::map<int, TitledCall> sides;          // each rank's call in the mismatch or imbalance
  std::vector<OpenCall> open;               // each rank's first open collective, and its open messages
  std::vector<std::string> never_received;  // completed sends for which no rank made a receive
};

// The calls of one group. Lines up the collectives of the ranks by their sequence numbers, pairs sends and receives in
// their order, and compares the calls as the matcher of a simulation does. The job must outlive this object.
class GroupHistory {
 public:
  GroupHistory(const DumpedJob& job, const JobGroup& group);

  GroupDiagnosis diagnose();

  // The rank's last call on this group, and its last completed call; nothing: the dump has none.
  std::optional<TitledCall> last(int rank) const;
  std::optional<TitledCall> last_completed(int rank) const;

 private:
  // A collective of one rank, with the entries of coalesced calls.
  struct Collective {
    std::vector<const DumpedCall*> entries;
    const ComparedCall* compared = nullptr;
    bool completed = false;
    bool cut = false;  // the recorder may have dropped a part of it

    const comm::Operation& operation() const { return compared->operation; }
  };
  struct Message {
    int rank = -1;  // within the group
    const DumpedCall* call = nullptr;
    const ComparedCall* compared = nullptr;
    bool completed = false;

    const comm::Operation& operation() const { return compared->operation; }
  };
  struct OfRank {
    std::map<std::uint64_t, Collective> collectives;
    std::list<Message> messages;
  };
  // Whether a rank made a call. `unseen`: it did, but its dump does not hold all of the call. `unknown`: no dump tells.
  enum class Made { yes, unseen, no, unknown };

  void read(int rank, const std::vector<const DumpedCall*>& calls);
  void end_coalescing(const DumpedCall& end, bool is_first, OfRank& own);
  static void finish(const Dump& dump, Collective& collective);
  static bool is_over(const Collective& collective, bool ranks_are_missing);

  const Dump* dump_at(int rank) const;  // `rank` within the group
  Made made(int rank, std::uint64_t sequence) const;
  static Made made_by_status(const Dump& dump, const DumpedCall& last, std::uint64_t sequence);
  bool diagnose_collective(std::uint64_t sequence, GroupDiagnosis& diagnosis);
  bool diagnose_imbalance(std::uint64_t sequence, GroupDiagnosis& diagnosis) const;
  void note_sides(std::uint64_t sequence, GroupDiagnosis& diagnosis) const;
  void diagnose_open(std::uint64_t sequence, const std::vector<Made>& made, GroupDiagnosis& diagnosis);
  void diagnose_messages(GroupDiagnosis& diagnosis);
  bool is_whole(const Message& message) const;
  int likely_source(const Message& recv) const;
  static std::vector<comm::Mismatch::Field> pair_fields(const Message& send, const Message& recv);
  void meet(const Message& send, const Message& recv, GroupDiagnosis& diagnosis);
  void diagnose_unmatched(GroupDiagnosis& diagnosis);
  OpenCall& add_open(const Message& message, GroupDiagnosis& diagnosis) const;
  TitledCall titled(const DumpedCall& call, const comm::Operation& operation) const;
  template <class Counts>
  std::optional<TitledCall> last_that(int rank, const Counts& counts) const;

  const DumpedJob& job_;
  const JobGroup& group_;
  const comm::GroupIdentity& identity_;
  CallsOfDumps operations_;
  std::vector<OfRank> ranks_;  // by rank within the group
  comm::CollectiveCalls calls_;
  comm::Mailboxes<const Message*> mailboxes_;
};

}  // namespace rehearse::sim
