// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <functional>
#include <optional>
#include <stdexcept>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include <ATen/core/Tensor.h>

#include <rehearse/parallel/output_tensors.h>

namespace rehearse {

// A checkpoint cannot run its code again for the backward, or the second run differed from the first. what() gives the
// reason.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace parallel {

// The code of a checkpoint: takes the tensors of its arguments and returns the tensors of its result. `result`: points
// to a std::optional of the result's type, which receives the result without its tensors; may be null.
using CheckpointCode = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs, void* result)>;

// Returns what the code returns, with the checkpoint as the tensors' history.
std::vector<at::Tensor> run_checkpoint(CheckpointCode code, const std::vector<at::Tensor>& inputs, void* result);

}  // namespace parallel

// Activation checkpointing: runs `function(inputs...)` and keeps only the inputs for the backward. The backward runs
// the function again, and then runs backward through what the second run has recorded. This saves the memory of all
// activations inside the function, and costs one more forward of it.
//
//   at::Tensor forward(at::Tensor x) {
//     for (auto layer : layers_) {  // captured by value: the backward runs when forward() is over
//       x = rehearse::checkpoint([layer](const at::Tensor& h) mutable { return layer->forward(h); }, x);
//     }
//     return head_->forward(x);
//   }
//
// Inputs and results may hold tensors as DDP's outputs do (output_tensors.h); everything else in the inputs is copied
// for the second run. Parameters and other tensors that the function uses without getting them as inputs receive their
// gradients, too. The checkpoint keeps a copy of the function until the backward has run, so objects to which the
// function refers must live until then.
//
// Gradients equal those without the checkpoint bit for bit, with one exception: if a tensor is used inside and outside
// of the function, its gradients are added in another order. The second run begins with the grad mode, the autocast and
// the generator states that the first run began with, so dropout draws the same values. (These are the states of the
// default generators of the CPU and of the inputs' devices.) Autocast's cache of weights is off in both runs. Hooks of
// tensors and of DDP are called once for each gradient, as without a checkpoint. If grad mode is off, or if no result
// requires grad, the function runs without a checkpoint. If compile() captures the caller, the checkpoint becomes a
// node of the graph. The backward of that node also runs the function again.
//
// The function runs twice, with all of its effects: it must not change its inputs in place; a batch norm updates its
// running means twice; and every rank calls the function's collectives twice.
//
// Throws CheckpointError if the function changes an input in place, or keeps a tensor of its own that has an autograd
// history. Also throws it if the second run (in backward()) uses other tensors that require grad than the first run,
// returns another number of tensors, or differs in which results require grad. Also throws it if the backward is to be
// differentiated again (create_graph), or if an input has a tangent of forward-mode differentiation. An exception of
// the function reaches the caller of checkpoint() or of backward(). Source: torch/utils/checkpoint.py, with
// use_reentrant = false.
template <class Function, class... Inputs>
auto checkpoint(Function function, Inputs... inputs) {
  using Result = std::decay_t<std::invoke_result_t<Function&, Inputs&...>>;
  static_assert(parallel::holds_tensors<Result>(), "the function of a checkpoint must return tensors");
  std::tuple<Inputs...> arguments(std::move(inputs)...);
  std::vector<at::Tensor> tensors;
  parallel::for_each_tensor(arguments, [&](at::Tensor& tensor) { tensors.push_back(std::exchange(tensor, {})); });
  auto code = [function = std::move(function), arguments = std::move(arguments)](const std::vector<at::Tensor>& given,
                                                                                 void* result) mutable {
    std::tuple<Inputs...> filled = arguments;
    auto next = given.begin();
    parallel::for_each_tensor(filled, [&](at::Tensor& tensor) { tensor = *next++; });
    Result value = std::apply(function, filled);
    std::vector<at::Tensor> tensors_of_value;
    parallel::for_each_tensor(value,
                              [&](at::Tensor& tensor) { tensors_of_value.push_back(std::exchange(tensor, {})); });
    if (result != nullptr) static_cast<std::optional<Result>*>(result)->emplace(std::move(value));
    return tensors_of_value;
  };
  std::optional<Result> result;
  std::vector<at::Tensor> results = parallel::run_checkpoint(std::move(code), tensors, &result);
  auto next = results.begin();
  parallel::for_each_tensor(*result, [&](at::Tensor& tensor) { tensor = std::move(*next++); });
  return std::move(*result);
}

}  // namespace rehearse
