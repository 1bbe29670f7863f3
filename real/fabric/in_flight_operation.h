// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <c10/util/intrusive_ptr.h>
#include <rehearse/exec/time.h>
#include <rehearse_internal/comm/fabric.h>

#include "device_call.h"
#include "group_comms.h"
#include "nccl/nccl_api.h"

namespace rehearse::real {

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
