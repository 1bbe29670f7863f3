// SPDX-License-Identifier: BSD-3-Clause
#include "failure_text.h"

#include <cxxabi.h>

#include <typeinfo>

#include <rehearse_internal/exec/throw_site.h>

#include "exec/call_site/symbolize.h"

namespace rehearse::exec {

std::string failure_text(const std::exception_ptr& error) {
  try {
    std::rethrow_exception(error);
  } catch (const std::exception& exception) {
    return exception.what();
  } catch (const char* text) {
    return text != nullptr ? text : "a null pointer to a text";
  } catch (const std::string& text) {
    return text;
  } catch (int number) {
    return "an exception of type int: " + std::to_string(number);
  } catch (...) {
    const std::type_info* const type = abi::__cxa_current_exception_type();
    return type != nullptr ? "an exception of type " + demangled(type->name()) : "an exception of another language";
  }
}

std::string terminate_text(const std::exception_ptr& error) {
  if (error != nullptr) return failure_text(error);
  return "std::terminate() was called; it may be that a std::thread was destroyed before its join()";
}

std::optional<Unwinding> unwinding_now() {
  auto under_way = exception_under_way();
  if (under_way) under_way->what = failure_text(under_way->error);
  return under_way;
}

}  // namespace rehearse::exec
