// The protocol of Module, containers among them.
#include <gtest/gtest.h>
#include <rushlight/rushlight.h>

#include <functional>
#include <string>
#include <vector>

namespace rushlight {
namespace {

using Names = std::vector<std::string>;

Names names(const nn::NamedTensors& tensors) {
  Names found;
  for (const auto& [name, tensor] : tensors) {
    found.push_back(name);
  }
  return found;
}

void expect_error(ErrorKind kind, const std::string& text, const std::function<void()>& body) {
  try {
    body();
    ADD_FAILURE() << "no error; expected: " << text;
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), kind) << error.what();
    EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
  }
}

class BlockImpl : public nn::TensorModule {
 public:
  BlockImpl() : TensorModule("Block") {
    first = register_module("first", nn::Linear(2, 3));
    second = register_module("second", nn::Sequential{nn::ReLU(), nn::Linear(3, 1, false)});
    scale = register_parameter("scale", ones({1}));
    steps = register_buffer("steps", zeros({1}));
    scratch = register_buffer("scratch", zeros({1}), false);
  }
  Tensor forward(const Tensor& input) override { return second(first(input)) * scale; }

  nn::Linear first{nullptr};
  nn::Sequential second{nullptr};
  Tensor scale, steps, scratch;
};
RUSHLIGHT_MODULE(Block);

TEST(Module, NamesFollowTheTree) {
  const Block block;
  EXPECT_EQ(names(block->named_parameters()),
            (Names{"scale", "first.weight", "first.bias", "second.1.weight"}));
  EXPECT_EQ(names(block->named_parameters(false)), Names{"scale"});
  EXPECT_EQ(names(block->named_buffers()), (Names{"steps", "scratch"}));
  EXPECT_EQ(names(block->state_dict()),
            (Names{"scale", "steps", "first.weight", "first.bias", "second.1.weight"}));
  EXPECT_EQ(names(block->state_dict("model."))[0], "model.scale");
  Names modules;
  for (const auto& [name, module] : block->named_modules()) {
    modules.push_back(name);
  }
  EXPECT_EQ(modules, (Names{"", "first", "second", "second.0", "second.1"}));
  EXPECT_EQ(block->modules().size(), 5U);
  EXPECT_EQ(block->modules(false).size(), 4U);
  EXPECT_EQ(block->children().size(), 2U);
}

TEST(Module, PartsAreFoundByPath) {
  const Block block;
  EXPECT_EQ(block->get_submodule("second.0").name(), "ReLU");
  EXPECT_EQ(&block->get_submodule(""), block.ptr().get());
  EXPECT_TRUE(block->get_parameter("first.bias").is_same(block->first->bias));
  EXPECT_TRUE(block->get_buffer("steps").is_same(block->steps));
  expect_error(ErrorKind::Attribute, "Sequential has no module '7'",
               [&] { block->get_submodule("second.7"); });
  expect_error(ErrorKind::Attribute, "Linear has no parameter 'gain'",
               [&] { block->get_parameter("first.gain"); });
  expect_error(ErrorKind::Attribute, "Block has no buffer 'scale'",
               [&] { block->get_buffer("scale"); });
}

TEST(Module, SharedParametersAreListedOnceAndSavedTwice) {
  nn::Module tied("Tied");
  const nn::Linear layer(2, 2);
  tied.register_module("a", layer);
  tied.register_module("b", layer);
  EXPECT_EQ(names(tied.named_parameters()), (Names{"a.weight", "a.bias"}));
  EXPECT_EQ(names(tied.state_dict()), (Names{"a.weight", "a.bias", "b.weight", "b.bias"}));
}

TEST(Module, StateGoesFromOneToAnother) {
  const Block from;
  const Block to;
  to->load_state_dict(from->state_dict());
  const Tensor x = randn({4, 2});
  EXPECT_TRUE(equal(from(x), to(x)));
  EXPECT_FALSE(from->first->weight.is_same(to->first->weight));
  EXPECT_TRUE(to->first->weight.requires_grad());
}

