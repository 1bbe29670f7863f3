// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/exec/call_site.h>

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/call_site/one/same_name.h"
#include "core/call_site/two/same_name.h"
#include "core/call_site/user_frame.h"
#include "exec/call_site/symbolize.h"
#include "without_lines.h"

// user_frames() leaves out frames of libraries. It recognises LibTorch's frames by library, namespace or header. It
// recognises Rehearse's frames by source file or header or, without line tables, by namespace.
using rehearse::exec::CallSite;
using rehearse::exec::Frame;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

namespace c10d::fakes_of_call_site_test {

[[gnu::noinline]] CallSite library_call() { return CallSite::capture(); }

template <class Work>
[[gnu::noinline]] CallSite library_calls(const Work& work) {
  CallSite site = work();
  asm volatile("" ::: "memory");
  return site;
}

}  // namespace c10d::fakes_of_call_site_test

// Users may write code in our namespace, too.
namespace rehearse::extension {

[[gnu::noinline]] CallSite step() { return CallSite::capture(); }

}  // namespace rehearse::extension

namespace {

namespace fakes = c10d::fakes_of_call_site_test;

// A build may have no line tables. Then a frame is just a name.
bool has_lines() { return !user_frame(CallSite::capture()).file.empty(); }

[[gnu::noinline]] CallSite train_step(int& line) {
  line = __LINE__ + 1;
  CallSite site = fakes::library_call();
  asm volatile("" ::: "memory");
  return site;
}

struct Model {
  [[gnu::noinline]] CallSite forward() const {
    CallSite site = CallSite::capture();
    asm volatile("" ::: "memory");
    return site;
  }
};

[[gnu::always_inline]] inline CallSite inlined_helper() { return fakes::library_call(); }

[[gnu::noinline]] CallSite calls_inlined_helper(int& line) {
  line = __LINE__ + 1;
  CallSite site = inlined_helper();
  asm volatile("" ::: "memory");
  return site;
}

// Two files of one name are two places: reports would otherwise take two bugs for one.
TEST(CallSite, OfTwoFilesOfOneName_SayTheirFolders) {
  if (!has_lines()) GTEST_SKIP() << "no line tables";
  EXPECT_THAT(call_site_one::capture().describe(), StartsWith("one/same_name.h:9 in "));
  EXPECT_THAT(call_site_two::capture().describe(), StartsWith("two/same_name.h:9 in "));
  EXPECT_THAT(CallSite::capture().describe(), StartsWith("call_site_test.cpp:"));
}

TEST(CallSite, PlacesInAText_AreThoseOfWhichItSpeaks) {
  if (!has_lines()) GTEST_SKIP() << "no line tables";
  const auto one = call_site_one::capture().place(), two = call_site_two::capture().place();
  const auto text = fmt::format("12: rank 1 at {}; nobody waited at {}, as {}0 at 3:4", two.text, one.text, one.text);
  EXPECT_EQ(rehearse::exec::places_in(text), (std::vector{one, two}));
  EXPECT_THAT(rehearse::exec::places_in("n" + one.text + ", " + one.text + "_too"), IsEmpty());
  EXPECT_THAT(rehearse::exec::places_in(one.text.substr(1)), IsEmpty());
}

TEST(CallSite, Files_AreNamedFromTheTopOfTheTree) {
  constexpr std::string_view kHere = "tests/core/call_site/call_site_test.cpp";
  EXPECT_EQ(__FILE__, kHere);
  if (!has_lines()) GTEST_SKIP() << "built without line tables";
  int line = 0;
  EXPECT_EQ(user_frame(train_step(line)).file, kHere);
}

TEST(CallSite, Default_IsEmptyAndHasNoFrames) {
  const CallSite site;
  EXPECT_TRUE(site.empty());
  EXPECT_TRUE(site.frames().empty());
  EXPECT_EQ(user_frame(site).function, "");
  EXPECT_EQ(site.describe(), "");
}

TEST(CallSite, Capture_StartsInTheCaller) {
  const CallSite site = CallSite::capture();
  ASSERT_FALSE(site.empty());
  EXPECT_THAT(site.frames().front().function, HasSubstr("Capture_StartsInTheCaller"));
}

TEST(CallSite, UserFrame_LeavesOutLibraries) {
  int line = 0;
  const CallSite site = train_step(line);
  EXPECT_THAT(site.frames().front().function, StartsWith("c10d::"));
  const Frame frame = user_frame(site);
  EXPECT_THAT(frame.function, HasSubstr("train_step"));
  if (!has_lines()) GTEST_SKIP() << "built without line tables";
  EXPECT_THAT(frame.file, EndsWith("call_site_test.cpp"));
  EXPECT_EQ(frame.line, line);
}

TEST(CallSite, UserFrame_InOurNamespace_IsTheirs) {
  const Frame frame = user_frame(rehearse::extension::step());
  if (!has_lines()) GTEST_SKIP() << "without line tables only its namespace tells";
  EXPECT_EQ(frame.function, "rehearse::extension::step()");
}

TEST(CallSite, UserFrame_IsTheLambdaInsideOfLibraryCalls) {
  const std::function<CallSite()> work = [] {
    CallSite site = fakes::library_call();
    asm volatile("" ::: "memory");
    return site;
  };
  const Frame frame = user_frame(fakes::library_calls(work));
  EXPECT_THAT(frame.function, HasSubstr("UserFrame_IsTheLambdaInsideOfLibraryCalls"));
  if (!has_lines()) GTEST_SKIP() << "without line tables an inlined lambda is its caller";
  EXPECT_THAT(frame.function, HasSubstr("lambda"));
}

TEST(CallSite, UserFrame_InlinedFunction_IsReportedWithItsCaller) {
  int line = 0;
  const CallSite site = calls_inlined_helper(line);
  if (!has_lines()) GTEST_SKIP() << "built without line tables";
  EXPECT_THAT(user_frame(site).function, HasSubstr("inlined_helper"));
  const auto frames = site.frames();
  const auto caller = std::find_if(frames.begin(), frames.end(), [](const Frame& frame) {
    return frame.function.find("calls_inlined_helper") != std::string::npos;
  });
  ASSERT_NE(caller, frames.end());
  EXPECT_EQ(caller->line, line);
}

TEST(CallSite, Describe_NamesFileLineAndFunction) {
  const std::string text = Model().forward().describe();
  EXPECT_THAT(text, EndsWith("Model::forward"));
  if (has_lines()) {
    EXPECT_THAT(text, StartsWith("call_site_test.cpp:"));
  }
}

TEST(CallSite, FromAddresses_IsTheSameSite) {
  void* addresses[CallSite::kFramesMax];
  const std::size_t count = CallSite::capture_to(addresses);
  const CallSite site = CallSite::from_addresses(std::span(addresses).first(count));
  EXPECT_THAT(site.frames().front().function, HasSubstr("FromAddresses_IsTheSameSite"));
}

TEST(CallSite, UnknownAddress_HasAPlaceholder) {
  void* nowhere = reinterpret_cast<void*>(0x10);
  const CallSite site = CallSite::from_addresses(std::span(&nowhere, 1));
  ASSERT_EQ(site.frames().size(), 1u);
  EXPECT_EQ(site.frames()[0].function, "??");
  EXPECT_EQ(site.describe(), "");
}

[[gnu::noinline]] void recurse(int depth, CallSite& site) {
  if (depth == 0)
    site = CallSite::capture();
  else
    recurse(depth - 1, site);
  asm volatile("" ::: "memory");
}

TEST(CallSite, DeepStack_KeepsTheInnermostFrames) {
  CallSite site;
  recurse(200, site);
  EXPECT_GE(site.frames().size(), CallSite::kFramesMax);
  EXPECT_THAT(user_frame(site).function, HasSubstr("recurse"));
}

TEST(SymbolNames, ShortName_KeepsWhatAReaderRecognises) {
  using rehearse::exec::short_name;
  EXPECT_EQ(short_name("main"), "main");
  EXPECT_EQ(short_name("train(int, at::Tensor const&)"), "train");
  EXPECT_EQ(short_name("app::Model::forward(at::Tensor) const"), "app::Model::forward");
  EXPECT_EQ(short_name("(anonymous namespace)::step(int) [clone .isra.0]"), "step");
  EXPECT_EQ(short_name("std::vector<int> app::load<float, std::less<int> >(int)"), "app::load");
  EXPECT_EQ(short_name("main::{lambda(int)#1}::operator()(int) const"), "main::lambda");
  EXPECT_EQ(short_name("run(int)::{lambda(std::function<void ()>)#2}::operator()(std::function<void ()>) const"),
            "run::lambda");
  EXPECT_EQ(short_name("(anonymous namespace)::run::<lambda(int)>::operator()"), "run::lambda");
  EXPECT_EQ(short_name("operator()"), "lambda");
  EXPECT_EQ(short_name("main::$_1::operator()(int) const"), "main::lambda");
  EXPECT_EQ(short_name("steps()::{lambda(int)#1}::operator()(int) const::{lambda(int)#2}::operator()(int) const"),
            "steps::lambda::lambda");
  EXPECT_EQ(short_name("Trainer::step(std::function<void ()>)::{default arg#1}::{lambda()#1}::operator()() const"),
            "Trainer::step::lambda");
  EXPECT_EQ(short_name("app::Model::loss(int) const::{lambda(auto:1)#1}::operator()<int>(int) const"),
            "app::Model::loss::lambda");
  EXPECT_EQ(short_name("app::hook::{lambda(int)#1}::operator()(int) const"), "app::hook::lambda");
  EXPECT_EQ(short_name("app::Matrix::operator()(int, int)"), "app::Matrix::operator()");
  EXPECT_EQ(short_name("app::operator<<(std::ostream&, app::Model const&)"), "app::operator<<");
  EXPECT_EQ(short_name("app::operator==(int, int)"), "app::operator==");
}

TEST(SymbolNames, Lambdas_AreDemangledAsEitherCompilerNamesThem) {
  using rehearse::exec::demangled;
  using rehearse::exec::short_name;
  const auto name = [](const char* mangled) { return short_name(demangled(mangled)); };
  EXPECT_EQ(name("_ZZN4user7Trainer4stepESt8functionIFvvEEENKUlTyT_E_clIiEEDaS4_"), "user::Trainer::step::lambda");
  EXPECT_EQ(name("_ZZN4user7Trainer4stepESt8functionIFvvEEENKUlT_E_clIiEEDaS3_"), "user::Trainer::step::lambda");
  EXPECT_EQ(name("_ZZ4mainENK3$_1clEi"), "main::lambda");
  EXPECT_EQ(name("_ZNK4user7Trainer4hookMUliE_clEi"), "user::Trainer::hook::lambda");
  EXPECT_EQ(demangled("train_step"), "train_step");
}

TEST(SymbolNames, WrappedCallable_IsWhatTheLibraryCalls) {
  using rehearse::exec::wrapped_callable;
  EXPECT_EQ(
      wrapped_callable("std::_Function_handler<void (rehearse::RankContext&), "
                       "Suite_Case_Test::TestBody()::{lambda(rehearse::RankContext&)#1}>::_M_invoke(std::_Any_data "
                       "const&, rehearse::RankContext&)"),
      "Suite_Case_Test::TestBody()::{lambda(rehearse::RankContext&)#1}");
  EXPECT_EQ(
      wrapped_callable("std::_Function_handler<void (), app::Step<int, float> >::_M_invoke(std::_Any_data const&)"),
      "app::Step<int, float>");
  EXPECT_EQ(
      wrapped_callable("std::thread::_State_impl<std::thread::_Invoker<std::tuple<app::load()::{lambda()#1}, int> "
                       "> >::_M_run()"),
      "app::load()::{lambda()#1}");
  EXPECT_EQ(
      wrapped_callable("std::_Function_handler<void (int), void (*)(int)>::_M_invoke(std::_Any_data const&, int&&)"),
      "");
  EXPECT_EQ(wrapped_callable("app::train(int)"), "");
}

TEST(CallSite, HowToSeeLines_IsNothingWhereThereAre) {
  int line = 0;
  EXPECT_EQ(train_step(line).how_to_see_lines(), "");
  EXPECT_EQ(CallSite().how_to_see_lines(), "");
}

// without_lines.cpp has no line tables. It captures the call site in a lambda that std::function calls, and the
// compiler inlines the code of std::function.
TEST(CallSite, WithoutLineTables_FunctionsAreNamedAndTheReportSaysWhatToCompileWith) {
  const auto site = without_lines::in_a_function();
  EXPECT_THAT(site.describe(), StartsWith("without_lines::in_a_function::lambda"));
  EXPECT_EQ(user_frame(site).file, "");
  EXPECT_EQ(site.how_to_see_lines(), "compile with -g1 to see lines");
}

// The function belongs to a library without line tables. The library's user can change the line that called the
// function, so describe() names that line.
TEST(CallSite, FunctionWithoutALine_IsNamedWithTheFirstCallerThatHasOne) {
  if (!has_lines()) GTEST_SKIP() << "built without line tables";
  const int line = __LINE__ + 1;
  const auto site = without_lines::in_a_named_function();
  const auto place = "without_lines::in_a_named_function, from call_site_test.cpp:" + std::to_string(line) + " in ";
  EXPECT_THAT(site.describe(), StartsWith(place));
  ASSERT_FALSE(site.user_places().empty());
  EXPECT_EQ(site.user_places().front().text, site.describe());
  int own_line = 0;
  EXPECT_EQ(train_step(own_line).user_places().front().text, train_step(own_line).describe());
}

CallSite seen_by_plugin;

// Returns the frame of the library's call_back(). If the test cannot get it, Frame::function holds the reason.
Frame frame_of_plugin(const char* library_name) {
  const auto folder = std::filesystem::current_path();
  std::filesystem::current_path(CALL_SITE_PLUGIN_FOLDER);
  void* const library = dlopen(library_name, RTLD_NOW);
  std::filesystem::current_path(folder);
  if (library == nullptr) return {dlerror(), "", 0};
  const auto call_back = reinterpret_cast<void (*)(void (*)())>(dlsym(library, "call_back"));
  if (call_back == nullptr) return {"no call_back()", "", 0};
  call_back([] { seen_by_plugin = CallSite::capture(); });
  const auto frames = seen_by_plugin.user_frames();
  const auto plugin = std::find_if(frames.begin(), frames.end(), [](const Frame& frame) {
    return frame.file.ends_with("tests/core/call_site/plugin.cpp");
  });
  return plugin != frames.end() ? *plugin : Frame{"it has no lines", "", 0};
}

// The test opens the library by a relative path, under a name that begins like the names of LibTorch's libraries. When
// the test asks for lines, the current folder is another one.
TEST(CallSite, CodeLoadedByDlopen_HasLines) {
  const auto frame = frame_of_plugin("./libtorch_extension.so");
  EXPECT_EQ(frame.line, 4);
  EXPECT_EQ(frame.function, "call_back");
}

TEST(CallSite, CodeWithoutAnIndexOfAddresses_HasLines) {
  const auto frame = frame_of_plugin("./libwithout_index.so");
  EXPECT_EQ(frame.line, 4);
  EXPECT_EQ(frame.function, "call_back");
}

TEST(SymbolNames, OutermostName_SeesThroughMangling) {
  using rehearse::exec::outermost_name;
  EXPECT_EQ(outermost_name("_ZN5torch3nn10LinearImpl7forwardERKN2at6TensorE"), "torch");
  EXPECT_EQ(outermost_name("_ZNK2at6Tensor3addE"), "at");
  EXPECT_EQ(outermost_name("_ZNSt17_Function_handlerIFvvEZ4mainEUlvE_E9_M_invokeERKSt9_Any_data"), "std");
  EXPECT_EQ(outermost_name("_ZSt4sortIPiEvT_S1_"), "std");
  EXPECT_EQ(outermost_name("_ZZ4mainENKUlvE_clEv"), "main");
  EXPECT_EQ(outermost_name("_ZZN8rehearse3runEvENKUlvE_clEv"), "rehearse");
  EXPECT_EQ(outermost_name("_ZL4stepv"), "step");
  EXPECT_EQ(outermost_name("_ZN12_GLOBAL__N_14stepEv"), "_GLOBAL__N_1");
  EXPECT_EQ(outermost_name("main"), "");
}

}  // namespace
