// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <c10/core/ScalarType.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#include <torch/csrc/distributed/c10d/Store.hpp>

namespace rehearse::compiler {

// One rank's view of one position in a call's arguments.
struct InputFact {
  enum class Kind : std::uint8_t { Tensor, SymInt, Int, Float, Bool, String, None, Group, Other, Absent };

  std::string source;  // "x", "xs[1]"
  Kind kind = Kind::Absent;
  c10::ScalarType dtype = c10::ScalarType::Undefined;  // for a tensor
  std::vector<std::int64_t> sizes{};                   // for a tensor
  std::int64_t int_value = 0;                          // for a SymInt, an Int, a Bool or Other
  double float_value = 0;                              // for a Float
  // Value of a String, name of a Group, kind of Other. For a segment: why the ranks compile it.
  std::string text{};

  bool operator==(const InputFact&) const = default;
};

// The facts of one rank's call, in the order of its arguments.
using InputFacts = std::vector<InputFact>;

// Encodes facts as bytes, the same on every machine; floats keep their bits. decode_facts() throws CompileError that
// names the sender if encode() did not produce the bytes.
std::string encode(const InputFacts& facts);
InputFacts decode_facts(std::string_view bytes, const std::string& sender = "another rank");

// Gathers messages through the store, for groups whose back end for CPU tensors is missing or cannot create subgroups.
// The n-th gather() of one rank is matched with the n-th gather() of the others. The store keeps the count, so all
// objects with the same name share it.
class StoreGather {
 public:
  // `name`: prefix of all keys. Throws CompileError if the group has no store.
  StoreGather(c10::intrusive_ptr<c10d::Store> store, std::string name, int rank, int size);

  // Returns the payloads of all ranks, by rank. Blocks until all have arrived or the store's timeout ends. Throws
  // CompileError if another rank is at another step or its message is damaged, and what the store throws.
  std::vector<std::string> gather(const std::string& payload, const std::string& step);

 private:
  std::string key(int rank, std::int64_t number) const;

  const c10::intrusive_ptr<c10d::Store> store_;
  const std::string name_;
  const int rank_, size_;
};

// Names the compilation in errors: the function that ranks call, and a line of the user's code (empty if unknown). For
// a call, that is the call's own line. For a segment, it is the line of the read of data, or of the eager region, that
// stands before or after the segment.
struct CollectiveLabel {
  std::string function;
  std::string line;
};

struct GraphHash {
  std::uint64_t value = 0;
  bool operator==(const GraphHash&) const = default;
};
struct ErrorText {
  std::string text;
};
// The rank runs in this call what its code has done so far, and keeps no graph: the code has thrown, keeps a tensor, or
// cannot be captured. `refusal`: why all ranks must run the function eagerly from now on; empty if they need not.
struct RunsOnce {
  std::string refusal;
};
using CompileOutcome = std::variant<GraphHash, ErrorText, RunsOnce>;

// What a rank can do with a call, or with the rest of a call after a read or an eager region. With guard collectives,
// all ranks do the least that one of them can do.
enum class Ability : std::int8_t {
  run_eagerly = -1,  // the rank can neither serve nor compile it
  compile = 0,
  serve = 1,  // the rank has compiled it already
};

// Lets the ranks of a group communicate when they compile the same function, like Dynamo's compiler collectives and
// guard collectives. The messages use their own communicator, "compile of <group>", created at its first use, so they
// never mix with the user's calls on the group. If the group's back end is Rehearse's own, all objects of a group share
// the communicator; otherwise each object has its own. A group uses its store instead if its back end for CPU tensors
// is missing or cannot create subgroups. If a rank does not come (its cache served the call, or it has ended), the
// others wait as in any collective, and the report names the missing rank: see Journal.
//
// Messages are named by function and step; if ranks exchange messages of different names, that is a mismatch (through
// the store, a CompileError). A group of one rank does not communicate. All calls block. Each object belongs to the
// fibers of its rank.
//
// Errors: MismatchError, and what collectives throw. CompileError if the group is null, or if it needs its store and
// has none. If a message arrives damaged, CompileError that names its sender or, after an all-reduce, the calling rank.
class CompilerCollectives {
 public:
  static constexpr std::string_view kPrefix = "compile of ";

  explicit CompilerCollectives(c10::intrusive_ptr<c10d::ProcessGroup> group);

  // For compiler collectives. Call it before the compilation. Returns the facts that all ranks pass, by rank of the
  // group. The k-th compilation of one rank is matched with the k-th compilation of the others, in whatever calls they
  // are. Two all-gathers.
  std::vector<InputFacts> exchange(const InputFacts& mine, const CollectiveLabel& label);

  // For guard collectives. Returns the least ability of all ranks. One all-reduce.
  Ability least(Ability mine, const CollectiveLabel& label);

  // Call it after the compilation. Returns the hashes of all ranks' graphs, by rank of the group; they may differ. If
  // some ranks have an ErrorText, throws CompileError on all ranks with the lowest such rank and its error. If all have
  // one, returns nothing, because each rank has its own error. If a rank runs its code once, returns nothing, too: then
  // every rank must run in this call what it has recorded, because it may contain collectives, and keep no graph. Two
  // all-gathers.
  std::vector<GraphHash> commit(const CompileOutcome& mine, const CollectiveLabel& label);
  // The first refusal among the outcomes of the last commit(). Empty: none.
  const std::string& refusal() const noexcept { return refusal_; }

  const c10::intrusive_ptr<c10d::ProcessGroup>& group() const noexcept { return group_; }

 private:
  std::vector<std::string> gather(std::string payload, const CollectiveLabel& label, const char* step);
  // Names the sender of an unreadable message, for errors. `rank`: in the group.
  std::string sender(std::size_t rank, const CollectiveLabel& label, const char* step) const;
  void connect();

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  // connect() sets one of the two.
  c10::intrusive_ptr<c10d::Backend> communicator_;
  std::optional<StoreGather> store_;
  std::string refusal_;
};

// The group's members as ranks of the world; their numbers in the group if its back end does not know them.
std::vector<int> world_ranks_of(c10d::ProcessGroup& group);

// The result of commit() for all ranks' outcomes. `ranks`: their numbers in the world, for errors.
std::vector<GraphHash> agree(const std::vector<CompileOutcome>& outcomes, const std::vector<int>& ranks,
                             const CollectiveLabel& label);

// Names the lowest rank whose code cannot be captured, and the reason. Empty: none.
std::string first_refusal(const std::vector<CompileOutcome>& outcomes, const std::vector<int>& ranks);

std::string encode(const CompileOutcome& outcome);
// Throws CompileError that names the sender if encode() did not produce the bytes.
CompileOutcome decode_outcome(std::string_view bytes, const std::string& sender = "another rank");

}  // namespace rehearse::compiler
