// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse_internal/capture/fake_mode.h>

#include <iterator>
#include <utility>

#include <c10/core/DispatchKeySet.h>

#include <rehearse/exec/call_site.h>
#include <rehearse_internal/capture/errors.h>
#include <rehearse_internal/operators/storage_of.h>
#include <rehearse_internal/shapes/shape_env.h>

#include "capture/fake/collectives_of_fakes.h"
#include "capture/fake/fake_impl.h"
#include "capture/fake/fallback.h"

namespace rehearse::capture {
namespace {

// Only the recording of a joint graph (forward and backward) has a listener.
shapes::ShapeEnv::Maker maker_of(const FakeListener* listener) {
  return listener ? shapes::ShapeEnv::Maker::Backward : shapes::ShapeEnv::Maker::Capture;
}

NotCapturable refusal_of(const std::string& what, const std::string& cure) {
  return {what + " is called in a captured function", cure, exec::CallSite::capture()};
}

}  // namespace

FakeMode::FakeMode(std::shared_ptr<shapes::ShapeEnv> shapes, FakeListener* listener, bool is_traced)
    : shapes_(std::move(shapes)), listener_(listener), thread_(std::make_shared<CaptureThread>(is_traced)) {
  register_fake_fallback();
  register_collectives_of_fakes();
}

FakeMode* FakeMode::current() noexcept { return static_cast<FakeMode*>(CaptureMode::current()); }

bool FakeMode::is_in_operator() const noexcept { return thread_->in_operator(); }

void FakeMode::refuse(const std::string& what, const std::string& cure) const { throw refusal_of(what, cure); }

void FakeMode::end_or_refuse(const std::string& what, const std::string& cure) const {
  const NotCapturable refusal = refusal_of(what, cure);
  if (!ending_ || !ending_(refusal)) throw refusal;
}

FakeMode::Scope::Scope(FakeMode& mode) : mode_(mode), outer_(exchange(&mode)), include_(c10::DispatchKey::Fake) {
  mode_.thread_->begin();
}

FakeMode::Scope::~Scope() {
  mode_.thread_->end();
  exchange(outer_);
}

void FakeMode::own(const at::Tensor& fake) const {
  if (FakeImpl* const impl = fake_impl(fake)) impl->set_capture_thread(thread_);
}

void FakeMode::refuse_other_threads() const { thread_->refuse_others(); }

FakeMode::Off::Off() : mode_(exchange(nullptr)) {}
FakeMode::Off::~Off() { exchange(mode_); }

FakeMode::Pause::Pause()
    : exclude_(c10::DispatchKeySet(
          {c10::DispatchKey::Fake, c10::DispatchKey::DeferredInit, c10::DispatchKey::Functionalize})) {}

std::optional<c10::SymInt> FakeMode::take_unbacked() {
  if (unbacked_.empty()) return std::nullopt;
  c10::SymInt symbol = std::move(unbacked_.back());
  unbacked_.pop_back();
  return symbol;
}

c10::SymInt FakeMode::add_unbacked() {
  const auto known = take_unbacked();
  return known ? *known : shapes_->add_unbacked(maker_of(listener_));
}

c10::SymInt FakeMode::add_unbacked_number() {
  const auto known = take_unbacked();
  return known ? *known : shapes_->add_unbacked_number(maker_of(listener_));
}

void FakeMode::set_unbacked(std::vector<c10::SymInt> symbols) {
  unbacked_.assign(std::make_move_iterator(symbols.rbegin()), std::make_move_iterator(symbols.rend()));
}

at::Tensor FakeMode::fake_of(const at::Tensor& real) {
  if (!real.defined() || is_fake(real)) return real;
  if (listener_) return listener_->fake_of(real);
  const auto found = stands_.find(real.unsafeGetTensorImpl());
  if (found != stands_.end()) return found->second.fake;
  TensorSpec spec = spec_of(real);
  const c10::StorageImpl* const storage = operators::storage_of(real);
  at::Tensor& of_storage = storages_[storage];
  at::Tensor fake = make_fake(spec, storage ? of_storage : at::Tensor());
  if (!of_storage.defined()) of_storage = fake;
  stands_.emplace(real.unsafeGetTensorImpl(), Stand{real, fake});
  return fake;
}

}  // namespace rehearse::capture
