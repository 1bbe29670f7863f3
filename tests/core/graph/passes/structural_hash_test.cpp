// SPDX-License-Identifier: BSD-3-Clause
// The hash depends on the computation, and not on the names of nodes.
#include <rehearse_internal/graph/structural_hash.h>

#include <gtest/gtest.h>

#include <rehearse/graph/text.h>

namespace rehearse::graph {
namespace {

TEST(StructuralHash, SeesWhatIsComputedAndNoNames) {
  const auto hash = [](const std::string& lines) {
    return structural_hash(*parse_graph_module("graph_module \"G\" {\n" + lines + "\n}"));
  };
  const std::string base =
      "%x = placeholder \"x\" []\n%y = call_function \"f\" [%x, 1]\n%output = output \"output\" [%y]";
  EXPECT_EQ(hash(base), hash("%a = placeholder \"b\" []\n%c = call_function \"f\" [%a, 1] ; {\"ddp_ignored\": "
                             "true}\n%output = output \"output\" [%c]"));
  for (const char* other :
       {"%x = placeholder \"x\" []\n%y = call_function \"g\" [%x, 1]\n%output = output \"output\" [%y]",
        "%x = placeholder \"x\" []\n%y = call_function \"f\" [%x, 1.0]\n%output = output \"output\" [%y]",
        "%x = placeholder \"x\" []\n%y = call_function \"f\" [[%x, 1]]\n%output = output \"output\" [%y]",
        "%x = placeholder \"x\" []\n%y = call_method \"f\" [%x, 1]\n%output = output \"output\" [%y]",
        "%x = placeholder \"x\" []\n%y = call_function \"f\" [%x] {\"k\": 1}\n%output = output \"output\" [%y]",
        "%x = placeholder \"x\" []\n%y = call_function \"f\" [%x, 1]\n%output = output \"output\" [%x]",
        "attribute \"w\" {\"sizes\": [1]}\n%x = placeholder \"x\" []\n%y = call_function \"f\" [%x, 1]\n%output = "
        "output \"output\" [%y]"}) {
    EXPECT_NE(hash(base), hash(other)) << other;
  }
  EXPECT_EQ(structural_hash(GraphModule()), structural_hash(GraphModule()));
}

TEST(StructuralHash, PiecesAreCountedAndKindsDiffer) {
  const auto hash = [](const std::string& lines) {
    return structural_hash(*parse_graph_module("graph_module \"G\" {\n" + lines + "\n}"));
  };
  EXPECT_NE(hash("attribute \"w\" {\"sizes\": [5]}"), hash("attribute \"w\" {\"sizes\": [sym(\"s5\")]}"));
  EXPECT_NE(hash("attribute \"a.w\" {}"), hash("submodule \"a\" graph_module \"G\" {attribute \"w\" {}}"));
  EXPECT_NE(hash("submodule \"a\" graph_module \"G\" {attribute \"w\" {}}"),
            hash("attribute \"w\" {} submodule \"a\" graph_module \"G\" {}"));
  EXPECT_NE(hash("submodule \"a\" graph_module \"G\" {submodule \"b\" graph_module \"G\" {}}"),
            hash("submodule \"a\" graph_module \"G\" {} submodule \"b\" graph_module \"G\" {}"));
  EXPECT_NE(hash("submodule \"a\" graph_module \"G\" {attribute \"w\" {\"sizes\": [1]}}"),
            hash("submodule \"a\" graph_module \"G\" {attribute \"w\" {\"sizes\": [2]}}"));
  EXPECT_NE(hash("%x = placeholder \"x\" []"), hash("%x = placeholder \"x\" [] ; {\"value\": {\"sizes\": []}}"));
}

TEST(StructuralHash, PlaceholdersOfAnyFormAreTheSame) {
  const auto hash = [](const std::string& form, Placeholders placeholders) {
    const std::string graph = "%x = placeholder \"x\" [] ; {\"value\": {\"sizes\": " + form + "}}\n";
    return structural_hash(
        *parse_graph_module("graph_module \"G\" {submodule \"a\" graph_module \"G\" {" + graph + "}\n" + graph + "}"),
        placeholders);
  };
  EXPECT_NE(hash("[2]", Placeholders::WithForms), hash("[3, 4]", Placeholders::WithForms));
  EXPECT_EQ(hash("[2]", Placeholders::OfAnyForm), hash("[3, 4]", Placeholders::OfAnyForm));
}

}  // namespace
}  // namespace rehearse::graph
