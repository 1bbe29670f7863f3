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

// A checkpoint's code cannot be run again for its backward, or did something else than in the forward. what() says
// what.
class CheckpointError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace parallel {

// The code of a checkpoint: gives the tensors of its result for those of its arguments. `result`: where to leave all
// else of the result, an optional of its type; or null.
using CheckpointCode = std::function<std::vector<at::Tensor>(const std::vector<at::Tensor>& inputs, void* result)>;

// Gives what the code gives, with the checkpoint as their history.
std::vector<at::Tensor> run_checkpoint(CheckpointCode code, std::vector<at::Tensor> inputs, void* result);

}  // namespace parallel

// Activation checkpointing: runs `function(inputs...)`, and keeps nothing of it for the backward but the inputs. The
// backward runs the function again, and then through what that has recorded. This saves the memory of all activations
// inside the function, and costs one more forward of it.
//
//   at::Tensor forward(at::Tensor x) {
//     for (auto layer : layers_) {  // captured by value: the backward runs when forward() is over
//       x = rehearse::checkpoint([layer](const at::Tensor& h) mutable { return layer->forward(h); }, x);
//     }
//     return head_->forward(x);
//   }
//
// Inputs and results may hold tensors as DDP's outputs do (output_tensors.h); all else is copied, and handed over
// again. Parameters, and other tensors that the function uses and that are no inputs, get their gradients too. The
// function is kept, by value, until the backward has run: what it refers to must live as long.
//
// Gradients are those without the checkpoint, bit for bit; only where a tensor has several uses, some of them outside,
// is their sum made in another order. The second run finds the states of the default generators, grad mode and autocast
// of the first: dropout draws the same values. Autocast's cache of weights is off in both. Hooks of tensors and of DDP
// are called as without it, once for each gradient. Where grad mode is off, or no result requires grad, the function
// just runs. In a function that compile() captures it becomes a node of the graph, whose backward does the same.
//
// The function runs twice, and so does all else that it does: it must not change its inputs in place; running means of
// a batch norm are updated twice, and collectives are called twice, by every rank.
//
// Throws CheckpointError: the function changes an input in place, or keeps a tensor that it has made, with its history;
// its second run (in backward()) used other tensors that require grad than the first, or gave results of other forms;
// the backward is to be differentiated again (create_graph); an input has a tangent of forward mode. What the function
// throws comes to the caller of checkpoint(), or of backward(). Source: torch/utils/checkpoint.py, with use_reentrant =
// false.
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
  std::vector<at::Tensor> results = parallel::run_checkpoint(std::move(code), std::move(tensors), &result);
  auto next = results.begin();
  parallel::for_each_tensor(*result, [&](at::Tensor& tensor) { tensor = std::move(*next++); });
  return std::move(*result);
}

}  // namespace rehearse
