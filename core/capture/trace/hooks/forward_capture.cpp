// SPDX-License-Identifier: BSD-3-Clause
#include <rehearse/capture/forward_capture.h>

#include <utility>

#include <rehearse_internal/capture/errors.h>

#include "capture/trace/hooks/process_hooks.h"
#include "capture/trace/hooks/tensor_overrides.h"
#include "capture/trace/tracer.h"

namespace rehearse::capture {

ForwardCapture::ForwardCapture(std::shared_ptr<shapes::ShapeEnv> shapes, std::vector<NamedTensor> of_module)
    : tracer_(std::make_unique<Tracer>(std::move(shapes), std::move(of_module))) {
  register_trace_kernels();
  watch_variable_hooks();
  watch_refusals();
  watch_script_calls();
}

ForwardCapture::~ForwardCapture() = default;

at::Tensor ForwardCapture::add_tensor(std::string source, const at::Tensor& real, std::vector<c10::SymInt> sizes) {
  at::Tensor fake = tracer_->recording().inputs.add_tensor(tracer_->recording().mode, source, real, std::move(sizes));
  refuse_gradient_of(fake, std::move(source));
  return fake;
}

c10::SymInt ForwardCapture::add_int(std::string source, c10::SymInt value) {
  return tracer_->recording().inputs.add_int(std::move(source), std::move(value));
}

void ForwardCapture::run(const std::function<void()>& user_code) { tracer_->run(user_code); }

CapturedGraph ForwardCapture::finish(const std::vector<c10::IValue>& outputs) { return tracer_->finish(outputs); }

void ForwardCapture::set_listener(SegmentListener& listener) { tracer_->segments().set_listener(&listener); }
bool ForwardCapture::end(const std::function<SegmentAnswer(SegmentEnd)>& run) { return tracer_->end(run); }
const exec::CallSite* ForwardCapture::find_kept(const std::vector<c10::IValue>& outputs) const {
  return tracer_->find_kept(outputs);
}
LeftFakes ForwardCapture::left(bool has_failed, const std::function<c10::IValue(std::size_t)>& find_value) {
  return tracer_->left(has_failed, find_value);
}
bool ForwardCapture::ended() const noexcept { return tracer_->rest() != nullptr; }
const std::vector<RegionState>& ForwardCapture::regions() const noexcept { return tracer_->segments().states(); }
const std::string& ForwardCapture::refusal() const noexcept { return tracer_->segments().ended_by(); }
c10::IValue ForwardCapture::real_value(const c10::IValue& value) const { return tracer_->rest()->real_value(value); }

c10::SymInt sym_item(const at::Tensor& tensor) {
  Tracer* const tracer = Tracer::current();
  if (tracer && !tracer->rest()) return tracer->read_symbolically(tensor);
  return tensor.item().toSymInt();
}

std::vector<c10::SymInt> sym_tolist(const at::Tensor& tensor) {
  TORCH_CHECK_VALUE(tensor.dim() == 1, "sym_tolist() takes a tensor of one dimension, and was given one of ",
                    tensor.dim());
  std::vector<c10::SymInt> values;
  for (std::int64_t i = 0; i < tensor.size(0); ++i) values.push_back(sym_item(tensor.select(0, i)));
  return values;
}

std::shared_ptr<RegionResult> run_region(const std::shared_ptr<const EagerRegion>& region,
                                         std::vector<at::Tensor> tensors) {
  Tracer* const tracer = Tracer::current();
  if (tracer == nullptr) return region->run(std::move(tensors));
  try {
    return tracer->segments().run_region(region, tensors);
  } catch (const NotCapturable& refusal) {
    if (tracer->rest() || !tracer->go_on_after(refusal)) throw;
  }
  return tracer->segments().run_region(region, tensors);
}

}  // namespace rehearse::capture
