// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>
#include <ATen/core/ivalue.h>

#include <rehearse/graph/interpreter.h>
#include <rehearse_internal/capture/joint_graph.h>
#include <rehearse_internal/capture/joint_partition.h>

namespace rehearse::compiler {

// A backward recorded for tangents of certain forms.
struct AotBackward {
  graph::Interpreter graph;
  // Its inputs: of what the forward saves (tensors, then numbers) these, then a tangent for each of `tangents`.
  std::vector<std::size_t> saved;
  std::vector<capture::Tangent> tangents;
  std::vector<std::vector<std::size_t>> gradient_tangents;  // see JointPartition
};

// The part as it was captured, so that it can be captured again.
struct CapturedPart {
  std::shared_ptr<graph::GraphModule> module;
  std::vector<c10::IValue> example_inputs;  // fakes of its own
  std::shared_ptr<shapes::ShapeEnv> shapes;
};

// The backwards of one part. Eager autograd chooses operators by how a gradient lies in memory, and leaves out what
// depends on undefined ones; a recorded backward has made these choices. So the first one, recorded with the forward,
// is for tangents that lie as the results do; another is recorded when tangents of other forms come.
class AotBackwards {
 public:
  // `part`: none where only the first one is known.
  AotBackwards(const capture::JointGraph& joint, const capture::JointPartition& partition,
               std::optional<CapturedPart> part);

  // For these tangents, by position among the first one's; undefined where there is none. Records a backward where
  // needed, inside of a backward of autograd too. The first one where that is impossible: what it needs was not saved,
  // or the part is not captured again as it was. Then tangents must be brought into its form.
  const AotBackward& for_tangents(const std::vector<at::Tensor>& tangents);
  const AotBackward& first() const noexcept { return *first_; }

  // Whether autograd comes from a result to this input at all.
  bool has_path_to(std::size_t input) const;

  std::size_t recorded() const noexcept;  // the first one included

 private:
  std::unique_ptr<AotBackward> record(const std::vector<capture::Tangent>& tangents) const;
  bool has_same_forward(const capture::JointGraph& again) const;

  capture::JointGraph joint_;
  std::optional<CapturedPart> part_;
  std::vector<std::string> saved_names_;
  std::unique_ptr<AotBackward> first_;
  std::map<std::vector<capture::Tangent>, std::unique_ptr<AotBackward>> others_;  // null: impossible
};

}  // namespace rehearse::compiler
