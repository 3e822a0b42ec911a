// How the capture door writes calls down.
#pragma once

#include <atomic>
#include <mutex>
#include <thread>
#include <vector>

#include "graph/capture.h"
#include "graph/storage_map.h"

namespace rushlight::graph {

// The capture of one thread.
struct Session {
  Segment segment;
  StorageMap ids;
  uint32_t settings = 0;
  const std::function<std::string()>* locate = nullptr;  // of the settings
  // Inputs that the segment writes: pending until it has run, though they have their memory. (What
  // it makes is pending as long: a thread that reads must not see what comes in between.)
  std::vector<StorageImpl*> written;
  std::atomic<bool> running{false};       // a segment of it
  std::atomic<std::thread::id> runner{};  // the thread that runs it
  std::mutex mutex;                       // other threads may ask for a pending storage
};
// Never destroyed: who waits for a session may outlive its thread.
Session& this_session();
// The session at the address; null where none is there.
Session* session_at(const void* address);
std::unique_lock<std::mutex> lock_session(Session& session);

// Whoever reads the input's memory from now on waits for the session's segment. The session is
// locked.
void mark_written(Session& session, StorageImpl* input);
// Ends that, where a segment that runs on this thread has written it.
void publish_written(StorageImpl* input);

// Runs what is pending since this call cannot be captured.
void end_segment(const Invocation& inv);

// What marks a storage that a live segment will fill; its context is the session.
void release_pending(StorageImpl* storage);
// What marks a storage whose segment failed; its context is a Failure.
struct Failure {
  std::string text;
};
void release_failure(StorageImpl* storage);

// Whether the storage has memory, though its contents may not be there yet (`pending`).
bool has_memory(StorageImpl* storage);
// Its contents are there, if it has memory: other threads may read them.
void publish(StorageImpl* storage);
bool is_made_by(const Session& session, StorageImpl* storage);

// The value's number, entered if need be.
int enter_value(Session& session, const TensorImpl& tensor);

}  // namespace rushlight::graph
