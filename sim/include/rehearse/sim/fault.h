// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <rehearse/exec/time.h>

namespace rehearse {

// Something that goes wrong on purpose: who does what, when, and how often. A plain value with one text, which is the
// same in code, on the command line and in reports: "crash rank=3 at=allreduce#12". docs/FAULTS.md has all words.
struct Fault {
  enum class Verb {
    crash,            // the rank never runs again, as if its process were killed
    exit,             // the rank calls exit(status)
    hang,             // the rank never comes back from the call
    pause,            // the rank stands still for `amount` before the call
    slow,             // from the start: what the rank computes and communicates takes `factor` times as long
    delay,            // the data of the call moves `amount` later
    skip_collective,  // the rank leaves the call out, and does not know
    fail_op,          // the call throws CommError
    corrupt,          // the call's first output is wrong on the rank
  };
  enum class Corruption { nan, bit };
  enum class Peers { timeout, disconnect };

  // A call: "allreduce#12"; "allreduce": the first of that kind that comes; "#12": of any kind.
  struct Point {
    std::string op;            // empty: any
    std::uint64_t number = 0;  // 0: any
    friend bool operator==(const Point&, const Point&) = default;
  };

  Verb verb = Verb::crash;
  std::vector<int> ranks;  // empty: all

  // When: all that are given must hold.
  std::optional<Point> at;    // by the call's number in its group, as reports show it
  std::optional<Point> call;  // by the number of the rank's calls of that kind, in whatever group
  std::string group;          // empty: any
  std::string label;          // of the call; empty: any
  std::optional<VirtualDuration>
      after;     // from this virtual time on; a crash at that very time if nothing else is given
  double p = 1;  // drawn through the Oracle wherever the rest holds

  VirtualDuration amount{};           // pause, delay
  double factor = 1;                  // slow
  int status = 1;                     // exit
  Corruption with = Corruption::nan;  // corrupt
  Peers peers = Peers::timeout;       // crash: how the others find out
  std::uint64_t times = 1;            // at most so often on each rank
  bool optional = false;              // it need not take place

  friend bool operator==(const Fault&, const Fault&) = default;
};

// A fault that makes no sense: what() names field and value, and says what is right.
class FaultError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Throws FaultError.
Fault parse_fault(std::string_view text);
std::string to_string(const Fault& fault);

}  // namespace rehearse
