// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/operators/own_operator.h>

#include <mutex>
#include <utility>

namespace rehearse::operators {

c10::OperatorHandle register_operator(const std::string& name, const std::string& signature, torch::CppFunction kernel,
                                      Derivative derivative) {
  static std::mutex mutex;
  static auto* const library =
      new torch::Library(torch::Library::FRAGMENT, "rehearse", std::nullopt, __FILE__, __LINE__);
  const std::lock_guard lock(mutex);
  library->def((name + signature).c_str());
  if (derivative == Derivative::none) {
    library->impl(name.c_str(), c10::DispatchKey::CompositeExplicitAutograd, std::move(kernel));
    library->impl(name.c_str(), c10::DispatchKey::Autograd, torch::CppFunction::makeFallthrough());
  } else {
    library->impl(name.c_str(), c10::DispatchKey::CompositeImplicitAutograd, std::move(kernel));
  }
  return c10::Dispatcher::singleton().findSchemaOrThrow(("rehearse::" + name).c_str(), "");
}

}  // namespace rehearse::operators
