// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include "input_facts.h"
#include "store_gather.h"

namespace rehearse::compiler {

// What ranks meet for: the function that they call, and the caller's line (empty: unknown), for errors to name.
struct CollectiveLabel {
  std::string function;
  std::string line;
};

// How a compilation went on one rank.
struct GraphHash {
  std::uint64_t value = 0;
  bool operator==(const GraphHash&) const = default;
};
struct ErrorText {
  std::string text;
};
using CompileOutcome = std::variant<GraphHash, ErrorText>;

// Where the ranks of a group meet when they compile the same function, as Dynamo's compiler collectives and guard
// collectives do. The calls go through a communicator of their own, "compile of <group>", made once for each group and
// first used when it is needed: they never mix with the user's calls on the group. A group without a back end for
// tensors of the CPU that makes groups of groups meets in its store. A rank that does not come (its cache
// served the call, or it has ended) is waited for as in any collective, and told of as such: see Journal.
//
// What is sent is named by function and step: ranks that meet for different ones are a mismatch. A group of one rank
// does not communicate. Blocking: all calls. Fibers: use it in the rank whose group it is. Errors: MismatchError, and
// what collectives throw; CompileError as said below, for groups that have neither such a back end nor a store, and
// with the rank for bytes that no rank can have meant: then nothing of them is used.
class CompilerCollectives {
 public:
  static constexpr std::string_view kPrefix = "compile of ";

  explicit CompilerCollectives(c10::intrusive_ptr<c10d::ProcessGroup> group);

  // Compiler collectives, before the user's code runs: what all ranks see in their arguments, by rank of the group. The
  // k-th compilation of one rank meets the k-th of the others, in whatever call that is. Two all-gathers.
  std::vector<InputFacts> exchange(const InputFacts& mine, const CollectiveLabel& label);

  // Guard collectives, in each call: does every rank's cache serve it? An all-reduce.
  bool all_hit(bool mine, const CollectiveLabel& label);

  // After the compilation: the hashes of all ranks' graphs, by rank of the group, which may differ. Where some
  // ranks could not compile, throws CompileError on all, with the lowest such rank and its error; where none could,
  // returns nothing: each has an error of its own. Two all-gathers.
  std::vector<GraphHash> commit(const CompileOutcome& mine, const CollectiveLabel& label);

 private:
  std::vector<std::string> gather(std::string payload, const CollectiveLabel& label, const char* step);
  // For errors: who sent what could not be read. `rank`: of the group.
  std::string sender(std::size_t rank, const CollectiveLabel& label, const char* step) const;
  void connect();

  c10::intrusive_ptr<c10d::ProcessGroup> group_;
  // One of them, once it has been used.
  c10::intrusive_ptr<c10d::Backend> communicator_;
  std::optional<StoreGather> store_;
};

// What commit() makes of all ranks' outcomes; `ranks`: of the world, as errors name them.
std::vector<GraphHash> agree(const std::vector<CompileOutcome>& outcomes, const std::vector<int>& ranks,
                             const CollectiveLabel& label);

std::string encode(const CompileOutcome& outcome);
// Throws CompileError for what encode() did not make, with the sender.
CompileOutcome decode_outcome(std::string_view bytes, const std::string& sender = "another rank");

}  // namespace rehearse::compiler
