// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <chrono>
#include <string>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include <rehearse_internal/comm/group_identity.h>

namespace rehearse::comm {

// A back end that describes its calls, for reports and checks, and can be told what they bring: what libraries above it
// (DistributedDataParallel, compile()) ask for by a dynamic_cast. RankBackend in worlds of fibers, a checked back end
// where each rank is a process.
//
// Fibers, threads and errors: as the back end's own calls.
class DescribedBackend : public c10d::Backend {
 public:
  using c10d::Backend::Backend;

  virtual const GroupIdentity& identity() const noexcept = 0;

  // As Communicators::name_payload() and forget_payload() for this rank; the second does nothing once the world is
  // over.
  virtual void name_payload(const at::Tensor& tensor, const std::string& name) = 0;
  virtual void forget_payload(const c10::TensorImpl* tensor) noexcept = 0;

  // How many models this rank has made on the group, with this one: all ranks make theirs in the same order.
  int count_model() noexcept { return ++models_; }

  // A group of the same ranks under that name, whose calls have an order of their own: for what a library sends beside
  // its user's calls. One for each group and name, made when a rank first asks for it; always the same object here. Not
  // a call that all ranks must make: nobody is told of one that does not.
  virtual c10::intrusive_ptr<c10d::Backend> companion(const std::string& name) = 0;

  // c10d's ephemeral timeout (torch's _add_ephemeral_timeout_for_all_pgs(), which NCCL alone has): this rank's next
  // operation, and those that it begins before that one has ended, get `duration` on top of their time limits. A second
  // call adds to the first. Throws c10::Error for durations below 0.
  virtual void extend_timeout_once(std::chrono::milliseconds duration) = 0;

 private:
  int models_ = 0;
};

}  // namespace rehearse::comm
