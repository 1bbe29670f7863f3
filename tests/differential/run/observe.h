// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "differential/program/net.h"
#include "differential/run/inputs.h"

namespace rehearse_test::differential {

// Something that a call left behind: a text, or a tensor's values.
struct Fact {
  std::string name;
  std::string text;
  at::Tensor values;  // a copy
  bool exact = true;  // else compared with a tolerance: gradients may be added in another order
};

struct Observed {
  bool has_twins = false;  // what was changed of a copy has others in its memory, which saw nothing of it
  std::string thrown_in;   // "forward", "backward" or nothing
  std::string error;
  std::vector<Fact> facts;
};

struct Difference {
  std::string kind;  // equal for differences that look like one bug
  std::string text;
};

using Forward = std::function<Tensors(const Tensors& arguments, std::int64_t count, std::int64_t& steps)>;

// How the caller changes what Program::change names: in place; or so as if the backward had copies of its own.
enum class Changing { InPlace, OfACopy };

// What happens around a call.
struct Around {
  Backward backward = Backward::AllTogether;
  Change change = Change::None;
  Changing changing = Changing::InPlace;
  const Net* net = nullptr;  // whose state is a fact, too
  std::uint64_t draws = 0;   // the seed of random draws
  bool grad = true;
};

// Calls `forward`, goes backward, and notes results, gradients of leaves, arguments, the net's state, what shares
// memory with what, and the generator's state.
Observed observe(const Inputs& inputs, const Around& around, const std::function<Tensors(const Tensors&)>& forward);

// Makes the arguments, calls `forward`, goes backward, and takes the gradients away again. Results, gradients,
// arguments, buffers, what shares memory with what, and the generator's state are facts.
Observed observe(const Program& program, const CallSpec& call, Net& net, const Forward& forward,
                 Changing changing = Changing::InPlace);

// The first fact that differs.
std::optional<Difference> compare(const Observed& eager, const Observed& compiled);

}  // namespace rehearse_test::differential
