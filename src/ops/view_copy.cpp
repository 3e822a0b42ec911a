// What views show, as tensors of their own.
#include <rushlight/generated/functions.h>

#include "kernels/copy.h"
#include "ops/elementwise.h"
#include "ops/operator.h"
#include "tensor/geometry.h"

namespace rushlight {
namespace {

Tensor owned(const Tensor& view) {
  return clone(view, MemoryFormat::Contiguous);
}

TensorList owned_each(TensorList views) {
  for (Tensor& view : views) {
    view = owned(view);
  }
  return views;
}

void refuse_gradients(std::string_view op, const Tensor& self, const TensorList& out) {
  bool wanted = self.requires_grad();
  for (const Tensor& target : out) {
    wanted = wanted || target.requires_grad();
  }
  if (wanted && thread_state.grad_mode) {
    fail(ErrorKind::Runtime, "", op,
         "(): functions with out=... arguments don't support automatic differentiation, but one of "
         "the arguments requires grad.");
  }
}

// Copies each view into the tensor given for it, which takes the view's shape.
void copy_each(const Operator& op, const Tensor& self, const TensorList& views,
               const TensorList& out) {
  // Splitting may write to leaves that require grad: what is written has no history.
  refuse_gradients(op.name(), self, op.name() == "unbind_copy" ? out : TensorList());
  DoorGuard unrecorded(0, kAutogradDoor);
  if (out.size() != views.size()) {
    fail(ErrorKind::Runtime, "", op.name(), "() expected an out= argument of size ", views.size(),
         ", got size ", out.size());
  }
  for (size_t i = 0; i < out.size(); ++i) {
    if (out[i].dtype() != self.dtype()) {
      fail(ErrorKind::Runtime, op.name(), "Expected out tensor to have dtype ", self.dtype(),
           ", but got ", out[i].dtype(), " instead");
    }
  }
  for (size_t i = 0; i < out.size(); ++i) {
    check_output(op, Form::Out, out[i], views[i].sizes(), self.dtype(), self.device());
    check_no_internal_overlap(out[i], op.name());
    copy_(out[i], views[i]);
  }
}

}  // namespace

RUSHLIGHT_OPERATORS(view_copy) {
  op("alias_copy(Tensor self) -> Tensor", kFunction | kOut)
      .doc("A copy.")
      .composition([](const Tensor& self) -> Tensor { return clone(self); });
  op("detach_copy(Tensor self) -> Tensor", kFunction | kOut)
      .doc("A copy outside the graph.")
      .composition([](const Tensor& self) -> Tensor { return owned(detach(self)); });
  op("as_strided_copy(Tensor self, SymInt[] size, SymInt[] stride, SymInt? storage_offset=None) "
     "-> Tensor",
     kFunction | kOut)
      .doc("What as_strided shows, as a copy.")
      .composition([](const Tensor& self, IntArrayRef size, IntArrayRef stride,
                      std::optional<int64_t> offset) -> Tensor {
        return owned(as_strided(self, size, stride, offset));
      });
  op("diagonal_copy(Tensor self, int offset=0, int dim1=0, int dim2=1) -> Tensor", kFunction | kOut)
      .doc("What diagonal shows, as a copy.")
      .composition([](const Tensor& self, int64_t offset, int64_t dim1, int64_t dim2) -> Tensor {
        return owned(diagonal(self, offset, dim1, dim2));
      });
  op("expand_copy(Tensor self, SymInt[] size, *, bool implicit=False) -> Tensor", kFunction | kOut)
      .doc("What expand shows, as a copy.")
      .composition([](const Tensor& self, IntArrayRef size, bool) -> Tensor {
        return owned(expand(self, size));
      });
  op("permute_copy(Tensor self, int[] dims) -> Tensor", kFunction | kOut)
      .doc("What permute shows, as a copy.")
      .composition([](const Tensor& self, IntArrayRef dims) -> Tensor {
        return owned(permute(self, dims));
      });
  op("select_copy.int(Tensor self, int dim, SymInt index) -> Tensor", kFunction | kOut)
      .doc("What select shows, as a copy.")
      .composition([](const Tensor& self, int64_t dim, int64_t index) -> Tensor {
        return owned(select(self, dim, index));
      });
  op("slice_copy.Tensor(Tensor self, int dim=0, SymInt? start=None, SymInt? end=None, "
     "SymInt step=1) -> Tensor",
     kFunction | kOut)
      .doc("What a slice shows, as a copy.")
      .composition([](const Tensor& self, int64_t dim, std::optional<int64_t> start,
                      std::optional<int64_t> end, int64_t step) -> Tensor {
        return owned(slice(self, dim, start, end, step));
      });
  op("squeeze_copy(Tensor self) -> Tensor", kFunction | kOut)
      .doc("What squeeze shows, as a copy.")
      .composition([](const Tensor& self) -> Tensor { return owned(squeeze(self)); });
  op("squeeze_copy.dim(Tensor self, int dim) -> Tensor", kFunction | kOut)
      .doc("What squeeze shows, as a copy.")
      .composition(
          [](const Tensor& self, int64_t dim) -> Tensor { return owned(squeeze(self, dim)); });
  op("squeeze_copy.dims(Tensor self, int[] dim) -> Tensor", kFunction | kOut)
      .doc("What squeeze shows, as a copy.")
      .composition(
          [](const Tensor& self, IntArrayRef dim) -> Tensor { return owned(squeeze(self, dim)); });
  op("t_copy(Tensor self) -> Tensor", kFunction | kOut)
      .doc("What t shows, as a copy.")
      .composition([](const Tensor& self) -> Tensor { return owned(t(self)); });
  op("transpose_copy.int(Tensor self, int dim0, int dim1) -> Tensor", kFunction | kOut)
      .doc("What transpose shows, as a copy.")
      .composition([](const Tensor& self, int64_t dim0, int64_t dim1) -> Tensor {
        return owned(transpose(self, dim0, dim1));
      });
  op("unsqueeze_copy(Tensor self, int dim) -> Tensor", kFunction | kOut)
      .doc("What unsqueeze shows, as a copy.")
      .composition(
          [](const Tensor& self, int64_t dim) -> Tensor { return owned(unsqueeze(self, dim)); });
  op("view_copy(Tensor self, SymInt[] size) -> Tensor", kFunction | kOut)
      .doc("What view shows, as a copy.")
      .composition([](const Tensor& self, IntArrayRef size) -> Tensor {
        return owned(reshape(self, size));
      });
  op("view_copy.dtype(Tensor self, ScalarType dtype) -> Tensor", kFunction | kOut)
      .doc("What view shows, as a copy.")
      .composition(
          [](const Tensor& self, DType dtype) -> Tensor { return owned(view(self, dtype)); });
  op("unbind_copy.int(Tensor self, int dim=0) -> Tensor[]", kFunction)
      .doc("What unbind shows, as copies.")
      .composition([](const Tensor& self, int64_t dim) -> TensorList {
        return owned_each(unbind(self, dim));
      });
  op("unbind_copy.int_out(Tensor self, int dim=0, *, Tensor(a!)[] out) -> ()", kFunction)
      .doc("What unbind shows, copied into given tensors.")
      .composition([](const Tensor& self, int64_t dim, const TensorList& out) {
        copy_each(find_operator("unbind_copy.int_out"), self, unbind(self, dim), out);
      });
  op("split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", kFunction)
      .doc("What split shows, as copies.")
      .composition([](const Tensor& self, int64_t size, int64_t dim) -> TensorList {
        return owned_each(split(self, size, dim));
      });
  op("split_copy.Tensor_out(Tensor self, SymInt split_size, int dim=0, *, Tensor(a!)[] out) -> ()",
     kFunction)
      .doc("What split shows, copied into given tensors.")
      .composition([](const Tensor& self, int64_t size, int64_t dim, const TensorList& out) {
        copy_each(find_operator("split_copy.Tensor_out"), self, split(self, size, dim), out);
      });
  op("split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", kFunction)
      .doc("What split_with_sizes shows, as copies.")
      .composition([](const Tensor& self, IntArrayRef sizes, int64_t dim) -> TensorList {
        return owned_each(split_with_sizes(self, sizes, dim));
      });
  op("split_with_sizes_copy.out(Tensor self, SymInt[] split_sizes, int dim=0, *, "
     "Tensor(a!)[] out) -> ()",
     kFunction)
      .doc("What split_with_sizes shows, copied into given tensors.")
      .composition([](const Tensor& self, IntArrayRef sizes, int64_t dim, const TensorList& out) {
        copy_each(find_operator("split_with_sizes_copy.out"), self,
                  split_with_sizes(self, sizes, dim), out);
      });
}

}  // namespace rushlight
