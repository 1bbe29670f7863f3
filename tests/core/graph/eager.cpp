// SPDX-License-Identifier: BSD-3-Clause
#include "core/graph/eager.h"

#include <functional>
#include <map>
#include <stdexcept>
#include <string>

#include <ATen/autocast_mode.h>

#include "core/graph/eager_call.h"

namespace rehearse::graph {
namespace {

using Function = std::function<IValue(const Call&)>;

IValue item_of(const Call& c) {
  if (c.v(0).isTuple()) return c.v(0).toTupleRef().elements().at(static_cast<std::size_t>(c.n(1)));
  if (c.v(0).isTensorList()) return c.v(0).toTensorVector().at(static_cast<std::size_t>(c.n(1)));
  at::Tensor tensor = c.t(0);
  if (c.is_tensor(1) && c.t(1).scalar_type() == at::kBool) return at::masked_select(tensor, c.t(1));
  if (c.is_tensor(1)) return at::embedding(tensor, c.t(1));  // the rows that the index names
  if (c.raw(1).is<std::int64_t>()) return tensor.select(0, c.n(1));
  const List indices = c.raw(1).is<List>() ? c.raw(1).as<List>() : List{c.raw(1)};
  std::int64_t dim = 0;
  for (const Argument& index : indices) {
    if (const auto* slice = index.get_if<Slice>()) {
      const IValue start = c.value(slice->start());
      const IValue stop = c.value(slice->stop());
      tensor = tensor.slice(dim++, start.isNone() ? 0 : start.toInt(), stop.isNone() ? INT64_MAX : stop.toInt());
    } else {
      tensor = tensor.select(dim, c.value(index).toInt());
    }
  }
  return tensor;
}

IValue number_or(const Call& c, IValue (*on_tensors)(const Call&),
                 std::int64_t (*on_ints)(std::int64_t, std::int64_t)) {
  return c.is_tensor(0) || c.is_tensor(1) ? on_tensors(c) : IValue(on_ints(c.n(0), c.n(1)));
}

IValue compare(const Call& c, const char* sign) {
  const std::string op = sign;
  if (c.is_tensor(0))
    return op == "<"   ? at::lt(c.t(0), c.scalar(1))
           : op == ">" ? at::gt(c.t(0), c.scalar(1))
                       : throw std::runtime_error(op);
  return op == "<" ? c.n(0) < c.n(1) : op == "<=" ? c.n(0) <= c.n(1) : op == ">" ? c.n(0) > c.n(1) : c.n(0) >= c.n(1);
}

IValue body_of(const Call& c, const std::string& name, const std::vector<IValue>& inputs) {
  const std::vector<IValue> outputs = run_eagerly(*c.module.find_submodule(name), inputs);
  return c10::ivalue::Tuple::create(outputs);
}

std::string body_name(const Call& c, std::size_t i) { return c.raw(i).node()->target(); }

void set_autocast(bool enabled, c10::ScalarType dtype) {
  at::autocast::set_autocast_enabled(at::kCPU, enabled);
  at::autocast::set_autocast_dtype(at::kCPU, dtype);
  at::autocast::clear_cache();
}

const std::map<std::string, Function>& functions() {
  static const std::map<std::string, Function> known = {
      {"torch._C._nn.linear", [](const Call& c) { return at::linear(c.t(0), c.t(1), c.t(2)); }},
      {"torch._C._nn.gelu", [](const Call& c) { return at::gelu(c.t(0), c.text("approximate")); }},
      {"torch._C._nn.scaled_dot_product_attention",
       [](const Call& c) { return at::scaled_dot_product_attention(c.t(0), c.t(1), c.t(2)); }},
      {"torch.nn.functional.relu", [](const Call& c) { return at::relu(c.t(0)); }},
      {"torch.nn.functional.layer_norm",
       [](const Call& c) { return at::layer_norm(c.t(0), c.ints(1), c.t(2), c.t(3), c.d(4)); }},
      {"torch.nn.functional.group_norm",
       [](const Call& c) { return at::group_norm(c.t(0), c.n(1), c.t(2), c.t(3), c.d(4)); }},
      {"torch.nn.functional.batch_norm",
       [](const Call& c) {
         return at::batch_norm(c.t(0), c.t(3), c.t(4), c.t(1), c.t(2), c.v(5).toBool(), c.d(6), c.d(7), true);
       }},
      {"torch.nn.functional.embedding", [](const Call& c) { return at::embedding(c.t(1), c.t(0)); }},
      {"torch.nn.functional.dropout", [](const Call& c) { return at::dropout(c.t(0), c.d(1), c.v(2).toBool()); }},
      {"torch.conv2d",
       [](const Call& c) { return at::conv2d(c.t(0), c.t(1), c.t(2), c.ints(3), c.ints(4), c.ints(5), c.n(6)); }},
      {"torch.conv_transpose2d",
       [](const Call& c) {
         return at::conv_transpose2d(c.t(0), c.t(1), c.t(2), c.ints(3), c.ints(4), c.ints(5), c.n(6), c.ints(7));
       }},
      {"torch.tanh", [](const Call& c) { return at::tanh(c.t(0)); }},
      {"torch.relu", [](const Call& c) { return at::relu(c.t(0)); }},
      {"torch.sigmoid", [](const Call& c) { return at::sigmoid(c.t(0)); }},
      {"torch.sin", [](const Call& c) { return at::sin(c.t(0)); }},
      {"torch.cos", [](const Call& c) { return at::cos(c.t(0)); }},
      {"torch.mm", [](const Call& c) { return at::mm(c.t(0), c.t(1)); }},
      {"torch.cat", [](const Call& c) { return at::cat(c.tensors(0), c.count() > 1 ? c.n(1) : 0); }},
      {"torch.chunk", [](const Call& c) { return at::chunk(c.t(0), c.n(1), c.n(2)); }},
      {"torch.topk",
       [](const Call& c) -> IValue {
         auto [values, indices] = at::topk(c.t(0), c.n(1), c.n(2));
         return c10::ivalue::Tuple::create({values, indices});
       }},
      {"torch.where", [](const Call& c) { return at::where(c.t(0), c.scalar(1), c.scalar(2)); }},
      {"torch.ones", [](const Call& c) { return at::ones(c.ints(0)); }},
      {"torch.zeros", [](const Call& c) { return at::zeros(c.ints(0)); }},
      {"torch.randn", [](const Call& c) { return at::randn(c.ints(0)); }},
      {"torch._check", [](const Call&) { return IValue(); }},
      {"torch.ops.aten._assert_scalar.default", [](const Call&) { return IValue(); }},
      {"torch.ops.aten.sym_size.int", [](const Call& c) { return c.t(0).size(c.n(1)); }},
      {"torch._C._set_grad_enabled", [](const Call&) { return IValue(); }},
      {"torch.amp.autocast_mode._enter_autocast",
       [](const Call& c) {
         set_autocast(true, c.raw(1).as<c10::ScalarType>());
         return IValue();
       }},
      {"torch.amp.autocast_mode._exit_autocast",
       [](const Call&) {
         set_autocast(false, at::kBFloat16);
         return IValue();
       }},
      {"torch.ops.higher_order.tag_activation_checkpoint",
       [](const Call& c) { return body_of(c, body_name(c, 0), c.rest(1)); }},
      {"torch.ops.higher_order.cond",
       [](const Call& c) {
         std::vector<IValue> operands;
         for (const at::Tensor& operand : c.tensors(3)) operands.emplace_back(operand);
         return body_of(c, body_name(c, c.t(0).item<bool>() ? 1 : 2), operands);
       }},
      {"_operator.matmul", [](const Call& c) { return at::matmul(c.t(0), c.t(1)); }},
      {"_operator.getitem", item_of},
      {"_operator.add",
       [](const Call& c) {
         return number_or(
             c,
             [](const Call& x) -> IValue {
               return x.is_tensor(1) ? at::add(x.t(0), x.t(1)) : at::add(x.t(0), x.scalar(1));
             },
             [](std::int64_t a, std::int64_t b) { return a + b; });
       }},
      {"_operator.sub", [](const Call& c) { return at::sub(c.t(0), c.t(1)); }},
      {"_operator.mul",
       [](const Call& c) {
         return number_or(
             c,
             [](const Call& x) -> IValue {
               return x.is_tensor(1) ? at::mul(x.t(0), x.t(1)) : at::mul(x.t(0), x.scalar(1));
             },
             [](std::int64_t a, std::int64_t b) { return a * b; });
       }},
      {"_operator.floordiv", [](const Call& c) { return c.n(0) / c.n(1); }},
      {"_operator.lt", [](const Call& c) { return compare(c, "<"); }},
      {"_operator.le", [](const Call& c) { return compare(c, "<="); }},
      {"_operator.gt", [](const Call& c) { return compare(c, ">"); }},
      {"_operator.ge", [](const Call& c) { return compare(c, ">="); }},
  };
  return known;
}

const std::map<std::string, Function>& methods() {
  static const std::map<std::string, Function> known = {
      {"add_", [](const Call& c) { return c.is_tensor(1) ? c.t(0).add_(c.t(1)) : c.t(0).add_(c.scalar(1)); }},
      {"mul_", [](const Call& c) { return c.is_tensor(1) ? c.t(0).mul_(c.t(1)) : c.t(0).mul_(c.scalar(1)); }},
      {"detach", [](const Call& c) { return c.t(0).detach(); }},
      {"clone", [](const Call& c) { return c.t(0).clone(); }},
      {"contiguous", [](const Call& c) { return c.t(0).contiguous(); }},
      {"t", [](const Call& c) { return c.t(0).t(); }},
      {"sin", [](const Call& c) { return c.t(0).sin(); }},
      {"cos", [](const Call& c) { return c.t(0).cos(); }},
      {"int", [](const Call& c) { return c.t(0).to(at::kInt); }},
      {"item", [](const Call& c) -> IValue { return c.t(0).item(); }},
      {"nonzero", [](const Call& c) { return c.t(0).nonzero(); }},
      {"sum", [](const Call& c) { return c.count() > 1 ? c.t(0).sum(c.ints(1)) : c.t(0).sum(); }},
      {"mean", [](const Call& c) { return c.count() > 1 ? c.t(0).mean(c.ints(1)) : c.t(0).mean(); }},
      {"transpose", [](const Call& c) { return c.t(0).transpose(c.n(1), c.n(2)); }},
      {"permute", [](const Call& c) { return c.t(0).permute(c.ints(1)); }},
      {"reshape", [](const Call& c) { return c.t(0).reshape(c.ints(1)); }},
      {"view", [](const Call& c) { return c.t(0).view(c.ints(1)); }},
      {"flatten", [](const Call& c) { return c.t(0).flatten(c.n(1)); }},
      {"narrow", [](const Call& c) { return c.t(0).narrow(c.n(1), c.n(2), c.n(3)); }},
  };
  return known;
}

IValue call_leaf(const Call& c, const Node& node) {
  const auto leaf = c.module.find_submodule(node.target());
  const auto parameter = [&](const char* name) {
    const Attribute* attribute = leaf->find_attribute(name);
    return attribute != nullptr ? attribute->tensor : at::Tensor();
  };
  if (leaf->type() == "Linear") {
    const at::Tensor product = at::matmul(c.t(0), parameter("weight").t());
    return parameter("bias").defined() ? product + parameter("bias") : product;
  }
  if (leaf->type() == "ReLU") return c.t(0).clamp_min(0);
  return parameter("weight").index_select(0, c.t(0).flatten()).reshape([&] {
    std::vector<std::int64_t> sizes = c.t(0).sizes().vec();
    sizes.push_back(parameter("weight").size(1));
    return sizes;
  }());
}

IValue call(const Call& c, const Node& node) {
  if (node.op() == Op::CallModule) return call_leaf(c, node);
  const auto& table = node.op() == Op::CallMethod ? methods() : functions();
  const auto found = table.find(node.target());
  if (found == table.end()) throw std::runtime_error("no reference for " + node.target());
  return found->second(c);
}

IValue checked_call(const Call& c, const Node& node) {
  try {
    return call(c, node);
  } catch (const c10::Error& error) {
    throw std::runtime_error("reference for '" + node.name() + "', " + node.target() + ": " +
                             error.what_without_backtrace());
  }
}

}  // namespace

std::vector<IValue> run_eagerly(const GraphModule& module, const std::vector<IValue>& inputs) {
  Values values;
  auto next = inputs.begin();
  for (const Node& node : module.graph()) {
    const Call c(module, node, values);
    if (node.op() == Op::Output) {
      std::vector<IValue> outputs;
      for (const Argument& item : node.args()[0].is<List>() ? node.args()[0].as<List>() : List{node.args()[0]})
        outputs.push_back(c.value(item));
      return outputs;
    }
    if (node.op() == Op::Placeholder) {
      values[&node] = *next++;
    } else if (node.op() == Op::GetAttr) {
      const Attribute* attribute = module.find_attribute(node.target());
      values[&node] = attribute != nullptr ? IValue(attribute->tensor) : IValue();
    } else {
      values[&node] = checked_call(c, node);
    }
  }
  return {};
}

}  // namespace rehearse::graph
