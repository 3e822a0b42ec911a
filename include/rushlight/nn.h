// Neural networks: modules, layers, losses, initial values.
#pragma once

#include <rushlight/nn/activation.h>
#include <rushlight/nn/adaptive.h>
#include <rushlight/nn/attention.h>
#include <rushlight/nn/container.h>
#include <rushlight/nn/convolution.h>
#include <rushlight/nn/distance.h>
#include <rushlight/nn/dropout.h>
#include <rushlight/nn/flex_attention.h>
#include <rushlight/nn/init.h>
#include <rushlight/nn/layers.h>
#include <rushlight/nn/loss.h>
#include <rushlight/nn/loss_pairs.h>
#include <rushlight/nn/module.h>
#include <rushlight/nn/normalization.h>
#include <rushlight/nn/padding.h>
#include <rushlight/nn/pooling.h>
#include <rushlight/nn/recurrent.h>
#include <rushlight/nn/resize.h>
#include <rushlight/nn/transformer.h>
#include <rushlight/nn/utils.h>
