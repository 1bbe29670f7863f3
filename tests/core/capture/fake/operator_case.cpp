// SPDX-License-Identifier: BSD-3-Clause
#include "operator_case.h"

#include <map>
#include <sstream>
#include <stdexcept>

#include <ATen/ATen.h>
#include <torch/csrc/autograd/autograd.h>

namespace rehearse::capture::test {
namespace {

struct InputText {
  c10::ScalarType dtype;
  bool wants_gradient = false;
  std::vector<std::string> sizes;
  std::string layout;
};

InputText parse(const std::string& text) {
  static const std::map<char, c10::ScalarType> dtypes = {
      {'f', at::kFloat}, {'d', at::kDouble}, {'h', at::kHalf}, {'b', at::kBFloat16},     {'l', at::kLong},
      {'i', at::kInt},   {'u', at::kByte},   {'B', at::kBool}, {'c', at::kComplexFloat},
  };
  std::istringstream words(text);
  std::string word;
  words >> word;
  InputText parsed{dtypes.at(word.front()), word.size() > 1, {}, {}};
  while (words >> word) {
    if (std::isupper(static_cast<unsigned char>(word.front()))) {
      parsed.layout = word;
    } else {
      parsed.sizes.push_back(word);
    }
  }
  return parsed;
}

using SizeOf = std::function<c10::SymInt(const std::string&)>;
using Make = std::function<at::Tensor(const std::vector<c10::SymInt>& sizes, c10::ScalarType dtype)>;

at::Tensor build(const std::string& text, const SizeOf& size_of, const Make& make) {
  const InputText input = parse(text);
  std::vector<c10::SymInt> sizes;
  for (const std::string& size : input.sizes) sizes.push_back(size_of(size));
  if (input.layout == "T") std::swap(sizes.at(0), sizes.at(1));
  const c10::SymInt last = sizes.empty() ? c10::SymInt(0) : sizes.back();
  if (input.layout == "S") sizes.back() = last + 3;
  const c10::SymInt first = sizes.empty() ? c10::SymInt(0) : sizes.front();
  if (input.layout == "E") sizes.front() = 1;
  at::Tensor made = make(sizes, input.dtype);
  if (input.layout == "T") made = made.transpose(0, 1);
  if (input.layout == "S") made = made.narrow_symint(-1, 1, last);
  if (input.layout == "CL") made = made.contiguous(at::MemoryFormat::ChannelsLast);
  if (input.layout == "E") {
    sizes.front() = first;
    made = made.expand_symint(sizes);
  }
  return input.wants_gradient ? made.detach().requires_grad_() : made;
}

at::Tensor random(const std::vector<c10::SymInt>& sizes, c10::ScalarType dtype, std::int64_t choices) {
  const std::vector<std::int64_t> numbers = C10_AS_INTARRAYREF_SLOW(sizes).vec();
  if (c10::isIntegralType(dtype, true)) return at::randint(0, choices, numbers, at::TensorOptions(dtype));
  return (at::rand(numbers) * 0.8 + 0.1).to(dtype);
}

}  // namespace

at::Tensor fake(const std::vector<c10::SymInt>& sizes, c10::ScalarType dtype) {
  TensorSpec spec;
  spec.sizes = sizes;
  spec.strides = contiguous_strides(sizes);
  spec.dtype = dtype;
  return make_fake(spec);
}

std::ostream& operator<<(std::ostream& out, const OperatorCase& one) { return out << one.name; }

Tensors real_inputs(const OperatorCase& one, Sizes sizes) {
  const SizeOf size_of = [&](const std::string& text) -> c10::SymInt {
    return text == "n" ? sizes.n : text == "m" ? sizes.m : std::stoll(text);
  };
  const std::int64_t choices = sizes.n == 1 || sizes.m == 1 ? 1 : 2;
  const Make make = [choices](const auto& of, c10::ScalarType dtype) { return random(of, dtype, choices); };
  Tensors inputs;
  for (const std::string& text : one.inputs) inputs.push_back(build(text, size_of, make));
  return inputs;
}

Tensors fake_inputs(const OperatorCase& one, Sizes sizes, const std::shared_ptr<shapes::ShapeEnv>& shapes) {
  const SizeOf size_of = [&](const std::string& text) -> c10::SymInt {
    if (text != "n" && text != "m") return std::stoll(text);
    const std::int64_t size = text == "n" ? sizes.n : sizes.m;
    return shapes ? shapes->add_backed(size, text) : c10::SymInt(size);
  };
  Tensors inputs;
  for (const std::string& text : one.inputs) inputs.push_back(build(text, size_of, fake));
  return inputs;
}

Results run(const OperatorCase& one, const Tensors& inputs) {
  Results results{one.body(inputs), {}};
  Tensors sources, targets, seeds;
  for (const at::Tensor& input : inputs) {
    if (input.requires_grad()) sources.push_back(input);
  }
  for (const at::Tensor& output : results.forward) {
    if (!output.defined() || !output.requires_grad()) continue;
    targets.push_back(output);
    seeds.push_back(at::ones_like(output));
  }
  if (sources.empty() || targets.empty()) return results;
  results.gradients = torch::autograd::grad(targets, sources, seeds, std::nullopt, false, true);
  return results;
}

}  // namespace rehearse::capture::test
