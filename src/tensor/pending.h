// Storages whose memory comes later, and work that is yet to be done.
#pragma once

#include <rushlight/tensor.h>

#include <string_view>

namespace rushlight {

// Gives a pending storage the memory of `filled`, and takes the reference to it. It stays pending
// for other threads: whoever computes its contents says when they are there.
void fill_pending(StorageImpl* storage, StorageImpl* filled);

// How far tensors over the storage may reach: more than its bytes where it was made smaller.
size_t reach_of(const StorageImpl* storage);

// Whoever changes, or looks at, what operators go by when they run (random streams, the default
// dtype, the precision of products) calls this first: what this thread has captured runs as it was
// meant. `what` says whose state it is, for reports.
void settle_captured(std::string_view what);
// Installed by the graph (src/graph); null: nothing is ever captured.
extern void (*run_captured)(std::string_view what);

}  // namespace rushlight