TEST(Module, AssignedStateSharesMemoryAndDtype) {
  const nn::Linear layer(2, 1, false);
  const Tensor weight = full({1, 2}, 0.5, TensorOptions(DType::Float64));
  layer->load_state_dict({{"weight", weight}}, true, true);
  EXPECT_EQ(layer->weight.dtype(), DType::Float64);
  EXPECT_EQ(layer->weight.data(), weight.data());
  EXPECT_TRUE(layer->weight.requires_grad());
}

TEST(Module, StateThatDoesNotFitChangesNothing) {
  const nn::Linear layer(2, 2);
  const Tensor before = layer->weight.detach().clone();
  expect_error(ErrorKind::Runtime, "Missing key(s) in state_dict: \"bias\"",
               [&] { layer->load_state_dict({{"weight", zeros({2, 2})}}); });
  expect_error(ErrorKind::Runtime, "Unexpected key(s) in state_dict: \"gain\"", [&] {
    layer->load_state_dict({{"weight", zeros({2, 2})}, {"bias", zeros({2})}, {"gain", ones({1})}});
  });
  expect_error(ErrorKind::Runtime, "size mismatch for weight: copying a param with shape [3, 2]",
               [&] { layer->load_state_dict({{"weight", zeros({3, 2})}, {"bias", zeros({2})}}); });
  EXPECT_TRUE(equal(layer->weight, before));
  layer->load_state_dict({{"weight", zeros({2, 2})}, {"gain", ones({1})}}, false);
  EXPECT_TRUE(equal(layer->weight, zeros({2, 2})));
}

TEST(Module, RefusesNamesThatCannotBe) {
  nn::Module module("M");
  module.register_parameter("w", ones({1}));
  expect_error(ErrorKind::Key, "already exists", [&] { module.register_buffer("w", ones({1})); });
  expect_error(ErrorKind::Key, "can't contain \".\"",
               [&] { module.register_parameter("a.b", ones({1})); });
  expect_error(ErrorKind::Key, "can't be empty",
               [&] { module.register_module("", nn::Linear(1, 1)); });
  expect_error(ErrorKind::Type, "construct it first",
               [&] { module.register_module("a", std::shared_ptr<nn::Module>()); });
  expect_error(ErrorKind::Runtime, "construct the module first", [] {
    nn::Linear {
      nullptr
    } -> parameters();
  });
}

TEST(Module, TrainAndEvalReachEveryModule) {
  const Block block;
  block->eval();
  for (const nn::Module* module : block->modules()) {
    EXPECT_FALSE(module->is_training());
  }
  block->train();
  EXPECT_TRUE(block->second->is_training());
}

TEST(Module, GradientsAreCleared) {
  const Block block;
  block(ones({1, 2})).sum().backward();
  EXPECT_TRUE(block->scale.grad().defined());
  block->zero_grad(false);
  EXPECT_TRUE(equal(block->scale.grad(), zeros({1})));
  block->zero_grad();
  EXPECT_FALSE(block->scale.grad().defined());
}

TEST(Module, RequiresGradCanBeSwitchedOff) {
  const Block block;
  block->requires_grad_(false);
  EXPECT_FALSE(block(ones({1, 2})).requires_grad());
}

TEST(Module, ToChangesFloatingTensorsInPlace) {
  const Block block;
  const Tensor weight = block->first->weight;
  block->to(DType::Float64);
  EXPECT_EQ(weight.dtype(), DType::Float64);
  EXPECT_EQ(block->steps.dtype(), DType::Float64);
  EXPECT_EQ(block(ones({1, 2}, TensorOptions(DType::Float64))).dtype(), DType::Float64);
  expect_error(ErrorKind::Type, "only accepts floating point", [&] { block->to(DType::Int64); });
}

TEST(Module, ToTakesTheDeviceThatItIsOn) {
  const Block block;
  block->to(Device(DeviceType::CPU));
  EXPECT_TRUE(block->first->weight.is_cpu());
  expect_error(ErrorKind::NotImplemented, "from cpu to meta",
               [&] { block->to(Device(DeviceType::Meta)); });
}

TEST(Module, ApplyVisitsChildrenFirst) {
  const Block block;
  Names visited;
  block->apply([&](nn::Module& module) { visited.push_back(module.name()); });
  EXPECT_EQ(visited, (Names{"Linear", "ReLU", "Linear", "Sequential", "Block"}));
}

