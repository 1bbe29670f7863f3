// SPDX-License-Identifier: BSD-3-Clause
// A graph's key depends on everything that affects the back end's result, and not on the place of the code that was
// captured.
#include "compile/cache/cache_key.h"

#include <functional>
#include <map>
#include <memory>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>

#include <ATen/Context.h>
#include <ATen/Version.h>
#include <ATen/autocast_mode.h>
#include <ATen/ops/ones.h>
#include <c10/core/DefaultDtype.h>
#include <c10/core/GradMode.h>
#include <c10/core/InferenceMode.h>
#include <dlfcn.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <rehearse/graph/text.h>
#include <rehearse_internal/capture/fake_tensor.h>
#include <rehearse_internal/exec/build_id.h>
#include <rehearse_internal/libtorch/version.h>
#include <rehearse_internal/shapes/shape_env.h>

namespace rehearse::compiler {
namespace {

constexpr const char* kGraph = R"(graph_module "GraphModule" {
  attribute "c" {"dtype": dtype(Float), "sizes": [], "strides": []}
  %x = placeholder "x" [] ; {"value": {"dtype": dtype(Float), "sizes": [sym("s0"), 4], "strides": [4, 1]}}
  %y = placeholder "y" [] ; {"value": {"dtype": dtype(Float), "sizes": [4], "strides": [1]}}
  %c = get_attr "c" []
  %a = call_function "torch.ops.aten.mul.Tensor" [%x, %c]
  %b = call_function "torch.ops.aten.add.Tensor" [%a, %y] {"alpha": 2}
  %output = output "output" [[%b]]
}
)";

// One graph to compile. Tests may change each ingredient of its key.
struct Ingredients {
  std::string graph = kGraph, backend = "aot_eager", of_backend = "1";
  at::Tensor constant = at::ones({}, at::kFloat);
  std::int64_t hint = 3;
  bool has_guard = false, is_fixed = false, shares_memory = false, brings_history = false;
  at::ScalarType dtype = at::kFloat;
  std::int64_t stride = 4, offset = 0;
  bool requires_grad = false, has_origin = false;
  std::function<void()> before = [] {};

  std::string key() const {
    BackendInput input;
    input.module = graph::parse_graph_module(graph);
    graph::Attribute attribute = *input.module->find_attribute("c");
    attribute.tensor = constant;
    input.module->set_attribute("c", attribute);
    if (brings_history) input.module->graph().first()->meta().brings_history = 1;
    if (has_origin) {
      graph::Origin origin;
      origin.stack_trace = "elsewhere";
      input.module->graph().first()->meta().set_origin(std::move(origin));
    }
    input.shapes = shapes::ShapeEnv::make();
    const c10::SymInt rows = input.shapes->add_backed(hint, "x.size(0)");
    if (has_guard) input.shapes->guard(shapes::Condition::le(shapes::Expr::symbol("s0"), 100), "a test");
    capture::TensorSpec spec;
    spec.dtype = dtype;
    spec.sizes = {rows, 4};
    spec.strides = {stride, 1};
    spec.storage_offset = offset;
    spec.requires_grad = requires_grad;
    const at::Tensor x = capture::make_fake(spec);
    capture::TensorSpec of_y;
    of_y.sizes = {4};
    of_y.strides = {1};
    input.example_inputs = {x, capture::make_fake(of_y, shares_memory ? x : at::Tensor())};
    input.fixed_layouts = {is_fixed};
    input.name = "forward";
    return cache_key(input, backend, of_backend);
  }
};

std::string with(const std::string& text, const std::string& before, const std::string& after) {
  std::string changed = text;
  return changed.replace(changed.find(before), before.size(), after);
}

// Restores the default modes in its destructor.
struct KeepModes {
  ~KeepModes() {
    c10::GradMode::set_enabled(true);
    c10::set_default_dtype(caffe2::TypeMeta::Make<float>());
    at::globalContext().setDeterministicAlgorithms(false, false);
    at::globalContext().setSDPUseMath(true);
    at::globalContext().setSDPUseFlash(true);
    at::globalContext().setUserEnabledMkldnn(true);
    at::autocast::set_autocast_enabled(at::kCPU, false);
    at::autocast::set_autocast_dtype(at::kCPU, at::kBFloat16);
    at::autocast::set_autocast_cache_enabled(true);
  }
};

