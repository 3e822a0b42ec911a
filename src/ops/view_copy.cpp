// What views show, as tensors of their own.
#include <rushlight/generated/functions.h>

#include "ops/operator.h"

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
  op("split_copy.Tensor(Tensor self, SymInt split_size, int dim=0) -> Tensor[]", kFunction)
      .doc("What split shows, as copies.")
      .composition([](const Tensor& self, int64_t size, int64_t dim) -> TensorList {
        return owned_each(split(self, size, dim));
      });
  op("split_with_sizes_copy(Tensor self, SymInt[] split_sizes, int dim=0) -> Tensor[]", kFunction)
      .doc("What split_with_sizes shows, as copies.")
      .composition([](const Tensor& self, IntArrayRef sizes, int64_t dim) -> TensorList {
        return owned_each(split_with_sizes(self, sizes, dim));
      });
}

}  // namespace rushlight
