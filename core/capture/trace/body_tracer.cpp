// SPDX-License-Identifier: BSD-3-Clause
#include "capture/trace/body_tracer.h"

#include <utility>

#include <ATen/core/grad_mode.h>

#include <rehearse_internal/capture/fake_errors.h>

#include "capture/trace/caller/call_stack.h"
#include "capture/trace/recording/body_marks.h"
#include "capture/trace/recording/outline_bodies.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {
namespace {

// Returns nothing if a tensor has no node. The code gets the refusal later, when it uses that tensor.
std::optional<graph::List> nodes_of(Recording& recording, const std::vector<at::Tensor>& tensors) {
  graph::List nodes;
  try {
    for (const at::Tensor& tensor : tensors) {
      if (tensor.defined()) nodes.emplace_back(recording.node_of(tensor));
    }
  } catch (const FakeError&) {
    return std::nullopt;
  }
  return nodes;
}

}  // namespace

std::vector<at::Tensor> BodyTracer::record(const std::string& operation, const std::vector<at::Tensor>& inputs,
                                           const Code& code) {
  if (!tracer_.is_in_user_code()) return code(inputs);
  const std::size_t segment = tracer_.recording().segments.begun();
  const auto number = begin(operation, inputs);
  std::vector<at::Tensor> results = code(inputs);
  if (number && tracer_.is_in_user_code()) end(operation, *number, segment, results);
  return results;
}

std::optional<std::int64_t> BodyTracer::begin(const std::string& operation, const std::vector<at::Tensor>& inputs) {
  Recording& recording = tracer_.recording();
  const InOperator inside(recording.mode);
  recording.add_asserts();
  recording.graph.set_origin(call_stack());
  recording.modes.sync();
  auto nodes = nodes_of(recording, inputs);
  if (!nodes) return std::nullopt;
  recording.graph.call(std::string(kBodyBegin), {begun_, operation, std::move(*nodes)});
  return begun_++;
}

// If the code cannot be a body, writes no end mark: outline_bodies() then leaves the nodes in the graph.
void BodyTracer::end(const std::string& operation, std::int64_t number, std::size_t segment,
                     const std::vector<at::Tensor>& results) {
  Recording& recording = tracer_.recording();
  const InOperator inside(recording.mode);
  recording.graph.set_origin(call_stack());
  if (recording.segments.begun() != segment) {
    recording.remarks.push_back(
        not_outlined(operation, "it reads data or has an eager region", recording.graph.site()));
    return;
  }
  if (!at::GradMode::is_enabled()) {
    recording.remarks.push_back(
        not_outlined(operation, "it switches grad mode and leaves it so", recording.graph.site()));
    return;
  }
  recording.modes.sync();
  auto nodes = nodes_of(recording, results);
  if (nodes) recording.graph.call(std::string(kBodyEnd), {number, std::move(*nodes)});
}

}  // namespace rehearse::capture