TEST(Module, PrintsAsPython) {
  const nn::Sequential model{nn::Linear(2, 3), nn::ReLU(true),
                             nn::Sequential{nn::LayerNorm(3), nn::Dropout(0.25)}};
  EXPECT_EQ(model->to_string(),
            "Sequential(\n"
            "  (0): Linear(in_features=2, out_features=3, bias=True)\n"
            "  (1): ReLU(inplace=True)\n"
            "  (2): Sequential(\n"
            "    (0): LayerNorm((3,), eps=1e-05, elementwise_affine=True, bias=True)\n"
            "    (1): Dropout(p=0.25, inplace=False)\n"
            "  )\n"
            ")");
}

TEST(Sequential, RunsItsModulesInOrder) {
  nn::Sequential model{nn::Linear(2, 2), nn::ReLU()};
  nn::init::constant_(model->parameters()[0], -1);
  nn::init::zeros_(model->parameters()[1]);
  EXPECT_TRUE(equal(model(ones({1, 2})), zeros({1, 2})));
  model->push_back("last", nn::Identity());
  EXPECT_EQ(model->size(), 3U);
  EXPECT_EQ((*model)[2]->name(), "Identity");
  EXPECT_EQ(model->named_children()[2].first, "last");
  expect_error(ErrorKind::Index, "index 3 is out of range: there are 3", [&] { (*model)[3]; });
  EXPECT_TRUE(equal(nn::Sequential()(ones({2})), ones({2})));
}

TEST(ModuleList, NamesByNumber) {
  const nn::ModuleList list{nn::Linear(1, 2), nn::Tanh()};
  EXPECT_EQ(list->size(), 2U);
  EXPECT_EQ(names(list->named_parameters()), (Names{"0.weight", "0.bias"}));
  EXPECT_EQ(list->at<nn::LinearImpl>(0).weight.sizes(), IntArrayRef({2, 1}));
  expect_error(ErrorKind::Index, "index 2 is out of range", [&] { list->at<nn::Module>(2); });
  expect_error(ErrorKind::Type, "the module is a Tanh", [&] { list->at<nn::LinearImpl>(1); });
}

TEST(ModuleDict, KeepsOrderAndReplaces) {
  const nn::ModuleDict dict(std::vector<std::pair<std::string, std::shared_ptr<nn::Module>>>{
      {"b", nn::Linear(1, 1)}, {"a", nn::Tanh()}});
  EXPECT_EQ(dict->keys(), (Names{"b", "a"}));
  dict->insert("b", nn::ReLU());
  EXPECT_EQ(dict->keys(), (Names{"b", "a"}));
  EXPECT_TRUE(dict->parameters().empty());
  EXPECT_TRUE(dict->contains("a"));
  EXPECT_EQ(dict->at<nn::Module>("b").name(), "ReLU");
  expect_error(ErrorKind::Key, "no module 'c'", [&] { dict->at<nn::Module>("c"); });
  EXPECT_EQ(dict->to_string(), "ModuleDict(\n  (b): ReLU()\n  (a): Tanh()\n)");
}

TEST(ParameterList, HoldsParameters) {
  const nn::ParameterList list(std::vector<Tensor>{ones({2}), ones({3})});
  list->append(ones({4}));
  EXPECT_EQ(list->size(), 3U);
  EXPECT_EQ(names(list->state_dict()), (Names{"0", "1", "2"}));
  EXPECT_TRUE((*list)[2].requires_grad());
  expect_error(ErrorKind::Index, "index 3 is out of range", [&] { (*list)[3]; });
}

TEST(ParameterDict, HoldsParametersByName) {
  const nn::ParameterDict dict(nn::NamedTensors{{"w", ones({2})}});
  dict->insert("w", zeros({3}));
  dict->insert("b", zeros({1}));
  EXPECT_EQ(dict->size(), 2U);
  EXPECT_EQ((*dict)["w"].size(0), 3);
  EXPECT_TRUE(dict->contains("b"));
  expect_error(ErrorKind::Key, "no parameter 'c'", [&] { (*dict)["c"]; });
}

}  // namespace
}  // namespace rushlight
