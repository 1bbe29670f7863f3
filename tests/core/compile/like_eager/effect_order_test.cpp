// SPDX-License-Identifier: BSD-3-Clause
// Pieces of a split graph that need no values of each other, but must keep the order of their random draws and writes.
#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/nn/functional/dropout.h>

#include "core/compile/like_eager/layers.h"

namespace rehearse::compiler::effect_order {
namespace {

using Net = rehearse_test::LayersImpl;

const rehearse_test::LayersProgram kPrograms[] = {
    {"two dropouts, used the other way round",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor p = at::dropout(net.a->forward(x), 0.5, true);
       const at::Tensor q = at::dropout(net.b->forward(x + 1), 0.5, true);
       return net.c->forward(q) + p;
     }},
    {"draws of three pieces",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor p = net.a->forward(x) * at::rand_like(x);
       const at::Tensor q = net.b->forward(x) + at::randn({4, 6});
       const at::Tensor r = net.c->forward(x) * at::bernoulli(at::full({4, 6}, 0.5));
       return r.exp() + q.sin() + p;
     }},
    {"read before it is written",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor before = net.a->forward(net.buffer + x);
       net.buffer.add_(1);
       const at::Tensor after = net.b->forward(net.buffer * x);
       return net.c->forward(after) + before;
     }},
    {"written before it is read",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x);
       net.buffer.copy_(h.detach());
       const at::Tensor g = net.b->forward(x);
       return net.c->forward(g * net.buffer) + h;
     }},
    {"an argument, by its alias",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor alias = x.t();
       const at::Tensor p = net.a->forward(x + 0);
       alias.mul_(2);
       const at::Tensor q = net.b->forward(x * 1);
       x[0].zero_();
       return net.c->forward(alias.t()) + q.exp() + p;
     }},
    {"writes in every piece, results used backwards",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor count = at::zeros({});
       const at::Tensor p = net.a->forward(x) + count.add_(1);
       const at::Tensor q = net.b->forward(x) + count.add_(count);
       const at::Tensor r = net.c->forward(x) + count.mul_(3);
       return r * 100 + q * 10 + p + count;
     }},
};

TEST(EffectOrder, AcrossPiecesOfASplit) { rehearse_test::expect_like_eager_in_pieces(kPrograms); }
TEST(EffectOrder, InOnePiece) { rehearse_test::expect_like_eager_in_one_piece(kPrograms); }

}  // namespace
}  // namespace rehearse::compiler::effect_order
