// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/exec/call_site.h>
#include <rehearse/graph/graph_module.h>

namespace rehearse::shapes {
class ShapeEnv;
}

namespace rehearse::capture {

struct Segment;

// Where the value of one placeholder comes from when the graph is called.
struct GraphInput {
  enum class Kind {
    Tensor,    // the user's tensor #index, as add_tensor() counted them
    Int,       // the user's integer #index, as add_int() counted them
    Size,      // size `dim` of the user's tensor #index
    Captured,  // `tensor`: a parameter, a buffer, or a tensor that the code found elsewhere
  };
  enum class Role { Input, Parameter, Buffer, Constant };

  Kind kind = Kind::Tensor;
  std::size_t index = 0;
  std::int64_t dim = 0;
  at::Tensor tensor = {};  // shared with the program
  std::string name;        // "x", "x.size(0)", "net.0.weight"
  Role role = Role::Input;
  bool is_made_inside = false;  // Captured: the code made it of plain numbers, and the graph gives each call a copy
};

// Something a user should know about a capture: a size that became a number, an answer that was assumed.
struct Remark {
  std::string message;
  exec::CallSite where;  // resolved when asked for; may be empty
};

// What the code has asked of the storage of a tensor that exists before the graph.
struct StorageFact {
  at::Tensor tensor;
  std::optional<std::int64_t> bytes = {};  // nothing: as many as its elements take
};

// What a capture gives.
struct CapturedGraph {
  // The forward graph: a placeholder for each of `inputs`, in order; its output is a list.
  std::shared_ptr<graph::GraphModule> module;
  std::vector<GraphInput> inputs;
  std::shared_ptr<shapes::ShapeEnv> shapes;
  std::vector<Remark> remarks;
  std::vector<StorageFact> storages;
  // Of a capture that was cut into segments (segments.h) the last one, whose results are those of the whole.
  std::shared_ptr<Segment> last_segment = {};
};

}  // namespace rehearse::capture
