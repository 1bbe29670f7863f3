// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <c10/util/Exception.h>

#include "nccl_api.h"

namespace rehearse::real {

// A call of NCCL failed, or a communicator failed asynchronously. PyTorch's own back end throws the base class.
class NcclError : public c10::DistBackendError {
 public:
  NcclError(std::string message, ncclResult_t result);

  ncclResult_t result() const noexcept { return result_; }

 private:
  ncclResult_t result_;
};

// For example "ncclAllReduce failed: unhandled system error (2): <NCCL's last note>; <what to do>". `comm` may be null.
std::string describe_failure(NcclApi& nccl, std::string_view call, ncclResult_t result, ncclComm_t comm);

// Throws NcclError unless `result` is ncclSuccess. ncclInProgress also throws, because all our communicators are
// blocking ones.
void require_success(NcclApi& nccl, std::string_view call, ncclResult_t result, ncclComm_t comm = nullptr);

// NCCL launches the calls between the constructor and end() together. If an exception comes before end(), the
// destructor closes NCCL's group. NCCL then carries out the calls that it already has, because it cannot take them
// back, so the caller must abort their communicators.
class NcclGroup {
 public:
  explicit NcclGroup(NcclApi& nccl);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup();

  // Throws NcclError. Call it at most once.
  void end();

 private:
  NcclApi& nccl_;
  bool open_ = true;
};

}  // namespace rehearse::real
