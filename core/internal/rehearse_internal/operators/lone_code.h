// SPDX-License-Identifier: BSD-3-Clause
#pragma once

#include <string>
#include <string_view>

namespace rehearse::operators {

// While it lives, the calling fiber runs code that the other ranks do not run, so no call of a group can complete in
// that code.
class LoneCode {
 public:
  // `what`: names the code at the beginning of errors; a string literal.
  explicit LoneCode(const char* what);
  LoneCode(const LoneCode&) = delete;
  LoneCode& operator=(const LoneCode&) = delete;
  ~LoneCode();

 private:
  const char* const outer_;
};

// Whether the calling fiber runs lone code.
bool in_lone_code() noexcept;

// Throws std::invalid_argument if the calling fiber runs lone code. The error says that the code has called `call` on
// `group`.
void refuse_in_lone_code(std::string_view call, const std::string& group);

}  // namespace rehearse::operators
