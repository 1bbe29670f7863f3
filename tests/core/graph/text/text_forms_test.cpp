// SPDX-License-Identifier: BSD-3-Clause
// Every kind of value that is written is read back as the same value. Errors in a text name the place. Shared modules
// are written once.
#include <bit>
#include <cstdint>
#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/text.h>
#include <rehearse_internal/graph/structural_hash.h>

namespace rehearse::graph {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  try {
    parse_graph_module(text);
  } catch (const GraphError& error) {
    return error.what();
  }
  return "no error";
}

TEST(Text, WithoutOriginsNodesDoNotSayWhereTheyComeFrom) {
  GraphModule module("G");
  Origin origin;
  origin.torch_fn = "torch.relu";
  module.graph().placeholder("x").meta().set_origin(std::move(origin));
  EXPECT_THAT(to_text(module), HasSubstr("torch.relu"));
  EXPECT_EQ(to_text(module, Origins::Without), "graph_module \"G\" {\n  %x = placeholder \"x\" []\n}\n");
}

TEST(Text, ErrorsNameThePlace) {
  const std::string head = "graph_module \"G\" {\n";
  EXPECT_EQ(error_of("graph"), "line 1, column 1: there must be 'graph_module' here");
  EXPECT_EQ(error_of(head + "  %x = what \"x\" []\n}"), "line 2, column 8: 'what' is no op");
  EXPECT_EQ(error_of(head + "  %y = call_method \"f\" [%x]\n}"), "line 2, column 26: there is no node 'x' before this");
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" []\n%x = placeholder \"x\" []\n}"),
              HasSubstr("node 'x', name: is taken"));
  EXPECT_THAT(error_of(head + "%sum = placeholder \"x\" []}"), HasSubstr("name: is taken, reserved"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [12z]}"), HasSubstr("'12z' is no value"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [dtype(Flot)]}"), HasSubstr("'Flot' is no dtype"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [device(\"tpu9\")]}"), HasSubstr("'tpu9' is no device"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [slice(1, 2)]}"), HasSubstr("slice has not so many parts"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [] ; {\"valu\": 1}}"), HasSubstr("\"valu\" is no key"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x\" [] ; {\"value\": {\"sizes\": 3}}}"),
              HasSubstr("\"sizes\" must be a list"));
  EXPECT_THAT(error_of(head + "attribute \"w\" {\"dtype\": 1}}"), HasSubstr("\"dtype\" must be dtype(...)"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"x"), HasSubstr("the string has no end"));
  EXPECT_THAT(error_of(head + "%x = placeholder \"\\q\" []}"), HasSubstr("unknown escape"));
  EXPECT_THAT(error_of(head), HasSubstr("there must be '%' here"));
  EXPECT_THAT(error_of(head + "} x"), HasSubstr("nothing after the module"));
}

Argument there_and_back(const Argument& argument) {
  GraphModule module;
  module.graph().call_function("f", {argument});
  return parse_graph_module(to_text(module))->graph().first()->args()[0];
}

TEST(Text, EveryDtypeLayoutFormatAndDeviceComesBack) {
  for (int i = 0; i < static_cast<int>(c10::ScalarType::NumOptions); ++i) {
    const Argument dtype = static_cast<c10::ScalarType>(i);
    EXPECT_EQ(there_and_back(dtype), dtype) << i;
  }
  for (int i = 0; i < static_cast<int>(c10::Layout::NumOptions); ++i) {
    const Argument layout = static_cast<c10::Layout>(i);
    EXPECT_EQ(there_and_back(layout), layout) << i;
  }
  for (int i = 0; i < static_cast<int>(c10::MemoryFormat::NumOptions); ++i) {
    const Argument format = static_cast<c10::MemoryFormat>(i);
    EXPECT_EQ(there_and_back(format), format) << i;
  }
  for (int i = 0; i < c10::COMPILE_TIME_MAX_DEVICE_TYPES; ++i) {
    const auto type = static_cast<c10::DeviceType>(i);
    for (const int index : {-1, 0, 1, 127}) {
      if (type == c10::DeviceType::CPU && index > 0) continue;  // the CPU has index 0 only
      const Argument device = c10::Device(type, static_cast<c10::DeviceIndex>(index));
      EXPECT_EQ(there_and_back(device), device) << i << ':' << index;
    }
  }
}

