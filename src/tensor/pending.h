// Storages whose memory comes later.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// Gives a pending storage the memory of `filled`, and takes the reference to it. It stays pending
// for other threads: whoever computes its contents says when they are there.
void fill_pending(StorageImpl* storage, StorageImpl* filled);

}  // namespace rushlight
