// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
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
    exit,             // the rank calls exit(status); where the others are to go on, they find out as from a crash
    hang,             // the rank never comes back from the call
    pause,            // the rank stands still for `amount` before the call
    slow,             // from the start: what the rank computes and communicates takes `factor` times as long
    delay,            // the data of the call moves `amount` later
    skip_collective,  // the rank leaves the call out, and does not know
    fail_op,          // the call throws CommError
    corrupt,          // the call's first output is wrong on the rank
    partition,        // what `ranks` and `from` send each other does not arrive
    heal,             // all partitions are over
    lose_key,         // a key of the store vanishes
    stale_key,        // a get of the rank brings the value before the last one
    clock_jump,       // the rank's clocks show another time
    fail_alloc,       // an allocation of the rank's fails
    reorder,          // a message arrives behind the rank's next one to another peer or with another tag
    restart,          // the rank begins again, if it has crashed or ended by then
    disk_full,        // a write to a file in the rank's scratch folder fails: no space is left
    torn_write,       // half of such a write reaches the disk, and the rank never runs again
    slow_disk,        // such a write takes `amount` longer
  };
  enum class Corruption { nan, bit, stale };
  enum class Clocks { wall, all };
  enum class Peers { timeout, disconnect };
  enum class Way { both, out, in };  // of a partition, as `ranks` see it

  // A call: "allreduce#12"; "allreduce": the first of that kind that comes; "#12": of any kind. "get#2": of the store;
  // "write#3": a write to a file in the rank's scratch folder.
  struct Point {
    std::string op;            // empty: any
    std::uint64_t number = 0;  // 0: any
    friend bool operator==(const Point&, const Point&) = default;
  };

  Verb verb = Verb::crash;
  std::vector<int> ranks;  // empty: all; of a partition one side

  // When: all that are given must hold.
  std::optional<Point> at;    // by the call's number in its group, as reports show it
  std::optional<Point> call;  // by the number of the rank's calls of that kind, in whatever group
  std::string group;          // empty: any
  std::string label;          // of the call; empty: any
  std::optional<VirtualDuration>
      after;  // from this virtual time on; what needs no call (a crash) at that very time if nothing else is given
  std::optional<std::size_t> on;  // once that fault has fired, by its place from 1; `after` then counts from there
  double p = 1;                   // drawn through the Oracle wherever the rest holds

  VirtualDuration amount{};                // pause, delay, slow_disk; reorder: at most; of a partition: 0: until a heal
  double factor = 1;                       // slow
  int status = 1;                          // exit
  Corruption with = Corruption::nan;       // corrupt
  std::uint64_t element = 0;               // corrupt: of the call's first output, by its logical order
  double fraction = 0;                     // corrupt: so many of the elements from there on, evenly; 0: that one alone
  VirtualDuration by{};                    // clock_jump; may be negative
  Clocks clock = Clocks::wall;             // clock_jump
  Peers peers = Peers::timeout;            // crash; exit (disconnect: the run goes on): how the others find out
  std::optional<VirtualDuration> restart;  // crash, exit: the rank begins again so much later
  std::vector<int> from;                   // partition: the other side; empty: all others
  Way way = Way::both;                     // partition
  std::uint64_t bytes = 1;                 // fail_alloc: of an allocation, at least
  std::string file;                        // disk faults: which, in the scratch folder; "*" stands for anything
  std::string key;                         // of the store; a "*" at its end stands for anything
  std::uint64_t times = 1;                 // at most so often on each rank; what is of no rank (a partition): at all
  bool optional = false;                   // it need not take place

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

// A fault of which who and when may be open: "pause for=5ms".
Fault parse_fault_family(std::string_view text);

// Faults that each run draws for itself, every draw a choice of the Oracle: which of the families take part (each with
// a probability of one half), and where the family does not say, on which rank, and when: at a call by the rank's count
// or by its group's, at each call with a probability, or at a time.
struct SwarmOptions {
  bool on = false;
  std::vector<Fault> families = {};
  int faults_most = 2;       // of one run
  std::uint32_t calls = 20;  // a call is one of the first so many
  VirtualDuration within{};  // a time lies below it; 0: no times are drawn
};

}  // namespace rehearse
