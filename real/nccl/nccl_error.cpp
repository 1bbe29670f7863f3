// SPDX-License-Identifier: BSD-3-Clause
#include "nccl_error.h"

#include <utility>

#include <fmt/format.h>

namespace rehearse::real {
namespace {

// What the user can do about the error; empty: there is nothing to add to NCCL's text.
std::string_view advice_on(ncclResult_t result) noexcept {
  switch (result) {
    case ncclUnhandledCudaError:
      return "a CUDA call failed inside NCCL: the device may be lost, or out of memory";
    case ncclSystemError:
      return "a system call failed: shared memory (/dev/shm), a socket, or a limit (ulimit -l)";
    case ncclInternalError:
      return "NCCL_DEBUG=WARN in the environment makes NCCL say more";
    case ncclInvalidArgument:
    case ncclInvalidUsage:
      return "NCCL refuses two ranks on one device, and tensors on another rank's device";
    case ncclRemoteError:
      return "another process has ended, or the network to it is down";
    default:
      return "";
  }
}

}  // namespace

// Passes no backtrace to LibTorch's exception, so that what() is only the message.
NcclError::NcclError(std::string message, ncclResult_t result)
    : c10::DistBackendError(std::move(message), nullptr), result_(result) {}

std::string describe_failure(NcclApi& nccl, std::string_view call, ncclResult_t result, ncclComm_t comm) {
  const char* const text = nccl.get_error_string(result);
  std::string message =
      fmt::format("{} failed: {} ({})", call, text != nullptr ? text : "unknown", static_cast<int>(result));
  const char* const noted = nccl.get_last_error(comm);
  if (noted != nullptr && *noted != '\0') message += fmt::format(": {}", noted);
  const auto advice = advice_on(result);
  if (!advice.empty()) message += fmt::format("; {}", advice);
  return message;
}

void require_success(NcclApi& nccl, std::string_view call, ncclResult_t result, ncclComm_t comm) {
  if (result == ncclSuccess) [[likely]]
    return;
  throw NcclError(describe_failure(nccl, call, result, comm), result);
}

NcclGroup::NcclGroup(NcclApi& nccl) : nccl_(nccl) { require_success(nccl, "ncclGroupStart", nccl.group_start()); }

NcclGroup::~NcclGroup() {
  if (open_) static_cast<void>(nccl_.group_end());
}

void NcclGroup::end() {
  open_ = false;
  require_success(nccl_, "ncclGroupEnd", nccl_.group_end());
}

}  // namespace rehearse::real
