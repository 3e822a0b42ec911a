// Recipes: results that are made again when somebody wants them, instead of kept.
//
// A storage with a recipe is pending. Capture enters its recipe into the segment that reads it, so
// that it is fused with what it is read by; anybody else who reads it has it computed on the spot.
//
// What a recipe reads must stay as it is until then. It is *lent* to the recipe: pending as well,
// though it has its memory, so that whoever is about to touch it, perhaps to write, comes here
// first and has the recipe's results made. Capture tells reads from writes and lets reads pass.
#pragma once

#include <vector>

#include "graph/record.h"

namespace rushlight::graph {

// A storage that the segment is not to keep, and the one node that writes it.
struct Remade {
  int node;
  int storage;
};

// Before the segment runs: gives these storages recipes. In the segment, storages that nobody else
// sees take their places. Nodes must be pure and functional; what they read must be `lendable`, or
// be made by one node and kept or remade. Nodes are given in order.
void keep_recipes(Segment& segment, const std::vector<Remade>& remade);

// Whether recipes may read an input of a segment.
bool is_lendable(StorageImpl* input);

// What marks a storage that has a recipe; its context is the recipe.
void release_recipe(StorageImpl* storage);
inline bool has_recipe(StorageImpl* storage) {
  return std::atomic_ref(storage->release).load(std::memory_order_acquire) == release_recipe;
}

// Appends to the session's segment what makes the storage, unless somebody else was sooner. The
// session is not locked.
void enter_recipe(Session& session, StorageImpl* storage);
// Computes the storage now.
void make_again(StorageImpl* storage);

// Whether the storage is lent; waits until its contents are there.
bool is_lent(StorageImpl* storage);
// Ends that: makes what reads it.
void settle(StorageImpl* lent);
// The contents of a storage are there: whether it stays pending, because it is lent.
bool publish_lent(StorageImpl* storage);

}  // namespace rushlight::graph
