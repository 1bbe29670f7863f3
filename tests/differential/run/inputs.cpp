// SPDX-License-Identifier: BSD-3-Clause
#include "differential/run/inputs.h"

#include <limits>

#include <ATen/CPUGeneratorImpl.h>

namespace rehearse_test::differential {
namespace {

std::vector<std::int64_t> sizes_of(const Argument& argument, const CallSpec& call) {
  std::vector<std::int64_t> sizes;
  for (const Size& size : argument.sizes) {
    sizes.push_back(size.varies == Size::kFixed ? size.fixed : call.sizes.at(static_cast<std::size_t>(size.varies)));
  }
  return sizes;
}

at::Tensor values(std::vector<std::int64_t> sizes, const Argument& argument, at::Generator& generator) {
  const at::Tensor drawn = at::rand(sizes, generator, at::kDouble);
  if (argument.dtype == at::kBool) return drawn > 0.4;
  if (argument.dtype == at::kLong) return (drawn * 2).to(at::kLong);
  at::Tensor numbers = drawn * 2 - 1;
  if (argument.odd) {
    constexpr double kInfinity = std::numeric_limits<double>::infinity();
    numbers.masked_fill_(drawn < 0.2, kInfinity).masked_fill_(drawn < 0.14, -kInfinity);
    numbers.masked_fill_(drawn < 0.07, std::numeric_limits<double>::quiet_NaN());
  }
  return numbers.to(argument.dtype);
}

// Another form of a tensor with the same sizes. It requires a gradient if `form` does.
Form other(Form form) {
  switch (form) {
    case Form::Plain:
      return Form::Sliced;
    case Form::Leaf:
      return Form::Computed;
    case Form::Computed:
      return Form::View;
    case Form::View:
      return Form::Computed;
    case Form::Transposed:
    case Form::Sliced:
      return Form::Plain;
    case Form::SameAsBefore:
    case Form::Overlapping:
      return form;
  }
  return form;
}

class Maker {
 public:
  Maker(const Program& program, const CallSpec& call)
      : program_(program), call_(call), generator_(at::detail::createCPUGenerator(call.data)) {}

  Inputs make() {
    for (const Argument& argument : program_.arguments) made_.arguments.push_back(one(argument));
    return std::move(made_);
  }

 private:
  at::Tensor leaf(const std::vector<std::int64_t>& sizes, const Argument& argument) {
    made_.leaves.push_back(values(sizes, argument, generator_).requires_grad_());
    return made_.leaves.back();
  }

  at::Tensor one(const Argument& argument) {
    const std::vector<std::int64_t> sizes = sizes_of(argument, call_);
    switch (form_of(argument)) {
      case Form::Plain:
        break;
      case Form::Leaf:
        return leaf(sizes, argument);
      case Form::Computed:
        return leaf(sizes, argument) * 1.5;
      case Form::View:
        return (leaf(sizes, argument) * 1.5).unsqueeze(0)[0];
      case Form::Transposed:
        return transposed(sizes, argument);
      case Form::Sliced:
        return sliced(sizes, argument);
      case Form::SameAsBefore:
        return made_.arguments.back();
      case Form::Overlapping:
        return overlapping(sizes, argument);
    }
    return values(sizes, argument, generator_);
  }

  Form form_of(const Argument& argument) const {
    return call_.other_forms && argument.is_floating() ? other(argument.form) : argument.form;
  }

  at::Tensor transposed(std::vector<std::int64_t> sizes, const Argument& argument) {
    if (sizes.size() < 2) return values(sizes, argument, generator_);
    std::swap(sizes.front(), sizes.back());
    return values(sizes, argument, generator_).transpose(0, -1);
  }

  at::Tensor sliced(std::vector<std::int64_t> sizes, const Argument& argument) {
    if (sizes.empty()) return values(sizes, argument, generator_);
    sizes[0] *= 2;
    return values(sizes, argument, generator_).slice(0, 1, sizes[0], 2);
  }

  // Returns an argument that shares memory with the previous argument. Replaces the previous argument for this.
  at::Tensor overlapping(std::vector<std::int64_t> sizes, const Argument& argument) {
    ++sizes[0];
    const at::Tensor base = values(sizes, argument, generator_);
    made_.arguments.back() = base.narrow(0, 1, sizes[0] - 1);
    return base.narrow(0, 0, sizes[0] - 1);
  }

  const Program& program_;
  const CallSpec& call_;
  at::Generator generator_;
  Inputs made_;
};

}  // namespace

std::vector<CallSpec> all_calls(std::uint64_t seed) {
  const std::uint64_t data = seed * 16;
  return {
      {.sizes = {3, 5}, .count = 2, .data = data},
      {.sizes = {3, 5}, .count = 2, .data = data + 1},
      {.sizes = {6, 5}, .count = 2, .data = data + 2},
      {.sizes = {5, 7}, .count = 3, .data = data + 3},
      {.sizes = {3, 5}, .count = 2, .grad = false, .data = data + 4},
      {.sizes = {3, 5}, .count = 2, .training = false, .data = data + 5},
      {.sizes = {8, 6}, .count = 3, .data = data + 6},
      {.sizes = {1, 1}, .count = 2, .data = data + 7},
      {.sizes = {3, 5}, .count = 2, .other_forms = true, .data = data + 8},
  };
}

Inputs make_inputs(const Program& program, const CallSpec& call) { return Maker(program, call).make(); }

}  // namespace rehearse_test::differential
