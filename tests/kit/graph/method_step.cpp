// SPDX-License-Identifier: BSD-3-Clause
#include <optional>
#include <unordered_map>

#include "kit/graph/dynamo_steps.h"
#include "kit/graph/overloads.h"

namespace rehearse::graph {
namespace {

using Query = c10::IValue (*)(const at::Tensor&);

// Methods of tensors that take no arguments, return no tensor, and are unknown to the dispatcher.
Query find_query(std::string_view name) {
  static const std::unordered_map<std::string_view, Query> queries = {
      {"size", [](const at::Tensor& self) { return c10::IValue(self.sizes().vec()); }},
      {"stride", [](const at::Tensor& self) { return c10::IValue(self.strides().vec()); }},
      {"dim", [](const at::Tensor& self) { return c10::IValue(self.dim()); }},
      {"ndimension", [](const at::Tensor& self) { return c10::IValue(self.dim()); }},
      {"numel", [](const at::Tensor& self) { return c10::IValue(self.numel()); }},
      {"nelement", [](const at::Tensor& self) { return c10::IValue(self.numel()); }},
  };
  const auto found = queries.find(name);
  return found == queries.end() ? nullptr : found->second;
}

std::optional<c10::ScalarType> find_cast(std::string_view name) {
  static const std::unordered_map<std::string_view, c10::ScalarType> casts = {
      {"bfloat16", c10::kBFloat16},   {"bool", c10::kBool}, {"byte", c10::kByte},     {"cdouble", c10::kComplexDouble},
      {"cfloat", c10::kComplexFloat}, {"char", c10::kChar}, {"double", c10::kDouble}, {"float", c10::kFloat},
      {"half", c10::kHalf},           {"int", c10::kInt},   {"long", c10::kLong},     {"short", c10::kShort}};
  const auto found = casts.find(name);
  return found == casts.end() ? std::nullopt : std::optional(found->second);
}

class QueryStep : public Step {
 public:
  QueryStep(const Node& node, Query query) : node_(node), query_(query) {}
  c10::IValue run(const ValueOf& value_of) const override {
    const c10::IValue self = to_ivalue(node_.args()[0], value_of, node_, "args[0]");
    if (!self.isTensor()) throw GraphError(node_.name(), "args[0]", "must be a tensor, and is " + self.tagKind());
    return query_(self.toTensor());
  }

 private:
  const Node& node_;
  Query query_;
};

class MethodStep : public Step {
 public:
  explicit MethodStep(const Node& node) : node_(node), args_(node.args()), kwargs_(node.kwargs()), op_(rewritten()) {
    if (op_.empty()) {
      throw GraphError(node.name(), "target",
                       "'" + node.target() + "' is no method of tensors that is an operator of this LibTorch");
    }
  }
  c10::IValue run(const ValueOf& value_of) const override { return op_.call(node_, args_, kwargs_, 1, value_of); }

 private:
  // Rewrites `x.float()` to `x.to(dtype)`, and `x.to(device, dtype)` to `x.to(device=device, dtype=dtype)`, with or
  // without the dtype. Keywords are needed because no overload of aten::to takes only a device by position.
  std::string_view rewritten() {
    if (const auto dtype = find_cast(node_.target())) {
      args_.insert(args_.begin() + 1, Argument(*dtype));
      return "to";
    }
    if (node_.target() != "to" || args_.size() < 2 || !args_[1].is<c10::Device>()) return node_.target();
    kwargs_.emplace_back("device", args_[1]);
    args_.erase(args_.begin() + 1);
    if (args_.size() > 1 && args_[1].is<c10::ScalarType>()) {
      kwargs_.emplace_back("dtype", args_[1]);
      args_.erase(args_.begin() + 1);
    }
    return "to";
  }

  const Node& node_;
  List args_;
  Dict kwargs_;
  Overloads op_;
};

}  // namespace

std::unique_ptr<Step> make_method_step(const Node& node) {
  if (node.args().empty()) throw GraphError(node.name(), "args", "a method needs a self");
  const Query query = node.args().size() == 1 && node.kwargs().empty() ? find_query(node.target()) : nullptr;
  if (query != nullptr) return std::make_unique<QueryStep>(node, query);
  return std::make_unique<MethodStep>(node);
}

}  // namespace rehearse::graph
