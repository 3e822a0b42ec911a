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
  // What autograd saved of the segment, unless all is kept. Of this thread alone.
  std::vector<Tensor> saved;
  double budget = kKeepAll;               // of the settings
  std::atomic<bool> running{false};       // a segment of it
  std::atomic<std::thread::id> runner{};  // the thread that runs it
  std::mutex mutex;                       // other threads may ask for a pending storage
};
// Never destroyed: who waits for a session may outlive its thread.
Session& this_session();
// A session for as long as it lives: of those that threads leave behind, or a new one.
class Lease {
 public:
  Lease();
  ~Lease();
  Lease(const Lease&) = delete;
  Lease& operator=(const Lease&) = delete;
  Session& session() const { return *session_; }

 private:
  Session* session_;
};
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
// For sessions that are no thread's own: they run operator by operator.
void prepare_session(Session& session);
// Runs what the session has captured; another thread may have been sooner.
void run_session(Session& session);
// Waits until all segments that are running now have run.
void wait_for_runners();

// What marks a storage that a live segment will fill; its context is the session.
void release_pending(StorageImpl* storage);
// What marks a storage whose segment failed; its context is a Failure.
struct Failure {
  std::string text;
};
void release_failure(StorageImpl* storage);
inline bool has_failed(StorageImpl* storage) {
  return std::atomic_ref(storage->release).load(std::memory_order_acquire) == release_failure;
}

// Whether the storage has memory, though its contents may not be there yet (`pending`).
bool has_memory(StorageImpl* storage);
// Its contents are there, if it has memory: other threads may read them.
void publish(StorageImpl* storage);
bool is_made_by(const Session& session, StorageImpl* storage);

// A storage that the session will fill.
StorageImpl* make_pending(Session& session, size_t bytes);
// The value's number, entered if need be.
int enter_value(Session& session, const TensorImpl& tensor);
// Appends the call; the session is locked.
void append(Session& session, const Invocation& inv);

}  // namespace rushlight::graph
