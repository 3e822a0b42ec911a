// How the capture door writes calls down.
#pragma once

#include <mutex>

#include "graph/capture.h"
#include "graph/storage_map.h"

namespace rushlight::graph {

// The capture of one thread.
struct Session {
  Segment segment;
  StorageMap ids;
  uint32_t settings = 0;
  bool running = false;  // a segment of it
  std::mutex mutex;      // other threads may ask for a pending storage
};
Session& this_session();

// Runs what is pending since this call cannot be captured.
void end_segment(const Invocation& inv);

// What marks a storage that a live segment will fill; its context is the session.
void release_pending(StorageImpl* storage);

// The value's number, entered if need be.
int enter_value(Session& session, const TensorImpl& tensor);

}  // namespace rushlight::graph
