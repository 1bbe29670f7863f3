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

// Captures hooks that code registers on tensors that it has computed. A hook's code runs once, when it is registered,
// on a fake gradient; what it does is recorded between two marks (body_marks.h), as it will be done in a backward:
// without grad mode, and without an effect on what the function does after the registration.
class HookTracer final : public operators::HookRecorder {
 public:
  using Hook = std::function<at::TensorBase(const at::TensorBase&)>;

  explicit HookTracer(Tracer& tracer) : tracer_(tracer) {}

  // The position of the hook among those of the tensor, as LibTorch counts them; or why no graph can hold it. Then
  // nothing of it is recorded.
  std::variant<unsigned, NotCapturable> add(const at::Tensor& tensor, const Hook& hook);

  // Whether something recorded uses the tensor: a hook that is not part of that graph would not see its gradients.
  bool is_used(const at::Tensor& tensor) const;

  void add(const at::Tensor& output, const OfOutput& of_output, const at::Tensor& input,
           const OfInput& of_input) override;

  // Takes a hook back that add() has recorded. None: it is done.
  std::optional<NotCapturable> remove(const at::Tensor& tensor, unsigned position);

 private:
  // Hooks follow the value of a tensor, not the object: a change in place begins a new list.
  using Of = std::pair<std::uint64_t, const graph::Node*>;
  struct Marks {
    graph::Node* begin;
    graph::Node* end;  // both null once it is removed
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