TEST(CacheKey, EachIngredientCounts) {
  using Change = std::function<void(Ingredients&)>;
  const std::map<std::string, Change> changes = {
      {"a target", [](auto& each) { each.graph = with(kGraph, "mul.Tensor", "div.Tensor"); }},
      {"a named argument", [](auto& each) { each.graph = with(kGraph, "\"alpha\": 2", "\"alpha\": 3"); }},
      {"the kind of a number", [](auto& each) { each.graph = with(kGraph, "\"alpha\": 2", "\"alpha\": 2.0"); }},
      {"an argument", [](auto& each) { each.graph = with(kGraph, "[%a, %y]", "[%a, %c]"); }},
      {"an output", [](auto& each) { each.graph = with(kGraph, "[[%b]]", "[[%b, %a]]"); }},
      {"the name of a node", [](auto& each) { each.graph = with(with(kGraph, "%b", "%d"), "[[%b]]", "[[%d]]"); }},
      {"what is known of a node",
       [](auto& each) {
         each.graph = with(kGraph, "[4], \"strides\": [1]", "[4], \"strides\": [1], \"is_conj\": true");
       }},
      {"a parameter that DDP ignores",
       [](auto& each) {
         each.graph = with(kGraph, "\"strides\": [1]}}", "\"strides\": [1]}, \"ddp_ignored\": true}");
       }},
      {"history that comes later", [](auto& each) { each.brings_history = true; }},
      {"the back end", [](auto& each) { each.backend = "eager"; }},
      {"its version", [](auto& each) { each.of_backend = "2"; }},
      {"a small constant", [](auto& each) { each.constant = at::ones({}, at::kFloat) * 2; }},
      {"a constant that is a number",
       [](auto& each) { each.constant.unsafeGetTensorImpl()->set_wrapped_number(true); }},
      {"the value of a symbol", [](auto& each) { each.hint = 5; }},
      {"a guard", [](auto& each) { each.has_guard = true; }},
      {"an output that must lie as recorded", [](auto& each) { each.is_fixed = true; }},
      {"inputs that share memory", [](auto& each) { each.shares_memory = true; }},
      {"the dtype of an input", [](auto& each) { each.dtype = at::kDouble; }},
      {"how an input lies", [](auto& each) { each.stride = 8; }},
      {"where an input begins", [](auto& each) { each.offset = 1; }},
      {"whether an input requires a gradient", [](auto& each) { each.requires_grad = true; }},
      {"grad mode", [](auto&) { c10::GradMode::set_enabled(false); }},
      {"default dtype", [](auto&) { c10::set_default_dtype(caffe2::TypeMeta::Make<double>()); }},
      {"deterministic algorithms", [](auto&) { at::globalContext().setDeterministicAlgorithms(true, false); }},
      {"and those that only warn", [](auto&) { at::globalContext().setDeterministicAlgorithms(true, true); }},
      {"attention by math", [](auto&) { at::globalContext().setSDPUseMath(false); }},
      {"flash attention", [](auto&) { at::globalContext().setSDPUseFlash(false); }},
      {"oneDNN", [](auto&) { at::globalContext().setUserEnabledMkldnn(false); }},
      {"autocast", [](auto&) { at::autocast::set_autocast_enabled(at::kCPU, true); }},
      {"autocast to another dtype",
       [](auto&) {
         at::autocast::set_autocast_enabled(at::kCPU, true);
         at::autocast::set_autocast_dtype(at::kCPU, at::kHalf);
       }},
      {"autocast's cache", [](auto&) { at::autocast::set_autocast_cache_enabled(false); }},
  };
  std::map<std::string, std::string> keys = {{Ingredients().key(), "nothing"}};
  EXPECT_TRUE(keys.contains(Ingredients().key())) << "the same twice";
  for (const auto& [what, change] : changes) {
    const KeepModes keep;
    Ingredients changed;
    change(changed);
    const auto [same, is_new] = keys.emplace(changed.key(), what);
    EXPECT_TRUE(is_new) << what << " has the key of " << same->second;
  }
  Ingredients elsewhere;
  elsewhere.has_origin = true;
  EXPECT_TRUE(keys.contains(elsewhere.key())) << "where code stands decides nothing";
}

TEST(CacheKey, InferenceModeCounts) {
  const std::string without = Ingredients().key();
  const c10::InferenceMode mode;
  EXPECT_NE(Ingredients().key(), without);
}

// A program's id has the build ids of the executable, which contains Rehearse, and of LibTorch, which is a shared
// library.
TEST(CacheKey, AProgramIsItsCode) {
  EXPECT_THAT(program_id(), ::testing::StartsWith("Rehearse " + exec::executable_build_id() + ", LibTorch " +
                                                  std::string(libtorch::kVersion)));
  const std::string libtorch = exec::build_id_at(&at::globalContext());
  EXPECT_NE(libtorch, exec::executable_build_id());
  EXPECT_THAT(program_id(),
              ::testing::HasSubstr(" " + libtorch + ", " + at::get_cpu_capability() + ", and libraries "));
  EXPECT_EQ(program_id(), program_id());
  const std::set<std::string> loaded = exec::loaded_code();
  EXPECT_TRUE(loaded.contains(libtorch) && loaded.contains(exec::executable_build_id()));
  const int on_no_object = 0;
  EXPECT_EQ(exec::build_id_at(&on_no_object), "");
}

std::string reason_without_key(const BackendInput& input) {
  try {
    return "it has the key " + cache_key(input, "aot_eager", "1");
  } catch (const std::runtime_error& error) {
    return error.what();
  }
}

// If the process loads another library, the program's id changes, because a library may register operators or their
// derivatives.
TEST(CacheKey, AnotherLibraryIsAnotherProgram) {
  for (const char* name : {"libanl.so.1", "libutil.so.1", "libBrokenLocale.so.1"}) {
    if (dlopen(name, RTLD_NOW | RTLD_NOLOAD) != nullptr) continue;
    const std::string before = program_id();
    void* const library = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (library == nullptr) continue;
    EXPECT_NE(program_id(), before) << name;
    dlclose(library);
    return;
  }
  GTEST_SKIP() << "none of libc's small libraries is here and not loaded";
}

TEST(CacheKey, OtherDevicesHaveNone) {
  BackendInput input;
  input.module = graph::parse_graph_module(
      with(kGraph, "[4], \"strides\": [1]", "[4], \"strides\": [1], \"device\": device(\"cuda:0\")"));
  EXPECT_EQ(reason_without_key(input), "it has a tensor on cuda:0, and only graphs of CPUs are stored");
}

TEST(CacheKey, SizesOfDataHaveNone) {
  BackendInput input;
  input.module = graph::parse_graph_module(kGraph);
  input.shapes = shapes::ShapeEnv::make();
  input.shapes->add_unbacked();
  EXPECT_EQ(reason_without_key(input), "it has sizes that are known only at run time");
}

}  // namespace
}  // namespace rehearse::compiler
