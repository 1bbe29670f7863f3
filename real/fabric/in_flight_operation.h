// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/core/Event.h>
#include <c10/core/Stream.h>
#include <c10/util/intrusive_ptr.h>

#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/device_end.h>
#include <rehearse_internal/comm/fabric.h>

#include "group_comms.h"
#include "nccl/nccl_api.h"

namespace rehearse::real {

// One rank's call on its device: where it begins in the caller's stream, on which stream it runs, and where it ends.
// Uses LibTorch's events and streams, so it works with every kind of device that is registered there.
//
// If the device fails, done(), order(), milliseconds() and reached() do not throw, because their callers could not do
// anything about the failure. failure() then returns the error.
class DeviceCall final : public comm::DeviceEnd {
 public:
  // Must run in the rank's context. `runs_on` may be the caller's own stream.
  DeviceCall(int rank, c10::Stream caller, c10::Stream runs_on, bool timed);

  // Call begin() and end() around the launch. begin() makes `runs_on` wait for what the caller launched before the
  // call. end() marks the end of what was launched in between, for later waits. They throw what LibTorch throws.
  void begin();
  void end();

  bool done() noexcept override;
  void order() noexcept override;
  c10::Stream stream() const noexcept override { return runs_on_; }
  std::optional<float> milliseconds() noexcept override;

  // True if the device has reached the point at which the caller made the call.
  bool reached() noexcept;

  int rank() const noexcept { return rank_; }  // within the group
  std::exception_ptr failure() const noexcept { return failure_; }

 private:
  bool query(const c10::Event& event) noexcept;

  const int rank_;
  const c10::Stream caller_;
  const c10::Stream runs_on_;
  const bool timed_;
  c10::Event before_;
  c10::Event begin_;  // only if timed
  c10::Event after_;
  bool launched_ = false;
  bool done_ = false;
  std::exception_ptr failure_;
};

// A transfer from its launch() to its end.
class InFlightOperation {
 public:
  InFlightOperation(const comm::Transfer& transfer, comm::Completion& completion, GroupComms& comms);

  // To launch the transfer, call begin(), then issue() within an open group of NCCL, then end(). They throw what
  // LibTorch throws, and what real::issue() throws.
  void begin();
  void issue(NcclApi& nccl) const;
  void end(VirtualTime now);

  // True if the devices have finished the transfer. A barrier moves no data: it is over if each rank's device has
  // reached the point of the rank's stream at which the rank made the call.
  bool over() noexcept;
  std::exception_ptr failure() const noexcept;

  bool is_barrier() const noexcept { return transfer_.type == c10d::OpType::BARRIER; }
  bool wanted_at_once() const noexcept;
  comm::Completion& completion() const noexcept { return *completion_; }
  GroupComms& comms() const noexcept { return *comms_; }
  const comm::Transfer& transfer() const noexcept { return transfer_; }
  VirtualTime deadline() const noexcept { return deadline_; }
  void collect(std::vector<at::Tensor>& tensors) const;  // adds the tensors of its calls
  std::string title() const;                             // `allreduce #3 on group "world"`

 private:
  comm::Transfer transfer_;
  comm::Completion* completion_;
  GroupComms* comms_;
  std::vector<c10::intrusive_ptr<DeviceCall>> ends_;  // one for each call
  VirtualTime deadline_ = VirtualTime::max();
};

}  // namespace rehearse::real
