// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <rehearse/exec/call_site.h>
#include <rehearse/exec/time.h>

namespace rehearse::compiler {

// A graph as far as ranks compare it.
struct GraphOutline {
  struct Node {
    std::string target;
    std::string arguments = {};  // "(%0, argument 1)"; %0 is the first node
    exec::CallSite where = {};
    std::string place = {};  // the text of `where`, if another process has sent the node
  };
  std::uint64_t hash = 0;  // of the targets and arguments
  bool has_root = false;   // one rank of a collective does another thing than the others, so its code may differ
  std::vector<Node> nodes;
};

// A record of what one rank did with one compiled function, for reports. That rank's fibers write it; it may be read
// after the world has ended.
class FunctionRecord {
 public:
  enum class Doing : std::uint8_t { Nothing, Agreeing, Compiling };

  // A compilation by a call: because it missed the cache, because other ranks compiled, because the code behind a read
  // or an eager region had no compiled segment yet, or because the code gave another graph than before.
  struct Compile {
    std::uint64_t call = 0;      // from 1
    std::string why;             // "y is 4, guard y == 3 of entry 0"; empty: the cache had no entry yet
    exec::CallSite where;        // of the call; for a segment, of the data read or eager region next to the segment
    bool communicates = false;   // its graph has collectives, or ends with code that may have some
    VirtualTime at = kNotKnown;  // when it began; kNotKnown: outside of a world
    static constexpr VirtualTime kNotKnown = VirtualTime::min();
    std::shared_ptr<const GraphOutline> graph = {};  // null: it gave none
    std::uint64_t guards = 0;                        // see compare_under(); 0: its graph is not compared
    std::vector<std::string> misses = {};            // like `why`, for each entry of the cache
  };

  FunctionRecord(std::string name, int rank, bool uses_collectives)
      : name_(std::move(name)), rank_(rank), uses_collectives_(uses_collectives) {}

  // The order for each call of the compiled function: called(); agrees() if ranks compare their guards; then hit() if
  // an entry serves the call, compiles() and done() if the call compiles, eager() if the code runs eagerly, or
  // compiles(), done() and eager() if a compilation is refused. A call that runs in segments may repeat agrees(),
  // compiles() and done().
  void called() noexcept {
    ++calls_;
    runs_eagerly_ = false;
  }
  void agrees() noexcept { doing_ = Doing::Agreeing; }
  void hit(std::size_t entry) {
    doing_ = Doing::Nothing;
    last_hit_ = static_cast<std::int64_t>(entry);
    if (hits_.empty() || hits_.back().second != entry) hits_.emplace_back(calls_, entry);
  }
  void eager() noexcept {
    doing_ = Doing::Nothing;
    runs_eagerly_ = true;
  }
  void compiles(std::string why, exec::CallSite where, std::vector<std::string> misses = {});
  void communicates() noexcept { compiles_.back().communicates = true; }
  void done() noexcept { doing_ = Doing::Nothing; }
  // The graph of the open compilation. Ranks of a world share equal ones.
  void gives(GraphOutline graph);
  // The rank keeps its graphs since the compilation number `first`. `guards`: a hash of the guards that all of them
  // share, as far as it means the same on all ranks.
  void compare_under(std::uint64_t guards, std::size_t first);

  const std::string& name() const noexcept { return name_; }
  int rank() const noexcept { return rank_; }
  bool uses_collectives() const noexcept { return uses_collectives_; }
  std::uint64_t calls() const noexcept { return calls_; }
  Doing doing() const noexcept { return doing_; }
  // The entry that served the last hit; -1: there was no hit yet, or none since the last compilation.
  std::int64_t last_hit() const noexcept { return last_hit_; }
  // The first call of each row of hits by one entry, with the entry.
  const std::vector<std::pair<std::uint64_t, std::size_t>>& hits() const noexcept { return hits_; }
  const std::vector<Compile>& compiles() const noexcept { return compiles_; }

  // "compiles f (call 2: y is 4, guard y == 3 of entry 0)", "is agreeing with the other ranks in call 3 of f", "used
  // compiled entry 0 in call 2", "compiled f in call 1", "ran f uncompiled in call 3", "never called f". `several`: the
  // subject of the text is plural.
  std::string text(bool several = false) const;

 private:
  const std::string name_;
  const int rank_;
  const bool uses_collectives_;
  std::uint64_t calls_ = 0;
  Doing doing_ = Doing::Nothing;
  std::int64_t last_hit_ = -1;
  std::vector<std::pair<std::uint64_t, std::size_t>> hits_;
  bool runs_eagerly_ = false;  // the last call
  std::vector<Compile> compiles_;
};

// The compiled functions of all ranks of a world. The code that runs the world lends the journal to it
// (exec::WorldLocal).
class Journal {
 public:
  std::shared_ptr<FunctionRecord> add(std::string name, int rank, bool uses_collectives);

  // In the order of their creation.
  const std::vector<std::shared_ptr<FunctionRecord>>& functions() const noexcept { return functions_; }

 private:
  friend class FunctionRecord;
  std::vector<std::shared_ptr<FunctionRecord>> functions_;
  std::map<std::uint64_t, std::shared_ptr<const GraphOutline>> outlines_;  // by hash
};

// Makes a record for the calling rank, in the journal of its world if there is one. `uses_collectives`: compilations of
// the function are matched with those of other ranks (compiler or guard collectives).
std::shared_ptr<FunctionRecord> record_function(std::string name, bool uses_collectives);

// A call of a function that uses neither compiler nor guard collectives. Some ranks compiled in this call, other ranks
// did not.
struct Divergence {
  std::string function;
  std::uint64_t call = 0;
  std::vector<int> compiled, others;  // ranks
  // Why the rank of `compiled` that made its record first did not use the entry that the first of `others` used; its
  // Compile::why if `others` used none.
  std::string why;
  exec::CallSite where;       // Compile::where of this rank
  std::vector<int> latest;    // ranks of `compiled` that have not called the function since
  bool communicates = false;  // Compile::communicates of any rank of `compiled`
};

// Ordered by function, then by call. Functions of the same name are matched by their order on each rank.
std::vector<Divergence> divergences(const Journal& journal);

// "rank 1 alone recompiled f in call 3: y is 4, guard y == 3 of entry 0", without the place.
std::string to_string(const Divergence& divergence);

// Ranks that compiled different graphs of a function, with the first nodes that differ. The nodes have no arguments if
// their targets differ.
struct GraphDifference {
  std::string function;
  std::vector<int> ranks, others;
  GraphOutline::Node node, other_node;
};

GraphDifference difference_of(const std::string& function, std::vector<int> ranks, const GraphOutline& graph,
                              std::vector<int> others, const GraphOutline& other);

// Graphs that ranks compiled under equal guards, so that the code depends on something that no guard sees, such as the
// rank. Each of two ranks that differ has a graph that the other one never compiled. Ordered by function; two graphs of
// a function once. `is_left_out`: a rank may compile other graphs on purpose; it is compared only in functions that use
// collectives.
std::vector<GraphDifference> graph_differences(const Journal& journal, const std::function<bool(int)>& is_left_out);

// "rank 0 and rank 1 compiled different graphs of f: torch.ops.aten.mul.Tensor at f.cpp:3 on rank 0, ... on rank 1".
// `place`: returns the text of a node's place, or nothing.
std::string to_string(const GraphDifference& difference,
                      const std::function<std::string(const GraphOutline::Node&)>& place);

}  // namespace rehearse::compiler
