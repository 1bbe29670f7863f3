// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <exception>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse/exec/time.h>

namespace rehearse {

// Thrown at a rank's blocking calls once its world has ended, so that the rank unwinds in order. Also thrown in the
// threads that a rank has started, once the rank itself has ended. If a program catches it and carries on, its next
// blocking call throws again.
class RankAborted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

}  // namespace rehearse

namespace rehearse::exec {

// A wait that reached its timeout.
struct GivenUpWait {
  std::string call;            // Observer::call()
  std::vector<int> waits_for;  // Observer::waits_for()
  VirtualTime at{};
};

// An exception in flight: destructors run, and no catch block has begun.
struct Unwinding {
  std::exception_ptr error;
  std::string what;    // as RankFailure::what
  CallSite thrown_at;  // empty if unknown
};

// An exception that left a rank's body, or one of the rank's threads.
struct RankFailure {
  int rank = -1;
  std::exception_ptr error;
  std::string what;    // the exception's text, or its type if it has none
  CallSite thrown_at;  // innermost frames of the throw; empty if unknown
  VirtualTime at{};
  // The rank's last wait that reached its timeout. The program may have caught the error of that wait.
  std::optional<GivenUpWait> gave_up;
  // If a destructor threw this exception while another exception unwound the stack, this is the other exception.
  std::optional<Unwinding> unwinding;
};

// Gets each rank's failure when it happens, in order, in the failing rank's fiber.
class FailureSink {
 public:
  enum class Verdict { end_world, keep_running };

  virtual ~FailureSink() = default;

  // end_world: RankAborted is thrown in the other ranks' next blocking calls. keep_running: they go on, and may wait
  // for the failed rank forever.
  virtual Verdict on_rank_failure(const RankFailure& failure) = 0;
};

}  // namespace rehearse::exec
