// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <memory>

#include "graph/run/step.h"

namespace rehearse::graph {

// The parts of make_step(). Each returns null if it does not handle the node.
std::unique_ptr<Step> make_operator_step(const Node& node);
std::unique_ptr<Step> make_python_step(const Node& node);
std::unique_ptr<Step> make_higher_order_step(const Node& node, const GraphModule& module, Bodies& bodies);
std::unique_ptr<Step> make_mode_step(const Node& node);
// wait(work, milliseconds = 0) and synchronize(work), methods of c10d::Work.
std::unique_ptr<Step> make_work_step(const Node& node);

// Returns a step that runs `step` on behalf of the code from which the node comes: reports show that code's line, and
// the call has the label that was set there.
std::unique_ptr<Step> in_the_name_of(const Node& node, std::unique_ptr<Step> step);

}  // namespace rehearse::graph
