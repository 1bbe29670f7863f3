// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "differential/program/net.h"
#include "differential/run/inputs.h"

namespace rehearse_test::differential {

// A result or effect of a call: a text, or a tensor's values.
struct Fact {
  std::string name;
  std::string text;
  at::Tensor values;  // a copy
  bool exact = true;  // false: compared with a tolerance, because gradients may add up in another order
};

struct Observed {
  // The result that the caller changes shares memory with other results or with arguments. They see a change of the
  // result itself, but no change of a copy.
  bool has_twins = false;
  std::string thrown_in;  // "forward", "backward" or nothing
  std::string error;
  double tolerance = 1e-9;  // for facts that are not exact, relative to the largest element
  std::vector<Fact> facts;
};

struct Difference {
  std::string kind;  // equal for differences of what looks like one bug
  std::string text;
  std::string fact = {};            // the name of the fact that differs; empty if something else differs
  bool zeros_or_undefined = false;  // one run has zeros, the other an undefined tensor
};

using Forward = std::function<Tensors(const Tensors& arguments, std::int64_t count, std::int64_t& steps)>;

// How the caller changes the tensor of Program::change. InPlace: the tensor itself. OfACopy: a copy, as if the backward
// had its own copies of what it needs.
enum class Changing { InPlace, OfACopy };

struct Around {
  Backward backward = Backward::AllTogether;
  Change change = Change::None;
  Changing changing = Changing::InPlace;
  const Net* net = nullptr;  // its state is a fact, too
  std::uint64_t draws = 0;   // the seed of random draws
  bool grad = true;
};

// Calls `forward`, runs the backward, and records results, gradients of leaves, arguments, the net's state, shared
// memory, and the generator's state.
Observed observe(const Inputs& inputs, const Around& around, const std::function<Tensors(const Tensors&)>& forward);

// Makes the arguments, and observes the call like the first overload. Then clears the gradients of `net`.
Observed observe(const Program& program, const CallSpec& call, Net& net, const Forward& forward,
                 Changing changing = Changing::InPlace);

// The first line of an error, without digits: equal for two errors of one kind.
std::string kind_of(const std::string& error);

// The names of the undefined gradients of parameters and leaves.
std::set<std::string> undefined_gradients(const Observed& seen);

// Returns the first difference.
std::optional<Difference> compare(const Observed& eager, const Observed& compiled);

}  // namespace rehearse_test::differential
