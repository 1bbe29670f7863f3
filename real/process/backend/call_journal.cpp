// SPDX-License-Identifier: BSD-3-Clause
#include "call_journal.h"

#include <torch/csrc/autograd/graph_task.h>

#include <rehearse_internal/exec/machine_time.h>
#include <rehearse_internal/job/rank_note.h>

#include "comm/call/fingerprint.h"

namespace rehearse::real {

CallJournal::CallJournal(int rank, int size, comm::EventLog& log, VirtualDuration began, bool call_sites)
    : rank_(rank), began_(began), call_sites_(call_sites), events_(log), payloads_(static_cast<std::size_t>(size)) {}

VirtualTime CallJournal::now() const noexcept { return VirtualTime{exec::machine_time() - began_}; }

comm::GroupIdentity CallJournal::add_group(const std::string& name, const std::vector<int>& ranks) {
  const std::lock_guard lock(mutex_);
  return {events_.add_group({name, name, ranks}), name, ranks};
}

CallJournal::Entry CallJournal::record(comm::Operation& call, const comm::GroupIdentity& group, std::uint64_t sequence,
                                       std::uint32_t number) {
  const std::lock_guard lock(mutex_);
  const auto hash =
      comm::signature_hash(call, comm::agreement_hash(call, payloads_.note_in(call, rank_, thread_of_caller())));
  comm::Event event;
  event.time_created = now();
  event.seq_id = static_cast<std::uint32_t>(sequence);
  event.op_id = number;
  event.pg_id = group.id;
  event.signature = events_.signature_of(hash, [&call] { return comm::signature_of(call); });
  event.rank = rank_;
  if (call.peer >= 0) event.peer = group.global_rank(call.peer);
  event.tag = call.tag;
  auto& stored = events_.record(event, hash);
  rank_note().count_call();
  if (call_sites_) events_.set_call_site(stored, exec::CallSite::capture());
  return {&stored, stored.record_id, stored.time_created};
}

void CallJournal::started(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (!closed_ && entry.event->record_id == entry.record_id) entry.event->time_started = now();
}

void CallJournal::completed(const Entry& entry, const std::string& title) {
  const std::lock_guard lock(mutex_);
  if (closed_) return;
  if (entry.event->record_id == entry.record_id) entry.event->time_ended = now();
  rank_note().completed(title);
}

void CallJournal::failed(const Entry& entry) {
  const std::lock_guard lock(mutex_);
  if (closed_ || entry.event->record_id != entry.record_id) return;
  entry.event->time_ended = now();
  entry.event->failed = 1;
}

void CallJournal::close() {
  const std::lock_guard lock(mutex_);
  closed_ = true;
}

void CallJournal::name_payload(const at::Tensor& tensor, const std::string& name) {
  const std::lock_guard lock(mutex_);
  payloads_.name(rank_, tensor, name);
}

void CallJournal::forget_payload(const c10::TensorImpl* tensor) noexcept {
  const std::lock_guard lock(mutex_);
  payloads_.forget(rank_, tensor);
}

std::uint32_t CallJournal::thread_of_caller() const {
  const auto id = std::this_thread::get_id();
  const bool computes_gradients = torch::autograd::get_current_graph_task_id() >= 0;
  if (id == main_ || (computes_gradients && !threads_.contains(id))) return 0;
  return threads_.try_emplace(id, static_cast<std::uint32_t>(threads_.size() + 1)).first->second;
}

const std::string* CallJournal::label() const noexcept {
  const std::lock_guard lock(mutex_);
  return payloads_.label(rank_, thread_of_caller());
}

void CallJournal::set_label(const std::string* label) noexcept {
  const std::lock_guard lock(mutex_);
  payloads_.set_label(rank_, thread_of_caller(), label);
}

const std::string* CallJournal::kept_label(const std::string& text) {
  const std::lock_guard lock(mutex_);
  return payloads_.keep(text);
}

}  // namespace rehearse::real
