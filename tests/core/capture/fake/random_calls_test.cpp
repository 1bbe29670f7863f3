// SPDX-License-Identifier: BSD-3-Clause
// Calls operators with random arguments, made from their schemas. The reference is LibTorch itself: if it accepts the
// arguments, the fake results must have its sizes, strides and dtypes. With symbolic sizes, they must also have them at
// other sizes for which the guards hold.
#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <gtest/gtest.h>

#include <rehearse_internal/capture/fake_mode.h>
#include <rehearse_internal/shapes/shape_env.h>
#include <rehearse_internal/shapes/sym_node.h>

#include "capture/fake/call/operator_facts.h"
#include "operator_case.h"
#include "random_arguments.h"

namespace rehearse::capture::test {
namespace {

constexpr int kCallsOfAnOperator = 60;

// LibTorch's own kernels crash for wrong arguments of these operators instead of throwing, and _add_relu.out does not
// return `out`.
const std::set<std::string> kLeftOut = {
    "aten::_log_softmax_backward_data", "aten::_native_batch_norm_legit",
    "aten::arange.start_step",          "aten::_native_batch_norm_legit.no_stats",
    "aten::native_batch_norm",          "aten::native_batch_norm_backward",
    "aten::smooth_l1_loss_backward",    "aten::_add_relu.out",
};

using MakeTensor = std::function<at::Tensor(const std::vector<std::int64_t>& sizes, c10::ScalarType dtype)>;

torch::jit::Stack stack_of(const std::vector<RandomArgument>& arguments, const MakeTensor& make) {
  torch::jit::Stack stack;
  for (const RandomArgument& argument : arguments) {
    c10::List<at::Tensor> tensors;
    for (RandomTensor tensor : argument.tensors) {
      if (tensor.transposed) std::swap(tensor.sizes[0], tensor.sizes[1]);
      const at::Tensor made = make(tensor.sizes, tensor.dtype);
      tensors.push_back(tensor.transposed ? made.transpose(0, 1) : made);
    }
    if (argument.is_list) {
      stack.emplace_back(tensors);
    } else {
      stack.push_back(tensors.empty() ? argument.value : c10::IValue(tensors.get(0)));
    }
  }
  return stack;
}

at::Tensor real(const std::vector<std::int64_t>& sizes, c10::ScalarType dtype) {
  if (c10::isIntegralType(dtype, true)) return at::randint(0, 2, sizes, at::TensorOptions(dtype));
  return at::rand(sizes).to(dtype);
}

using ValueOfSize = std::function<std::int64_t(const c10::SymInt&)>;

// For example "Float [3, 4] [4, 1] +0" for each tensor.
std::string properties(const torch::jit::Stack& results, const ValueOfSize& value_of) {
  std::ostringstream text;
  const auto add_all = [&](c10::SymIntArrayRef values) {
    text << " [";
    for (const c10::SymInt& value : values) text << ' ' << value_of(value);
    text << " ]";
  };
  const auto add = [&](const at::Tensor& tensor) {
    if (!tensor.defined()) return void(text << "undefined; ");
    text << tensor.scalar_type();
    add_all(tensor.sym_sizes());
    add_all(tensor.sym_strides());
    text << " +" << value_of(tensor.sym_storage_offset()) << "; ";
  };
  for (const c10::IValue& result : results) {
    if (result.isTensor()) add(result.toTensor());
    if (!result.isTensorList()) continue;
    for (const at::Tensor& tensor : result.toTensorVector()) add(tensor);
  }
  return text.str();
}

std::int64_t plain(const c10::SymInt& value) { return value.maybe_as_int().value(); }

// Nothing if LibTorch refuses the arguments.
std::optional<std::string> eager_properties(const c10::OperatorHandle& op, torch::jit::Stack stack) try {
  op.callBoxed(stack);
  return properties(stack, plain);
} catch (const std::exception&) {
  return std::nullopt;
}

// By captured size: the size of the other call.
constexpr std::int64_t kSizesInstead[] = {0, 1, 5, 7, 6, 8};

// One call of an operator with arguments that LibTorch accepts.
struct AcceptedCall {
  const c10::OperatorHandle& op;
  const std::vector<RandomArgument>& arguments;
  const std::string& expected;
};

void expect_at_fixed_sizes(const AcceptedCall& call) try {
  FakeMode mode(nullptr);
  const FakeMode::Scope scope(mode);
  auto stack = stack_of(call.arguments, [](const std::vector<std::int64_t>& sizes, c10::ScalarType dtype) {
    return fake({sizes.begin(), sizes.end()}, dtype);
  });
  call.op.callBoxed(stack);
  EXPECT_EQ(properties(stack, plain), call.expected);
} catch (const std::exception&) {  // refused, which is allowed
}

// The fakes' results at the captured sizes and at the others, and whether the guards hold at the others.
struct AtBothSizes {
  std::string captured, others;
  bool guards_hold = true;
};

AtBothSizes with_symbols(const AcceptedCall& call) {
  const auto shapes = shapes::ShapeEnv::make();
  FakeMode mode(shapes);
  const FakeMode::Scope scope(mode);
  std::map<std::int64_t, c10::SymInt> symbols;
  const auto size_of = [&](std::int64_t size) {
    if (size < 2) return c10::SymInt(size);
    if (!symbols.contains(size)) symbols.emplace(size, shapes->add_backed(size, "x"));
    return symbols.at(size);
  };
  auto stack = stack_of(call.arguments, [&](const std::vector<std::int64_t>& sizes, c10::ScalarType dtype) {
    std::vector<c10::SymInt> symbolic;
    for (const std::int64_t size : sizes) symbolic.push_back(size_of(size));
    return fake(symbolic, dtype);
  });
  call.op.callBoxed(stack);
  const shapes::ValueOf captured = [&](const std::string& name) -> std::optional<std::int64_t> {
    const shapes::BackedSymbol* const symbol = shapes->find_backed(name);  // null for a size that data decides
    return symbol ? std::optional(symbol->hint) : std::nullopt;
  };
  const shapes::ValueOf others = [&](const std::string& name) -> std::optional<std::int64_t> {
    const auto hint = captured(name);
    return hint ? std::optional(kSizesInstead[*hint]) : std::nullopt;
  };
  const auto at = [&](const shapes::ValueOf& values) {
    return properties(stack, [&](const c10::SymInt& value) { return shapes::expr_of(value).evaluate(values).value(); });
  };
  AtBothSizes both{at(captured), at(others), true};
  for (const shapes::Guard& guard : shapes->guards()) {
    both.guards_hold = both.guards_hold && guard.condition.evaluate(others) == true;
  }
  return both;
}

void expect_with_symbols(const AcceptedCall& call) {
  AtBothSizes fakes;
  try {
    fakes = with_symbols(call);
  } catch (const std::exception&) {  // refused, which is allowed
    return;
  }
  EXPECT_EQ(fakes.captured, call.expected);
  if (!fakes.guards_hold) return;
  auto arguments = call.arguments;
  for (RandomArgument& argument : arguments) {
    for (RandomTensor& tensor : argument.tensors) {
      for (std::int64_t& size : tensor.sizes) size = size < 2 ? size : kSizesInstead[size];
    }
  }
  const auto at_others = eager_properties(call.op, stack_of(arguments, real));
  if (at_others) {
    EXPECT_EQ(fakes.others, *at_others);
  }
}

// Without the operators that write to other arguments than `out`.
bool writes_out_at_most(const c10::FunctionSchema& schema) {
  return std::all_of(schema.arguments().begin(), schema.arguments().end(), [](const c10::Argument& argument) {
    return !argument.alias_info() || !argument.alias_info()->isWrite() || argument.kwarg_only();
  });
}

// Operators whose results come from a rule or from broadcasting, by name.
std::set<std::string> operators() {
  std::set<std::string> names;
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    const auto op = c10::Dispatcher::singleton().findOp(name);
    if (name.name.rfind("aten::", 0) != 0 || !op || !op->hasSchema() || !writes_out_at_most(op->schema())) continue;
    const OperatorFacts& facts = facts_of(*op);
    if ((facts.rule || facts.is_pointwise) && !kLeftOut.contains(facts.name)) names.insert(facts.name);
  }
  return names;
}

TEST(RandomCalls, OfOperators_GiveWhatEagerGives) {
  const at::NoGradGuard no_grad;
  int accepted = 0;
  for (const std::string& name : operators()) {
    SCOPED_TRACE(name);
    const std::size_t dot = name.find('.');
    const auto op = c10::Dispatcher::singleton().findSchemaOrThrow(
        name.substr(0, dot).c_str(), dot == std::string::npos ? "" : name.substr(dot + 1).c_str());
    ArgumentMaker maker(1);
    for (int i = 0; i < kCallsOfAnOperator; ++i) {
      std::vector<RandomArgument> arguments;
      try {
        arguments = maker.arguments(op.schema());
      } catch (const std::invalid_argument&) {
        break;
      }
      const auto expected = eager_properties(op, stack_of(arguments, real));
      if (!expected) continue;
      ++accepted;
      SCOPED_TRACE(text_of(arguments));
      expect_at_fixed_sizes({op, arguments, *expected});
      expect_with_symbols({op, arguments, *expected});
    }
  }
  EXPECT_GT(accepted, 15'000);
}

}  // namespace
}  // namespace rehearse::capture::test