TEST(Text, NansComeBackWithTheirBits) {
  for (const std::uint64_t bits : {0x7ff8000000000000u, 0xfff8000000000000u, 0x7ff8000000000001u, 0xfff8000000000001u,
                                   0x7ff0000000000001u, 0xffffffffffffffffu}) {
    const auto value = std::bit_cast<double>(std::uint64_t{bits});
    EXPECT_EQ(there_and_back(value), Argument(value)) << std::hex << bits;
    EXPECT_EQ(there_and_back(std::complex<double>(1.0, value)), Argument(std::complex<double>(1.0, value)))
        << std::hex << bits;
  }
  EXPECT_EQ(to_text(Argument(std::bit_cast<double>(0x7ff8000000000000u))), "nan");
  EXPECT_EQ(to_text(Argument(std::bit_cast<double>(0xfff8000000000000u))), "-nan");
  EXPECT_EQ(to_text(Argument(std::bit_cast<double>(0x7ff8000000000001u))), "nan(0x7ff8000000000001)");
  const std::string head = "graph_module \"G\" {\n%x = placeholder \"x\" [nan(";
  for (const char* bits : {"0x3ff0000000000000", "0x", "7ff8000000000001", "0x7ff80000000000010", "0x-1", "x"}) {
    EXPECT_THAT(error_of(head + bits + ")]}"), HasSubstr("is no NaN's bits")) << bits;
  }
}

TEST(Text, NumbersAndNamesThatCannotBeAreRefused) {
  const std::string head = "graph_module \"G\" {\n%x = placeholder \"x\" [";
  EXPECT_EQ(error_of(head + "9223372036854775807, -9223372036854775808]}"), "no error");
  EXPECT_EQ(error_of(head + "100000000000000000000]}"),
            "line 2, column 23: 100000000000000000000 does not fit into 64 bits");
  EXPECT_EQ(error_of(head + "-9223372036854775809]}"),
            "line 2, column 23: -9223372036854775809 does not fit into 64 bits");
  EXPECT_EQ(error_of(head + "1e999]}"), "line 2, column 23: '1e999' is no value");
  EXPECT_THAT(error_of(head + "{\"a\": 1, \"b\": 2, \"a\": 3}]}"),
              HasSubstr("the key \"a\" is given twice before this"));
  EXPECT_THAT(error_of(head + "] {\"a\": 1, \"a\": 1}}"), HasSubstr("the key \"a\" is given twice"));
  EXPECT_THAT(error_of(head + "] ; {\"ddp_ignored\": true, \"ddp_ignored\": true}}"), HasSubstr("is given twice"));
  EXPECT_THAT(error_of("graph_module \"G\" {attribute \"w\" {} attribute \"w\" {}}"),
              HasSubstr("there are two attributes 'w'"));
  EXPECT_THAT(
      error_of("graph_module \"G\" {submodule \"m\" graph_module \"\" {} submodule \"m\" graph_module \"\" {}}"),
      HasSubstr("there are two submodules 'm'"));
  for (const char* device : {"cuda:128", "cuda:-1", "cuda:01x", "cuda:", "cpu:1", "CPU", ""}) {
    EXPECT_THAT(error_of(head + "device(\"" + device + "\")]}"), HasSubstr("is no device")) << device;
  }
}

TEST(Text, SharedSubmodulesAreWrittenOnceAndStaySharedAndNeverCycles) {
  auto module = std::make_shared<GraphModule>("0");
  for (int i = 1; i <= 40; ++i) {
    auto outer = std::make_shared<GraphModule>(std::to_string(i));
    outer->set_submodule("left", module);
    outer->set_submodule("right", module);
    module = outer;
  }
  const std::string text = to_text(*module);
  EXPECT_LT(text.size(), 10000u);
  const auto parsed = parse_graph_module(text);
  EXPECT_EQ(to_text(*parsed), text);
  EXPECT_EQ(parsed->find_submodule("left"), parsed->find_submodule("right"));
  EXPECT_EQ(parsed->find_submodule("right.left.left")->type(), "37");
  EXPECT_EQ(structural_hash(*parsed), structural_hash(*module));
  for (const char* number : {"0", "1", "-1", "x", "99999999999"}) {
    EXPECT_THAT(error_of(std::string("graph_module \"G\" {\nsubmodule \"m\" shared ") + number + "}"),
                testing::StartsWith("line 2, column 22: "));
  }
}

}  // namespace
}  // namespace rehearse::graph
