#include "autograd/node.h"

#include <rushlight/memory.h>

#include <algorithm>
#include <iterator>

#include "autograd/engine.h"
#include "autograd/meta.h"
#include "ops/invocation.h"

namespace rushlight::autograd {

std::string (*forward_trace_text)() = nullptr;

namespace {

thread_local uint64_t next_sequence __attribute__((tls_model("initial-exec"))) = 0;

// Nodes of this thread that wait to be deleted, while one is. Plain pointers, so that they may be
// used while thread-local objects are destroyed.
thread_local Node* dead_nodes __attribute__((tls_model("initial-exec"))) = nullptr;
thread_local bool deleting __attribute__((tls_model("initial-exec"))) = false;

// Blocks start with their size: some nodes are longer than their type says.
constexpr size_t kHeader = 16;

const std::atomic<bool>& alive_of(const NodeExtra::InputHook& entry) {
  return *entry.hook.alive;
}
template <typename F>
const std::atomic<bool>& alive_of(const Hook<F>& hook) {
  return *hook.alive;
}

// Appends a hook and drops removed ones. These are destroyed without the lock: their destructors
// may wait for Python's.
template <typename Entry>
void append(std::mutex& mutex, std::vector<Entry>& entries, Entry entry) {
  std::vector<Entry> dead;
  std::lock_guard lock(mutex);
  auto first_dead = std::stable_partition(entries.begin(), entries.end(),
                                          [](const Entry& e) { return alive_of(e).load(); });
  std::move(first_dead, entries.end(), std::back_inserter(dead));
  entries.erase(first_dead, entries.end());
  entries.push_back(std::move(entry));
}

std::shared_ptr<std::atomic<bool>> make_alive() {
  return std::make_shared<std::atomic<bool>>(true);
}

}  // namespace

uint64_t next_node_number() {
  return next_sequence;
}

Node::Node() : sequence_(next_sequence++) {
  if (thread_state.anomaly_mode) {
    NodeExtra& extra = require_extra();
    if (forward_trace_text != nullptr) {
      extra.forward_trace = forward_trace_text();
    }
    extra.forward_parent = NodePtr::share(running_node());
  }
}

Node::~Node() {
  delete extra_.load(std::memory_order_relaxed);
}

void Node::destroy() {
  next_dead_ = dead_nodes;
  dead_nodes = this;
  if (deleting) {
    return;
  }
  deleting = true;
  while (dead_nodes != nullptr) {
    Node* node = dead_nodes;
    dead_nodes = node->next_dead_;
    delete node;
  }
  deleting = false;
}

void* Node::operator new(size_t size, Tail tail) {
  size_t whole = kHeader + size + tail.bytes;
  char* block = static_cast<char*>(memory::allocate(whole));
  *reinterpret_cast<size_t*>(block) = whole;
  return block + kHeader;
}

void Node::operator delete(void* object) noexcept {
  char* block = static_cast<char*>(object) - kHeader;
  memory::release(block, *reinterpret_cast<size_t*>(block));
}

NodeExtra& Node::require_extra() {
  NodeExtra* found = extra();
  if (found != nullptr) {
    return *found;
  }
  auto made = std::make_unique<NodeExtra>();
  if (extra_.compare_exchange_strong(found, made.get(), std::memory_order_acq_rel)) {
    return *made.release();
  }
  return *found;
}

HookHandle Node::add_input_hook(uint32_t input, TensorHook hook) {
  NodeExtra& extra = require_extra();
  auto alive = make_alive();
  append(extra.mutex, extra.input_hooks, {input, {std::move(hook), alive}});
  return HookHandle(alive);
}

HookHandle Node::add_pre_hook(PreHook hook) {
  NodeExtra& extra = require_extra();
  auto alive = make_alive();
  append(extra.mutex, extra.pre_hooks, {std::move(hook), alive});
  return HookHandle(alive);
}

HookHandle Node::add_post_hook(PostHook hook) {
  NodeExtra& extra = require_extra();
  auto alive = make_alive();
  append(extra.mutex, extra.post_hooks, {std::move(hook), alive});
  return HookHandle(alive);
}

void Node::retain_grad(uint32_t input, AutogradMetaImpl* meta) {
  NodeExtra& extra = require_extra();
  std::lock_guard lock(extra.mutex);
  extra.retains.push_back({input, meta});
}

void Node::forget_retained(AutogradMetaImpl* meta) {
  if (NodeExtra* found = extra()) {
    std::lock_guard lock(found->mutex);
    std::erase_if(found->retains, [meta](const auto& entry) { return entry.meta == meta; });
  }
}

}  // namespace rushlight::autograd
