// SPDX-License-Identifier: BSD-3-Clause
// The interpreter runs graphs that Dynamo recorded, whole and in pieces. Outputs equal those of ATen's functions called
// one by one: bit for bit, or up to rounding if the graph has submodules. Every tensor has the dtype and the sizes that
// PyTorch recorded, unless a size depends on values.
#include <algorithm>
#include <map>
#include <random>

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <ATen/autocast_mode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/split.h>

#include "bit_equal.h"
#include "core/graph/eager.h"
#include "core/graph/recorded_graph.h"
#include "kit/graph/dynamo_interpreter.h"

namespace rehearse::graph {
namespace {

using c10::IValue;
using nlohmann::json;
using rehearse::test::BitEqual;
using testing::ElementsAre;
using testing::HasSubstr;

using Symbols = std::map<std::string, std::int64_t>;

constexpr std::int64_t kBytesMax = 8 << 20;  // bytes of parameters: larger models only take longer

// Makes random tensors, the same ones on every machine.
class Data {
 public:
  at::Tensor tensor(const std::vector<std::int64_t>& sizes, c10::ScalarType dtype) {
    at::Tensor made = at::empty(sizes, at::kDouble);
    double* const values = made.data_ptr<double>();
    for (std::int64_t i = 0; i < made.numel(); ++i) values[i] = static_cast<double>(engine_() >> 40) / (1 << 24);
    if (c10::isIntegralType(dtype, false)) return made.mul(3).floor().to(dtype);
    return dtype == at::kBool ? made.gt(0.5) : made.add(0.05).to(dtype);
  }

 private:
  std::mt19937_64 engine_{7};
};

std::vector<std::int64_t> sizes_of(const TensorMeta& tensor, const Symbols& symbols) {
  std::vector<std::int64_t> sizes;
  for (const SymInt& size : tensor.sizes)
    sizes.push_back(size.is_symbolic() ? symbols.at(*size.expression().symbol()) : size.number());
  return sizes;
}

void fill_attributes(GraphModule& module, Data& data) {
  const auto attributes = module.attributes();
  for (auto [name, attribute] : attributes) {
    attribute.tensor = data.tensor(sizes_of(attribute.meta, {}), attribute.meta.dtype);
    module.set_attribute(name, attribute);
  }
  for (const auto& [name, submodule] : module.submodules()) fill_attributes(*submodule, data);
}

std::vector<IValue> inputs_of(const GraphModule& module, Data& data, const Symbols& symbols) {
  std::vector<IValue> inputs;
  for (const Node* input : module.graph().placeholders()) {
    if (const TensorMeta* tensor = input->meta().tensor()) {
      inputs.emplace_back(data.tensor(sizes_of(*tensor, symbols), tensor->dtype));
    } else {
      inputs.emplace_back(symbols.at(input->meta().value->scalar()->expression.text()));
    }
  }
  return inputs;
}

// The symbols that the inputs determine. The run determines the other symbols.
Symbols known_symbols(const GraphModule& module, const Symbols& symbols) {
  Symbols known;
  for (const Node* input : module.graph().placeholders()) {
    for (const std::string& symbol : free_symbols(*input->meta().value)) known[symbol] = symbols.at(symbol);
  }
  return known;
}

// Copies, because graphs change inputs and buffers in place.
std::vector<IValue> copies(const std::vector<IValue>& values) {
  std::vector<IValue> copied;
  for (const IValue& value : values) copied.push_back(value.isTensor() ? IValue(value.toTensor().clone()) : value);
  return copied;
}

void expect_equal(const std::vector<IValue>& found, const std::vector<IValue>& wanted, bool bits) {
  ASSERT_EQ(found.size(), wanted.size());
  for (std::size_t i = 0; i < found.size(); ++i) {
    ASSERT_EQ(found[i].isTensor(), wanted[i].isTensor()) << i;
    if (!found[i].isTensor()) {
      EXPECT_EQ(found[i], wanted[i]) << i;
      continue;
    }
    const at::Tensor& left = found[i].toTensor();
    const at::Tensor& right = wanted[i].toTensor();
    if (bits) {
      EXPECT_THAT(left, BitEqual(right)) << i;
    } else {
      EXPECT_EQ(left.scalar_type(), right.scalar_type()) << i;
      EXPECT_TRUE(at::allclose(left, right, 1e-5, 1e-6)) << i;
    }
  }
}

// Returns nothing if the text is no integer expression (SymExpr::expr()), or if it has an unknown symbol.
std::optional<std::int64_t> value_of(const SymExpr& size, const Symbols& symbols) {
  if (size.expr() == nullptr) return std::nullopt;
  return size.expr()->evaluate([&symbols](const std::string& symbol) -> std::optional<std::int64_t> {
    const auto known = symbols.find(symbol);
    return known == symbols.end() ? std::nullopt : std::optional(known->second);
  });
}

// Compares sizes that are numbers, or expressions over known symbols.
void expect_recorded(const Node& node, const IValue& value, const Symbols& symbols) {
  const TensorMeta* tensor = node.meta().tensor();
  if (tensor == nullptr) return;
  ASSERT_TRUE(value.isTensor()) << node.name();
  EXPECT_EQ(value.toTensor().scalar_type(), tensor->dtype) << node.name();
  ASSERT_EQ(static_cast<std::size_t>(value.toTensor().dim()), tensor->sizes.size()) << node.name();
  for (std::size_t i = 0; i < tensor->sizes.size(); ++i) {
    const SymInt& size = tensor->sizes[i];
    const auto wanted = size.is_symbolic() ? value_of(size.expression(), symbols) : size.number();
    if (!wanted) continue;
    EXPECT_EQ(value.toTensor().size(static_cast<std::int64_t>(i)), *wanted) << node.name() << ", size " << i;
  }
}

const json& recorded_cases() {
  static const json cases = read_json_gz(std::filesystem::path(REHEARSE_TEST_DATA) / "truth/splits.json.gz");
  return cases;
}

std::int64_t bytes_of(const json& recorded) {
  std::int64_t bytes = 0;
  for (const json& parameter : recorded.at("params")) bytes += parameter.at("nbytes").get<std::int64_t>();
  return bytes;
}

// fx orders partitions by their inputs alone, and changes in place are no inputs. So a partition that changes a value
// in place may run after a later partition that reads the value.
bool may_see_another_order(const GraphModule& module, const SplitModule& split) {
  const auto& parts = split.partitions;
  const bool in_order = std::is_sorted(
      parts.begin(), parts.end(), [](const Partition& left, const Partition& right) { return left.id < right.id; });
  for (const Node& node : module.graph()) {
    if (!in_order && node.op() == Op::CallMethod && node.target().ends_with('_')) return true;
  }
  return false;
}

// Compares a run of the whole graph on the interpreter with ATen's functions. Then compares a run of its pieces, unless
// they may see changes in another order.
class Comparison {
 public:
  void run(const json& nodes) {
    const auto module = std::make_shared<GraphModule>();
    add_recorded_nodes(*module, nodes);
    Data data;
    fill_attributes(*module, data);
    const std::vector<IValue> inputs = inputs_of(*module, data, kSymbols);
    const Symbols known = known_symbols(*module, kSymbols);
    DynamoInterpreter interpreter(module);
    interpreter.set_observer([&](const Node& node, const IValue& value) { expect_recorded(node, value, known); });
    const std::vector<IValue> changed = copies(inputs);
    at::manual_seed(3);
    const std::vector<IValue> wanted = run_eagerly(*module, changed);
    const bool bits = module->submodules().empty();  // the reference of a called Linear adds in another order
    const auto compare = [&](const DynamoInterpreter& with) {
      const std::vector<IValue> own = copies(inputs);
      at::manual_seed(3);
      expect_equal(with.run(own), wanted, bits);
      expect_equal(own, changed, bits);
    };
    compare(interpreter);
    int seen = 0;
    const SplitModule split = split_by(*module, [&](const Node&) { return seen++ / 5; });
    ++graphs;
    pieces += split.partitions.size();
    if (may_see_another_order(*module, split)) {
      ++reordered;
    } else {
      compare(DynamoInterpreter(split.module));
    }
  }

