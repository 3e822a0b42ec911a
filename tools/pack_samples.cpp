#include "pack_samples.h"

#include <rushlight/autograd.h>
#include <rushlight/error.h>
#include <rushlight/tensor.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <string>

#include "ops/operator.h"
#include "runtime/kernel_cache.h"

namespace rushlight {
namespace {

// How the tensors of a call lie in memory. First: the first one, others are contiguous squares.
enum class Shapes : uint8_t {
  Square,
  Line,
  Cube,
  RowSecond,
  ColumnSecond,
  NumberSecond,
  Transposed
};

struct Sample {
  DType dtype;
  Shapes shapes;
  int64_t dim;                   // for arguments that name dimensions
  bool optionals;                // whether optional tensors are given
  DType other = DType::Float32;  // for arguments that are dtypes
};

Tensor zeros(IntArrayRef sizes, DType dtype) {
  Tensor tensor = make_tensor(sizes, dtype);
  std::memset(tensor.data(), 0, static_cast<size_t>(tensor.numel() * tensor.element_size()));
  return tensor;
}

Tensor sample_tensor(const Sample& sample, DType dtype, int position) {
  bool second = position > 0;
  switch (sample.shapes) {
    case Shapes::Square:
      break;
    case Shapes::Line:
      return zeros({4}, dtype);
    case Shapes::Cube:
      return zeros({4, 4, 4}, dtype);
    case Shapes::RowSecond:
      return second ? zeros({4}, dtype) : zeros({4, 4}, dtype);
    case Shapes::ColumnSecond:
      return second ? zeros({4, 1}, dtype) : zeros({4, 4}, dtype);
    case Shapes::NumberSecond:
      return second ? zeros({}, dtype) : zeros({4, 4}, dtype);
    case Shapes::Transposed:
      if (!second) {
        Tensor tensor = make_strided({4, 4}, {1, 4}, dtype);
        std::memset(tensor.data(), 0, static_cast<size_t>(16 * tensor.element_size()));
        return tensor;
      }
      break;
  }
  return zeros({4, 4}, dtype);
}

bool holds_indices(const std::string& name) {
  return name.find("ind") != std::string::npos || name == "target";
}

Value sample_value(const Argument& argument, const Sample& sample, int position) {
  if (argument.type == SchemaType::Tensor) {
    if (argument.optional && !sample.optionals) {
      return Value();
    }
    DType dtype = holds_indices(argument.name) ? DType::Int64 : sample.dtype;
    dtype = argument.name.find("mask") != std::string::npos ? DType::Bool : dtype;
    if (argument.list) {
      return Value(TensorList{sample_tensor(sample, dtype, 0), sample_tensor(sample, dtype, 0)});
    }
    // Weights and biases of normalisations are lines.
    return argument.optional ? Value(zeros({4}, dtype))
                             : Value(sample_tensor(sample, dtype, position));
  }
  if (argument.type == SchemaType::DType && sample.shapes == Shapes::Square) {
    return Value(sample.other);
  }
  if (argument.name == "dim" && argument.type == SchemaType::Int) {
    return argument.list ? Value(IntList{sample.dim}) : Value(sample.dim);
  }
  if (argument.has_default) {
    return argument.default_value;
  }
  if (argument.optional) {
    return Value();
  }
  switch (argument.type) {
    case SchemaType::Int:
      return argument.list ? Value(IntList{4}) : Value(int64_t{1});
    case SchemaType::Scalar:
      return is_floating(sample.dtype) ? Value(0.5) : Value(int64_t{2});
    case SchemaType::Float:
      return Value(0.5);
    case SchemaType::Bool:
      return Value(false);
    default:
      return Value();
  }
}

void run_backward(const Value* results, int count) {
  TensorList outputs;
  TensorList gradients;
  for (int i = 0; i < count; ++i) {
    if (results[i].is_tensor() && results[i].tensor().requires_grad()) {
      const Tensor& output = results[i].tensor();
      outputs.push_back(output);
      gradients.push_back(zeros(output.sizes(), output.dtype()));
    }
  }
  if (!outputs.empty()) {
    autograd::backward(outputs, gradients);
  }
}

// Most samples fit only some operators; a call that is refused asks for no kernel.
void try_call(const Operator& op, const Sample& sample, bool backward) {
  try {
    std::vector<Value> arguments;
    int position = 0;
    for (const Argument& argument : op.schema.arguments) {
      Value value = sample_value(argument, sample, position);
      if (argument.type == SchemaType::Tensor) {
        ++position;
      }
      if (backward && value.is_tensor() && is_floating(value.tensor().dtype())) {
        value.tensor().requires_grad_();
      }
      arguments.push_back(std::move(value));
    }
    std::vector<Value> results(std::max<size_t>(op.schema.results.size(), 1));
    Invocation inv{&op,
                   Form::Functional,
                   static_cast<uint8_t>(arguments.size()),
                   static_cast<uint8_t>(op.schema.results.size()),
                   arguments.data(),
                   results.data()};
    invoke(inv);
    if (backward) {
      run_backward(results.data(), static_cast<int>(op.schema.results.size()));
    }
  } catch (const std::exception&) {
    // Not an input for this operator.
  }
}

std::vector<Sample> samples() {
  std::vector<Sample> all;
  auto add = [&](DType dtype, std::initializer_list<Shapes> shapes) {
    for (Shapes shape : shapes) {
      for (int64_t dim : {1, 0}) {
        all.push_back({dtype, shape, dim, false, dtype});
        all.push_back({dtype, shape, dim, true, dtype});
      }
    }
  };
  add(DType::Float32, {Shapes::Square, Shapes::Line, Shapes::Cube, Shapes::RowSecond,
                       Shapes::ColumnSecond, Shapes::NumberSecond, Shapes::Transposed});
  add(DType::BFloat16, {Shapes::Square, Shapes::RowSecond, Shapes::NumberSecond});
  // What programs use less is left to the code generator and the disk, for the sake of the size.
  add(DType::Float64, {Shapes::Square, Shapes::NumberSecond});
  add(DType::Int64, {Shapes::Square, Shapes::NumberSecond});
  for (DType dtype : {DType::Float16, DType::Int32, DType::Bool, DType::UInt8}) {
    add(dtype, {Shapes::Square});
  }
  for (DType from : {DType::Float32, DType::BFloat16, DType::Float16, DType::Float64, DType::Int64,
                     DType::Int32, DType::Bool, DType::UInt8}) {
    for (DType to : {DType::Float32, DType::BFloat16, DType::Float16, DType::Float64, DType::Int64,
                     DType::Bool}) {
      all.push_back({from, Shapes::Square, 1, false, to});
    }
  }
  return all;
}

}  // namespace

std::vector<loop::Kernel> sample_kernels() {
  std::vector<loop::Kernel> kernels;
  setenv("RUSHLIGHT_INTERPRET", "1", 1);
  record_kernels(&kernels);
  set_warning_handler([](const std::string&) {});
  for (const auto& op : Table::instance().operators()) {
    // Internal ones trust their arguments; they are reached through the others.
    if ((op->variants & kInternal) != 0) {
      continue;
    }
    for (const Sample& sample : samples()) {
      try_call(*op, sample, false);
      if (sample.dtype == DType::Float32 || sample.dtype == DType::BFloat16) {
        try_call(*op, sample, true);
      }
    }
  }
  run_sample_programs();
  record_kernels(nullptr);
  return kernels;
}

}  // namespace rushlight
