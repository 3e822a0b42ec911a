#include <rushlight/compile.h>

#include <exception>

#include "compile/compile.h"
#include "graph/capture.h"

namespace rushlight {
namespace {

uint32_t default_settings() {
  static const uint32_t number = [] {
    graph::Settings settings;
    settings.runner = compiler::run;
    settings.name = "native";
    return graph::register_settings(std::move(settings));
  }();
  return number;
}

}  // namespace

Capture::Capture() : open_(graph::open_capture(default_settings())) {}

Capture::~Capture() {
  if (open_) {
    graph::close_capture(true);
  }
}

void Capture::close() {
  if (open_) {
    open_ = false;
    graph::close_capture(false);
  }
}

}  // namespace rushlight
