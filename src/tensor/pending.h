// Storages whose memory comes later.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// Ends the pending of a storage: it takes the memory of `filled`, and the reference to it.
void fill_pending(StorageImpl* storage, StorageImpl* filled);

}  // namespace rushlight
