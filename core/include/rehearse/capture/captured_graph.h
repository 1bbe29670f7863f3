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

// The source of one placeholder's value when the graph is called.
struct GraphInput {
  enum class Kind {
    Tensor,    // the user's tensor #index, as add_tensor() counted them
    Int,       // the user's integer #index, as add_int() counted them
    Size,      // size `dim` of the user's tensor #index
    Captured,  // `tensor`: parameter or buffer #(index - 1) of the module, or a tensor found elsewhere (index is 0)
  };
  enum class Role { Input, Parameter, Buffer, Constant };

  Kind kind = Kind::Tensor;
  std::size_t index = 0;
  std::int64_t dim = 0;
  at::Tensor tensor = {};  // shared with the program
  std::string name;        // "x", "x.size(0)", "net.0.weight"
  Role role = Role::Input;
  // Captured only: the code made the tensor from plain numbers, so each call of the graph gets its own copy.
  bool is_made_inside = false;
};

// A fact about a capture that a user should know: a size that became a constant, an answer that was assumed.
struct Remark {
  std::string message;
  exec::CallSite where;  // may be empty
};

// The captured code asked for the storage size of a tensor that the graph does not compute (an argument, a parameter, a
// buffer), and got this answer.
struct StorageFact {
  at::Tensor tensor;
  std::optional<std::int64_t> bytes = {};  // nullopt: the storage ends with the tensor's last element
};

// The result of a capture.
struct CapturedGraph {
  // The forward graph: one placeholder for each of `inputs`, in order. Its output is a list.
  std::shared_ptr<graph::GraphModule> module;
  std::vector<GraphInput> inputs;
  std::shared_ptr<shapes::ShapeEnv> shapes;
  std::vector<Remark> remarks;
  std::vector<StorageFact> storages;
  // Arguments that the code also has from elsewhere (a global, a member). The graph holds only if the argument is that
  // very tensor.
  std::vector<at::Tensor> found_arguments;
  // The last segment, if the capture was cut into segments (segments.h); else null. Its module returns the results of
  // the whole capture.
  std::shared_ptr<Segment> last_segment = {};
};

}  // namespace rehearse::capture
