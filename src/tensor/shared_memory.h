// Storages whose bytes other processes see too.
#pragma once

#include <rushlight/tensor.h>

namespace rushlight {

// Moves the bytes into memory that can be shared, unless they are there already; gives the file
// descriptor that stands for it, which the storage keeps and closes. Forked processes share it at
// once, others by open_shared with a copy of the descriptor. Not resizable from then on.
// Error(Runtime) for meta storages and where the system refuses.
RUSHLIGHT_API int share_memory(StorageImpl* storage);

// A storage over shared memory of `bytes`; the descriptor stays the caller's.
RUSHLIGHT_API StorageImpl* open_shared(int descriptor, size_t bytes);

RUSHLIGHT_API bool is_shared(const StorageImpl* storage);

}  // namespace rushlight
