#include "graph/recipe.h"

#include <algorithm>
#include <mutex>
#include <thread>
#include <unordered_map>

#include "graph/execute.h"
#include "ops/operator.h"

namespace rushlight::graph {
namespace {

// One node: what it reads, and what it makes.
struct Recipe {
  const Operator* op = nullptr;
  std::vector<Value> arguments;
  struct Result {
    ValueInfo value;
    size_t bytes = 0;
    StorageImpl* storage = nullptr;  // null: kept elsewhere, or nobody wants it any more
  };
  std::vector<Result> results;
  std::vector<StorageImpl*> lent;  // of what it reads, those that have memory

  bool is_wanted() const {
    return std::any_of(results.begin(), results.end(),
                       [](const Result& result) { return result.storage != nullptr; });
  }
};

struct Loan {
  std::vector<Recipe*> recipes;
  bool ready = false;  // its contents are there
};

// Locked after a session, and for moments only.
struct Book {
  std::mutex mutex;
  std::unordered_map<StorageImpl*, Loan> loans;
  std::atomic<size_t> loan_count{0};
};

Book& book() {
  static auto* made = new Book;  // threads may outlive static objects
  return *made;
}

Recipe* recipe_of(StorageImpl* storage) {
  return static_cast<Recipe*>(std::atomic_ref(storage->context).load(std::memory_order_relaxed));
}

// The functions below are called with the book locked.

void lend(StorageImpl* storage, bool ready, Recipe* recipe) {
  auto [at, fresh] = book().loans.try_emplace(storage);
  if (fresh) {
    at->second.ready = ready;
    book().loan_count = book().loans.size();
    storage->pending.store(true, std::memory_order_release);
  }
  at->second.recipes.push_back(recipe);
  recipe->lent.push_back(storage);
}

void give_back(Recipe* recipe) {
  for (StorageImpl* storage : recipe->lent) {
    auto at = book().loans.find(storage);
    std::erase(at->second.recipes, recipe);
    if (at->second.recipes.empty()) {
      if (at->second.ready) {
        storage->pending.store(false, std::memory_order_release);
      }
      book().loans.erase(at);
      book().loan_count = book().loans.size();
    }
  }
  recipe->lent.clear();
}

// Takes a reference, unless the storage is being destroyed.
bool try_retain(StorageImpl* storage) {
  uint32_t count = storage->references.load(std::memory_order_relaxed);
  while (count != 0) {
    if (storage->references.compare_exchange_weak(count, count + 1, std::memory_order_acq_rel)) {
      return true;
    }
  }
  return false;
}

void set_context(StorageImpl* storage, void* context, void (*release)(StorageImpl*)) {
  std::atomic_ref(storage->context).store(context, std::memory_order_relaxed);
  std::atomic_ref(storage->release).store(release, std::memory_order_release);
}

// A recipe and those that it needs before, and what it needs of other sessions.
struct Needed {
  std::vector<Recipe*> recipes;  // in order
  TensorList foreign;

