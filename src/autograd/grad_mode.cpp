#include <rushlight/autograd.h>

#include "ops/invocation.h"

namespace rushlight {

bool GradMode::is_enabled() {
  return thread_state.grad_mode;
}

void GradMode::set_enabled(bool enabled) {
  thread_state.grad_mode = enabled;
}

namespace {

void set_inference(bool on) {
  thread_state.inference_mode = on;
  making_inference_tensors = on;
}

}  // namespace

InferenceMode::InferenceMode(bool enabled)
    : previous_mode_(thread_state.inference_mode), previous_grad_(thread_state.grad_mode) {
  set_inference(enabled);
  thread_state.grad_mode = !enabled;
}

InferenceMode::~InferenceMode() {
  set_inference(previous_mode_);
  thread_state.grad_mode = previous_grad_;
}

bool InferenceMode::is_enabled() {
  return thread_state.inference_mode;
}

namespace autograd {

namespace {
thread_local bool check_nan __attribute__((tls_model("initial-exec"))) = true;
}

bool anomaly_enabled() {
  return thread_state.anomaly_mode;
}

bool anomaly_checks_nan() {
  return check_nan;
}

void set_anomaly(bool enabled, bool nan) {
  thread_state.anomaly_mode = enabled;
  check_nan = nan;
}

}  // namespace autograd
}  // namespace rushlight
