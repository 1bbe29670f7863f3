// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <cstdint>
#include <exception>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/operators/capture_mode.h>

#include "capture/trace/recording/body_marks.h"
#include "capture/trace/recording/recording.h"

namespace rehearse::capture {

class Tracer;

// Captures hooks that code registers on tensors that it has computed. The code of a hook runs once, at the
// registration, on a fake gradient. Its operators are recorded between two marks (body_marks.h) under the conditions of
// a backward: grad mode is off, and nothing that the hook does affects the function's code after the registration.
class HookTracer final : public operators::HookRecorder {
 public:
  using Hook = std::function<at::TensorBase(const at::TensorBase&)>;

  explicit HookTracer(Tracer& tracer) : tracer_(tracer) {}

  // Returns the hook's position among the tensor's hooks, as LibTorch counts them. If no graph can hold the hook,
  // returns the reason and removes the hook's nodes.
  std::variant<unsigned, NotCapturable> add(const at::Tensor& tensor, const Hook& hook);

  // True if a recorded node uses the tensor. A hook that is registered eagerly, after the capture has ended, would not
  // see the gradients that the graph's uses of the tensor produce.
  bool is_used(const at::Tensor& tensor) const;

  void add(const at::Tensor& output, const OfOutput& of_output, const at::Tensor& input,
           const OfInput& of_input) override;

  // Removes a hook that add() recorded. Returns nothing on success.
  std::optional<NotCapturable> remove(const at::Tensor& tensor, unsigned position);

 private:
  // Key of a tensor's hooks. Hooks belong to the tensor's value, not to the object: an in-place change begins a new
  // list.
  using Of = std::pair<std::uint64_t, const graph::Node*>;
  struct Marks {
    graph::Node* begin;
    graph::Node* end;  // both are null after the hook was removed
  };

  std::variant<Marks, NotCapturable> record(const at::Tensor& tensor, const Hook& hook);
  std::optional<NotCapturable> refusal_of(const at::Tensor& tensor) const;
  graph::Node& begin(graph::Node& of, const at::Tensor& gradient);
  graph::Node& end(const graph::Node& begin, const at::TensorBase& result);
  std::optional<std::string> run(const Hook& hook, const at::Tensor& gradient, at::TensorBase& result);
  std::optional<std::string> why_no_body(const graph::Node& begin, const graph::Node& end) const;

  Tracer& tracer_;
  std::int64_t begun_ = 0;
  std::map<Of, std::vector<Marks>> hooks_;
};

}  // namespace rehearse::capture
