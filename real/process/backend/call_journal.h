// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <mutex>
#include <string>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/call_label.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

#include "comm/call/payload_names.h"
#include "comm/record/event_writer.h"

namespace rehearse::real {

// The calls of a rank that is a process, written into its event log as the simulation writes them. Thread safe: back
// ends complete calls on threads of their own, and gradients may be made on others.
class CallJournal final : public comm::LabelKeeper {
 public:
  // `began`: time zero of the run, of the machine's clock. The log outlives it.
  CallJournal(int rank, int size, comm::EventLog& log, VirtualDuration began, bool call_sites);

  VirtualTime now() const noexcept;

  comm::GroupIdentity add_group(const std::string& name, const std::vector<int>& ranks);

  // An event of the log; nothing happens where it is no longer kept.
  struct Entry {
    comm::Event* event = nullptr;
    std::uint64_t record_id = 0;
    VirtualTime created{};
  };

  // A call made now: notes its label and payload in it. `number`: of this rank's calls on the group, from 1.
  Entry record(comm::Operation& call, const comm::GroupIdentity& group, std::uint64_t sequence, std::uint32_t number);
  void started(const Entry& entry);
  void completed(const Entry& entry, const std::string& title);
  void failed(const Entry& entry);

  // The log is not written any more.
  void close();

  void name_payload(const at::Tensor& tensor, const std::string& name);
  void forget_payload(const c10::TensorImpl* tensor) noexcept;

  const std::string* label() const noexcept override;
  void set_label(const std::string* label) noexcept override;
  const std::string* kept_label(const std::string& text) override;

 private:
  const int rank_;
  const VirtualDuration began_;
  const bool call_sites_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  comm::EventWriter events_;
  comm::PayloadNames payloads_;
};

}  // namespace rehearse::real
