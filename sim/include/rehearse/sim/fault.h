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

// Something that goes wrong on purpose: who does what, when, and how often. A plain value. Its text is the same in
// code, on the command line and in reports: "crash rank=3 at=allreduce#12". docs/FAULTS.md explains every verb and
// field.
struct Fault {
  enum class Verb {
    crash,            // the rank stops, as if its process were killed
    exit,             // the rank calls exit(status). A crash if the rank restarts or peers=disconnect, else a failure
    hang,             // the rank never comes back from the call
    pause,            // the rank stands still for `amount` before the call
    slow,             // in the whole run, the rank's operators (ComputeModel) and transfers take `factor` times as long
    delay,            // the data of the call moves `amount` later
    skip_collective,  // the rank leaves the call out without noticing
    fail_op,          // the call throws CommError; a call of the store throws c10::DistStoreError; a write fails
    corrupt,          // the call's first output is wrong on the rank; with=stale: all its outputs
    partition,        // transfers between `ranks` and `from` do not arrive before the partition ends
    heal,             // ends all partitions
    lose_key,         // a key vanishes from the store; if `key` matches several keys, all of them
    stale_key,        // a get by the rank returns the value before the latest one
    clock_jump,       // the rank's clocks show another time
    fail_alloc,       // an allocation by the rank fails
    reorder,          // a message arrives after the rank's next one to another peer or group, or with another tag
    restart,          // the rank starts again if it has crashed or ended by then
    disk_full,        // a write to a file in the rank's scratch folder fails: no space is left
    torn_write,       // half of such a write reaches the disk, and the rank crashes
    slow_disk,        // such a write takes `amount` longer
  };
  enum class Corruption { nan, bit, stale };
  enum class Clocks { wall, all };
  enum class Peers { timeout, disconnect };
  enum class Way { both, out, in };  // for a partition: the direction that it cuts, seen from `ranks`

  // Selects a call. "allreduce#12" is the all-reduce with number 12, as `at` or `call` counts; "allreduce" is any
  // all-reduce, so the fault fires at the first one (or more of them: see `times` and `p`). "#12" is the call with
  // number 12, of any kind. "get#2" selects a call of the store, "write#3" a write to a file in the rank's scratch
  // folder.
  struct Point {
    std::string op;            // empty: any
    std::uint64_t number = 0;  // 0: any
    friend bool operator==(const Point&, const Point&) = default;
  };

  Verb verb = Verb::crash;
  std::vector<int> ranks;  // empty: all; for a partition: one side

  // When: all the given conditions must hold.
  std::optional<Point> at;    // by the call's number in its group, as reports show it; store calls, writes: as `call`
  std::optional<Point> call;  // by the number of the rank's calls of that kind, in whatever group
  std::string group;          // empty: any
  std::string label;          // the call's label; empty: any
  std::optional<VirtualDuration>
      after;  // from this virtual time on; alone, on a verb that needs no call (a crash): exactly at this time
  std::optional<std::size_t> on;  // only after fault number `on` (from 1) has fired; `after` then counts from that time
  double p = 1;                   // the probability to fire when all else holds; the Oracle draws

  VirtualDuration amount{};                // pause, delay, slow_disk, reorder (at most), partition (0: until a heal)
  double factor = 1;                       // slow
  int status = 1;                          // exit
  Corruption with = Corruption::nan;       // corrupt
  std::uint64_t element = 0;               // corrupt: index into the call's first output, in logical order
  double fraction = 0;                     // corrupt: share of elements from `element` on, evenly; 0: only `element`
  VirtualDuration by{};                    // clock_jump; may be negative
  Clocks clock = Clocks::wall;             // clock_jump
  Peers peers = Peers::timeout;            // crash, exit, torn_write: how others notice; see Verb::exit
  std::optional<VirtualDuration> restart;  // crash, exit, torn_write: the rank starts again after this time
  std::vector<int> from;                   // partition: the other side; empty: all others
  Way way = Way::both;                     // partition
  std::uint64_t bytes = 1;                 // fail_alloc: only allocations of at least this size
  std::string file;                        // disk faults: a file in the scratch folder; "*" matches anything
  std::string key;                         // a key of the store; a "*" at its end matches anything
  std::uint64_t times = 1;                 // how often at most: on each rank; for partition, heal and lose_key: in all
  bool optional = false;                   // false: a run that ends OK before the fault fires is FAULT NOT FIRED

  friend bool operator==(const Fault&, const Fault&) = default;
};

// A fault that makes no sense. what() says what is wrong. If the text of a field is not valid, what() names the field
// and the text, and says what the field takes.
class FaultError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// Throws FaultError.
Fault parse_fault(std::string_view text);
std::string to_string(const Fault& fault);

// Parses a fault that need not name ranks and a moment: "pause for=5ms". Throws FaultError.
Fault parse_fault_family(std::string_view text);

// Faults that each run draws for itself. Every draw is a choice of the Oracle. Each family takes part with a
// probability of one half, until the run has `faults_most` faults. The run draws one of the family's ranks; a partition
// keeps the ranks that it names. If a family leaves its moment open, the run draws the moment, too: a call (by its
// number on the rank or in its group), every call with some probability, or a time. For faults of store keys, the
// run draws no number of a call: it may draw the first call that fits instead.
struct SwarmOptions {
  bool on = false;
  std::vector<Fault> families = {};
  int faults_most = 2;       // in one run
  std::uint32_t calls = 20;  // drawn calls are among the first `calls`
  VirtualDuration within{};  // drawn times lie below this; 0: draw no times
};

}  // namespace rehearse
