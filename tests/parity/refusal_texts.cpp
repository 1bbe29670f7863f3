// SPDX-License-Identifier: BSD-3-Clause
#include "refusal_texts.h"

#include <regex>

namespace rehearse::parity {
namespace {

// A case in which gloo's refusal and ours have different texts, and the reason.
struct OtherWords {
  const char* name;         // of the case
  const char *gloo, *ours;  // regular expressions
  const char* why;
};

constexpr OtherWords kOtherWords[] = {
    {"allreduce max of complex", "all_reduce does not support\x04on complex tensors",
     "allreduce does not support MAX on complex tensors", "gloo's text has the operation's number as a letter"},
    {"allreduce of two dtypes", "ProcessGroupGloo::allreduce: invalid tensor type at index 0 .*",
     "rehearse::allreduce: requires a single-element tensor list", "we take no second tensor, of whatever dtype"},
    {"allgather into other dtypes",
     R"(ProcessGroupGloo::allgather: invalid tensor type at index 0 \(expected TensorOptions\(dtype=float, .*)",
     R"(rehearse::allgather: invalid tensor type at index 0 \(expected float32 on cpu, got int64 on cpu\))",
     "gloo prints all options of both tensors"},
    {"alltoall_base of a size that does not divide",
     R"(\[enforce fail at .*alltoall\.cc:\d+\] in->size % context->size == 0\. |)"
     R"(Tensor's dim 0 does not divide equally across group size)",
     R"(rehearse::alltoall_base: Tensor's dim 0 does not divide equally across group size \(.*\))",
     "gloo names its source, or no sizes"},
    {"scatter of nothing",
     R"(ProcessGroupGloo::scatter: requires a single-element input list containing a list with \d tensors\.?)",
     R"(rehearse::scatter: requires a single-element input list containing a list with \d tensors)",
     "since LibTorch 2.13 gloo's text ends with a full stop"},
    {"alltoall_base with splits that do not add up", "Split sizes doesn't match total dim 0 size",
     R"(rehearse::alltoall_base: Split sizes doesn't match total dim 0 size \(.*\))", "we name the sizes"},
    {"_allgather_base into a wrong size",
     R"(ProcessGroupGloo::allgather: invalid tensor size at index 0 \(expected \(4\), got \(5\)\))",
     R"(rehearse::_allgather_base: output tensor size must be equal to world_size times input tensor size \(.*\))",
     "gloo checks the pieces into which it has cut the output"},
    {"send to itself", R"(\[enforce fail at .*pair\.cc:\d+\] state_ >= CONNECTED\. .*)",
     R"(rehearse::send: invalid destination rank: \d is the rank of the calling process itself)",
     "gloo names its source and its sockets"},
    {"send with gaps", "input tensor has to be contiguous",
     R"(rehearse::send: input tensor has to be contiguous; this one has sizes \[6, 4\] and strides \[7, 1\])",
     "we name sizes and strides"},
    {"send of a transposed tensor", "input tensor has to be contiguous",
     R"(rehearse::send: input tensor has to be contiguous; this one has sizes \[6, 4\] and strides \[1, 6\])",
     "we name sizes and strides"},
    {"alltoall_base of gaps", "Tensors must be contiguous",
     R"(rehearse::alltoall_base: Tensors must be contiguous; this one has sizes \[60, 2\] and strides \[5, 1\])",
     "we name sizes and strides"},
};

}  // namespace

::testing::AssertionResult refusals_agree(const std::string& name, const std::string& ours, const std::string& gloo) {
  const auto differ = [&](const std::string& how) {
    return ::testing::AssertionFailure() << how << "; gloo: '" << gloo << "', we: '" << ours << '\'';
  };
  for (const auto& other : kOtherWords) {
    if (name != other.name) continue;
    const bool as_known =
        std::regex_match(gloo, std::regex(other.gloo)) && std::regex_match(ours, std::regex(other.ours));
    if (as_known) return ::testing::AssertionSuccess();
    return differ("other words than known (" + std::string(other.why) + ')');
  }
  const std::regex who("^(?:ProcessGroupGloo|rehearse)::(\\w+):? ");
  std::smatch our_call, their_call;
  std::regex_search(ours, our_call, who);
  const bool is_named = std::regex_search(gloo, their_call, who);
  if (is_named && our_call.str(1) != their_call.str(1)) return differ("different calls");
  if (std::regex_replace(ours, who, "") != std::regex_replace(gloo, who, "")) return differ("different texts");
  return ::testing::AssertionSuccess();
}

}  // namespace rehearse::parity