  int graphs = 0;
  int reordered = 0;
  std::size_t pieces = 0;

 private:
  const Symbols kSymbols = {{"s0", 6}, {"s1", 4}, {"u0", 3}};
};

// PyTorch recorded None as a value: alone, and in a list.
TEST(RecordedRun, ValuesOfKindNoneAreNotThere) {
  const json nodes = json::parse(R"([
      {"name": "x", "op": "placeholder", "target": "x", "args": [], "val": {"kind": "none"}},
      {"name": "pair", "op": "call_function", "target": "f", "args": [{"n": "x"}], "val": {"kind": "list", "items": [
          {"kind": "tensor", "shape": [2], "stride": [1], "dtype": "float32", "requires_grad": true},
          {"kind": "none"}]}}])");
  GraphModule module;
  add_recorded_nodes(module, nodes);
  const auto value_of = [&](const char* name) { return *module.graph().find(name)->meta().value; };
  EXPECT_EQ(value_of("x"), ValueMeta());
  const auto pair = value_of("pair");
  ASSERT_NE(pair.list(), nullptr);
  ASSERT_EQ(pair.list()->size(), 2u);
  EXPECT_NE(pair.list()->at(0).tensor(), nullptr);
  EXPECT_EQ(pair.list()->at(1), ValueMeta());
}

TEST(RecordedRun, GraphsOfDynamoGiveAtensValuesWholeAndInPieces) {
  const int threads = at::get_num_threads();
  at::set_num_threads(1);
  const at::NoGradGuard no_grad;
  Comparison comparison;
  std::vector<std::string> refused;
  for (const json& recorded : recorded_cases()) {
    if (bytes_of(recorded) > kBytesMax) continue;
    for (const json& nodes : recorded.at("graphs")) {
      SCOPED_TRACE(recorded.at("case").get<std::string>());
      try {
        comparison.run(nodes);
      } catch (const GraphError& error) {
        refused.emplace_back(error.what());
      }
      EXPECT_FALSE(at::GradMode::is_enabled());
      EXPECT_FALSE(at::autocast::is_autocast_enabled(at::kCPU));
    }
  }
  at::set_num_threads(threads);
  EXPECT_THAT(refused, ElementsAre(HasSubstr("'torch.nn.functional.multi_head_attention_forward' cannot be run"),
                                   HasSubstr("(Conv2d) has no graph")));
  EXPECT_EQ(comparison.graphs, 310);
  EXPECT_EQ(comparison.pieces, 529u);
  EXPECT_EQ(comparison.reordered, 10);
}

}  // namespace
}  // namespace rehearse::graph