  void add(const Session& session, Recipe* recipe) {
    if (std::find(recipes.begin(), recipes.end(), recipe) != recipes.end()) {
      return;
    }
    for_each_tensor(recipe->arguments.data(), static_cast<int>(recipe->arguments.size()),
                    [&](const Tensor& tensor) {
                      StorageImpl* storage = tensor.storage();
                      if (!storage->pending.load(std::memory_order_acquire)) {
                        return;
                      }
                      if (has_recipe(storage)) {
                        add(session, recipe_of(storage));
                        return;
                      }
                      auto loan = book().loans.find(storage);
                      bool ready = loan != book().loans.end() && loan->second.ready;
                      if (!ready && !is_made_by(session, storage)) {
                        foreign.push_back(tensor);
                      }
                    });
    recipes.push_back(recipe);
  }
};

// Appends the recipe's node; the session is locked too.
void enter(Session& session, Recipe& recipe) {
  std::vector<Value> results;
  for (Recipe::Result& result : recipe.results) {
    StorageImpl* storage = result.storage;
    if (storage != nullptr && try_retain(storage)) {
      set_context(storage, &session, release_pending);
    } else {
      if (storage != nullptr) {
        // On its way to release_recipe, which finds nothing to do.
        std::atomic_ref(storage->context).store(nullptr, std::memory_order_relaxed);
      }
      storage = make_pending(session, result.bytes);
    }
    result.storage = nullptr;
    results.emplace_back(value_of(result.value, storage));
    release(storage);
  }
  Invocation inv{recipe.op,
                 Form::Functional,
                 static_cast<uint8_t>(recipe.arguments.size()),
                 static_cast<uint8_t>(results.size()),
                 recipe.arguments.data(),
                 results.data()};
  append(session, inv);
  give_back(&recipe);
}

// A storage that somebody still wants of a recipe that reads `lent`, with a reference; null where
// there is none. `lent` is left alone where it is not lent.
StorageImpl* dependent_of(const Loan& loan) {
  for (const Recipe* recipe : loan.recipes) {
    for (const Recipe::Result& result : recipe->results) {
      if (result.storage != nullptr && try_retain(result.storage)) {
        return result.storage;
      }
    }
  }
  return nullptr;
}

}  // namespace

void keep_recipes(Segment& segment, const std::vector<Remade>& remade) {
  if (remade.empty()) {
    return;
  }
  const Graph& graph = segment.graph;
  std::vector<bool> leaves(graph.storages.size());
  for (const Remade& item : remade) {
    leaves[static_cast<size_t>(item.storage)] = true;
  }
  std::vector<StorageImpl*> originals;
  {
    std::lock_guard<std::mutex> lock(book().mutex);
    int last = -1;
    for (const Remade& item : remade) {
      if (item.node == last) {
        continue;
      }
      last = item.node;
      const Node& node = graph.nodes[static_cast<size_t>(item.node)];
      auto* recipe = new Recipe;
      recipe->op = node.op;
      recipe->arguments =
          arguments_of(graph, node, [&](int value) { return tensor_of(segment, value); });
      for_each_operand(graph, node, [&](int value) {
        int storage = graph.value(value).storage;
        StorageImpl* read = segment.storages[static_cast<size_t>(storage)];
        if (!leaves[static_cast<size_t>(storage)] &&
            std::find(recipe->lent.begin(), recipe->lent.end(), read) == recipe->lent.end()) {
          lend(read, graph.storages[static_cast<size_t>(storage)].input, recipe);
        }
      });
      for_each_result(graph, node, [&](int value) {
        Recipe::Result result{graph.value(value), 0, nullptr};
        auto storage = static_cast<size_t>(result.value.storage);
        result.bytes = graph.storages[storage].bytes;
        if (leaves[storage]) {
          result.storage = segment.storages[storage];
          originals.push_back(result.storage);
        }
        recipe->results.push_back(std::move(result));
      });
      for (const Recipe::Result& result : recipe->results) {
        if (result.storage != nullptr) {
          set_context(result.storage, recipe, release_recipe);
        }
      }
    }
  }
  for (size_t i = 0; i < leaves.size(); ++i) {
    if (leaves[i]) {
      segment.storages[i] = make_pending(this_session(), segment.storages[i]->bytes);
    }
  }
  for (StorageImpl* original : originals) {
    release(original);
  }
}

bool is_lendable(StorageImpl* input) {
  if (!input->resizable || !has_memory(input)) {
    return false;  // memory that is somebody else's too
  }
  if (!input->pending.load(std::memory_order_acquire)) {
    return true;
  }
  std::lock_guard<std::mutex> lock(book().mutex);
  auto loan = book().loans.find(input);
  return loan != book().loans.end() && loan->second.ready;
}

void release_recipe(StorageImpl* storage) {
  std::unique_ptr<Recipe> unused;  // dropped without the lock: that may free other recipes
  std::lock_guard<std::mutex> lock(book().mutex);
  Recipe* recipe = recipe_of(storage);
  if (recipe == nullptr) {
    return;  // used meanwhile
  }
  for (Recipe::Result& result : recipe->results) {
    result.storage = result.storage == storage ? nullptr : result.storage;
  }
  if (!recipe->is_wanted()) {
    give_back(recipe);
    unused.reset(recipe);
  }
}

void enter_recipe(Session& session, StorageImpl* storage) {
  while (true) {
    std::vector<std::unique_ptr<Recipe>> used;  // dropped without the locks
    Needed needed;
    {
      std::unique_lock<std::mutex> session_lock = lock_session(session);
      std::lock_guard<std::mutex> lock(book().mutex);
      if (!has_recipe(storage)) {
        return;
      }
      needed.add(session, recipe_of(storage));
      for (Recipe* recipe : needed.recipes) {
        if (!needed.foreign.empty()) {
          break;
        }
        enter(session, *recipe);
        used.emplace_back(recipe);
      }
    }
    for (const Tensor& tensor : needed.foreign) {
      storage_data(tensor.storage());
    }
  }
}

void make_again(StorageImpl* storage) {
  Lease lease;
  prepare_session(lease.session());
  enter_recipe(lease.session(), storage);
  run_session(lease.session());
}

bool is_lent(StorageImpl* storage) {
  while (book().loan_count.load(std::memory_order_acquire) != 0) {
    {
      std::lock_guard<std::mutex> lock(book().mutex);
      auto loan = book().loans.find(storage);
      if (loan == book().loans.end() || has_failed(storage)) {
        return false;
      }
      if (loan->second.ready) {
        return true;
      }
    }
    wait_for_runners();
  }
  return false;
}

void settle(StorageImpl* lent) {
  while (is_lent(lent)) {
    StorageImpl* wanted = nullptr;
    {
      std::lock_guard<std::mutex> lock(book().mutex);
      auto loan = book().loans.find(lent);
      wanted = loan == book().loans.end() ? nullptr : dependent_of(loan->second);
    }
    if (wanted == nullptr) {
      std::this_thread::yield();  // the last ones are being destroyed
      continue;
    }
    try {
      make_again(wanted);
    } catch (...) {
      release(wanted);
      throw;
    }
    release(wanted);
  }
}

bool publish_lent(StorageImpl* storage) {
  if (book().loan_count.load(std::memory_order_acquire) == 0) {
    return false;
  }
  std::lock_guard<std::mutex> lock(book().mutex);
  auto loan = book().loans.find(storage);
  if (loan == book().loans.end()) {
    return false;
  }
  loan->second.ready = true;
  return true;
}

}  // namespace rushlight::graph
