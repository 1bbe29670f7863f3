// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include <rehearse/comm/event_log.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/call_label.h>
#include <rehearse_internal/comm/group_identity.h>
#include <rehearse_internal/comm/operation.h>

#include "comm/call/payload_names.h"
#include "comm/record/event_writer.h"

namespace rehearse::real {

// Writes the calls of a rank that is a process into the rank's event log, as the simulation does. Thread safe, because
// back ends complete calls on their own threads, and because DDP may make calls on a thread that computes gradients.
class CallJournal final : public comm::LabelKeeper {
 public:
  // `began`: the start of the run, by the machine's clock. The log must outlive this object.
  CallJournal(int rank, int size, comm::EventLog& log, VirtualDuration began, bool call_sites);

  VirtualTime now() const noexcept;

  comm::GroupIdentity add_group(const std::string& name, const std::vector<int>& ranks);

  // An event of the log. If the log no longer keeps the event, started(), completed() and failed() leave the log as it
  // is.
  struct Entry {
    comm::Event* event = nullptr;
    std::uint64_t record_id = 0;
    VirtualTime created{};
  };

  // Records a call that is made now, and notes its label and payload in `call`. `number` counts this rank's calls on
  // the group, from 1.
  Entry record(comm::Operation& call, const comm::GroupIdentity& group, std::uint64_t sequence, std::uint32_t number);
  void started(const Entry& entry);
  void completed(const Entry& entry, const std::string& title);
  void failed(const Entry& entry);

  // From now on started(), completed() and failed() do nothing.
  void close();

  void name_payload(const at::Tensor& tensor, const std::string& name);
  void forget_payload(const c10::TensorImpl* tensor) noexcept;

  const std::string* label() const noexcept override;
  void set_label(const std::string* label) noexcept override;
  const std::string* kept_label(const std::string& text) override;

 private:
  // 0: the thread that made the journal, or one that computes gradients for it.
  std::uint32_t thread_of_caller() const;

  const int rank_;
  const std::thread::id main_ = std::this_thread::get_id();
  mutable std::map<std::thread::id, std::uint32_t> threads_;  // numbers of other threads
  const VirtualDuration began_;
  const bool call_sites_;
  mutable std::mutex mutex_;
  bool closed_ = false;
  comm::EventWriter events_;
  comm::PayloadNames payloads_;
};

}  // namespace rehearse::real
