// Node: one step of the graph that backward walks, and the edges between steps.
//
// A node is counted; its edges keep alive the nodes that its gradients go to, so a graph lives as
// long as one of its results. Destruction of a graph of any depth does not recurse.
#pragma once

#include <rushlight/autograd.h>
#include <rushlight/tensor.h>

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace rushlight::autograd {

class Node;
struct AutogradMetaImpl;

class NodePtr {
 public:
  NodePtr() = default;
  explicit NodePtr(Node* owned) : node_(owned) {}  // takes over one reference
  static NodePtr share(Node* node);
  NodePtr(const NodePtr& other);
  NodePtr(NodePtr&& other) noexcept : node_(std::exchange(other.node_, nullptr)) {}
  NodePtr& operator=(const NodePtr& other) {
    NodePtr copy(other);
    std::swap(node_, copy.node_);
    return *this;
  }
  NodePtr& operator=(NodePtr&& other) noexcept {
    std::swap(node_, other.node_);
    return *this;
  }
  ~NodePtr();
  Node* get() const { return node_; }
  Node* release() { return std::exchange(node_, nullptr); }
  Node* operator->() const { return node_; }
  Node& operator*() const { return *node_; }
  explicit operator bool() const { return node_ != nullptr; }
  bool operator==(const NodePtr& other) const { return node_ == other.node_; }

 private:
  Node* node_ = nullptr;
};

// Where a gradient goes: input `input` of `node`. Without a node: nowhere.
struct Edge {
  NodePtr node;
  uint32_t input = 0;
  explicit operator bool() const { return static_cast<bool>(node); }
};

// What a gradient must look like to enter a node.
struct InputMetadata {
  IntArrayRef sizes;
  DType dtype = DType::Float32;
  Device device;
  bool any_dtype = false;  // `dtype` is not asked for
  bool fits(DType given) const { return any_dtype || given == dtype; }
};

template <typename F>
struct Hook {
  F function;
  std::shared_ptr<std::atomic<bool>> alive;
};

// Before the node runs: may replace its incoming gradients.
using PreHook = std::function<std::optional<TensorList>(const TensorList& gradients)>;
// After the node ran: may replace its outgoing gradients.
using PostHook = std::function<std::optional<TensorList>(const TensorList& outgoing,
                                                         const TensorList& incoming)>;

// What few nodes have.
struct NodeExtra {
  struct InputHook {
    uint32_t input;
    Hook<TensorHook> hook;
  };
  struct Retain {
    uint32_t input;
    AutogradMetaImpl* meta;
  };
  std::mutex mutex;
  std::vector<InputHook> input_hooks;
  std::vector<Retain> retains;  // tensors whose grad is to be kept
  std::vector<Hook<PreHook>> pre_hooks;
  std::vector<Hook<PostHook>> post_hooks;
  std::string forward_trace;  // anomaly mode: where the forward call was made
  NodePtr forward_parent;     // anomaly mode: the node whose backward made this one
  void* python = nullptr;     // the Python object of this node, not owned
};

// The number that this thread's next node gets.
uint64_t next_node_number();

class RUSHLIGHT_API Node {
 public:
  Node();
  virtual ~Node();
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // Maps the gradients of the results (undefined: zero) to those of the arguments, one an edge.
  virtual TensorList apply(TensorList&& gradients) = 0;
  virtual std::string name() const = 0;  // "MulBackward0"
  virtual uint32_t input_count() const = 0;
  virtual InputMetadata input(uint32_t i) const = 0;
  // Drops what only one backward needs.
  virtual void release_saved() {}

  uint32_t edge_count() const { return edge_count_; }
  const Edge& edge(uint32_t i) const { return edges_[i]; }
  // Later nodes of a thread have greater numbers; leaves have the greatest.
  uint64_t sequence() const { return sequence_; }
  // The settings of the capture that the call was made in, which its backward is captured with; 0:
  // none.
  uint32_t capture() const { return capture_; }

  NodeExtra* extra() const { return extra_.load(std::memory_order_acquire); }
  NodeExtra& require_extra();
  HookHandle add_input_hook(uint32_t input, TensorHook hook);
  HookHandle add_pre_hook(PreHook hook);
  HookHandle add_post_hook(PostHook hook);
  void retain_grad(uint32_t input, AutogradMetaImpl* meta);
  void forget_retained(AutogradMetaImpl* meta);

  // Bytes behind the object that belong to it.
  struct Tail {
    size_t bytes;
  };
  static void* operator new(size_t size, Tail tail);
  static void* operator new(size_t size) { return operator new(size, Tail{0}); }
  static void operator delete(void* object, Tail) noexcept { operator delete(object); }
  static void operator delete(void* object) noexcept;

 protected:
  Edge* edges_ = nullptr;
  uint32_t edge_count_ = 0;
  // A leaf's node lives inside the leaf: references to it are references to the leaf.
  TensorImpl* leaf_ = nullptr;
  uint64_t sequence_;
  uint32_t capture_ = 0;

 private:
  friend class NodePtr;
  void retain() {
    std::atomic<uint32_t>& count = leaf_ != nullptr ? leaf_->references : references_;
    count.fetch_add(1, std::memory_order_relaxed);
  }
  void release() {
    if (leaf_ != nullptr) {
      Tensor drop(leaf_);
    } else if (references_.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      destroy();
    }
  }
  void destroy();

  std::atomic<uint32_t> references_{1};
  std::atomic<NodeExtra*> extra_{nullptr};
  Node* next_dead_ = nullptr;
};

inline NodePtr NodePtr::share(Node* node) {
  if (node != nullptr) {
    node->retain();
  }
  return NodePtr(node);
}
inline NodePtr::NodePtr(const NodePtr& other) : node_(other.node_) {
  if (node_ != nullptr) {
    node_->retain();
  }
}
inline NodePtr::~NodePtr() {
  if (node_ != nullptr) {
    node_->release();
  }
}

// Installed by the Python binding: text of the Python stack, for anomaly mode.
extern RUSHLIGHT_API std::string (*forward_trace_text)();

}  // namespace rushlight::autograd
