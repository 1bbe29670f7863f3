// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

#include <c10/util/Exception.h>

#include "nccl_api.h"

namespace rehearse::real {

// A call of NCCL's failed, or a communicator did behind the host's back. Catchable as c10::DistBackendError, as what
// PyTorch's own back end throws.
class NcclError : public c10::DistBackendError {
 public:
  NcclError(std::string message, ncclResult_t result);

  ncclResult_t result() const noexcept { return result_; }

 private:
  ncclResult_t result_;
};

// "ncclAllReduce failed: unhandled system error (2): <what NCCL noted last>; <what to do>". `comm` may be null.
std::string describe_failure(NcclApi& nccl, std::string_view call, ncclResult_t result, ncclComm_t comm);

// Throws NcclError unless `result` is ncclSuccess. ncclInProgress is none: communicators here block.
void require_success(NcclApi& nccl, std::string_view call, ncclResult_t result, ncclComm_t comm = nullptr);

// NCCL's calls between its two ends go out together. An exception on the way leaves no group open: what was in it is
// given to NCCL all the same, which has no way to take it back, so its communicators are to be aborted.
class NcclGroup {
 public:
  explicit NcclGroup(NcclApi& nccl);
  NcclGroup(const NcclGroup&) = delete;
  NcclGroup& operator=(const NcclGroup&) = delete;
  ~NcclGroup();

  // Throws NcclError. At most once.
  void end();

 private:
  NcclApi& nccl_;
  bool open_ = true;
};

}  // namespace rehearse::real
