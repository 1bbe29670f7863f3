// SPDX-License-Identifier: BSD-3-Clause
// Tensors that start to require a gradient after they are made, because the code writes to a view of them. The write
// may be in another piece of a split graph, or after a read. Code after a read or an eager region may use the tensor.
#include <vector>

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <rehearse/compile/eager_region.h>

#include "core/compile/like_eager/layers.h"

namespace rehearse::compiler::view_fills {
namespace {

using Net = rehearse_test::LayersImpl;

const rehearse_test::LayersProgram kPrograms[] = {
    {"rows by copy",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x);
       const at::Tensor z = at::zeros_like(h);
       for (int i = 0; i < 4; ++i) z[i].copy_(h[i] * i);
       return net.c->forward(net.b->forward(z));
     }},
    {"a slice",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x);
       const at::Tensor z = at::ones({4, 12});
       z.slice(1, 3, 9).copy_(h);
       return net.c->forward(net.b->forward(z.slice(1, 0, 6)) + z.slice(1, 6, 12));
     }},
    {"a view of a view, added to",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x);
       const at::Tensor z = at::ones({4, 6});
       z.t().select(0, 2).narrow(0, 1, 2).add_(h.sum());
       return net.c->forward(net.b->forward(z));
     }},
    {"filled one piece later",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6});
       const at::Tensor before = z * 2, row = z[1];
       const at::Tensor h = net.b->forward(net.a->forward(x));
       row.copy_(h[0]);
       return net.c->forward(z + before);
     }},
    {"a sibling",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), whole = z.view({24}), left = z.slice(1, 0, 3);
       left.copy_(net.a->forward(x).slice(1, 0, 3));
       return net.c->forward(net.b->forward(whole.view({4, 6}).sin()));
     }},
    {"what was filled is read itself",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x);
       const at::Tensor z = at::zeros_like(h);
       z[1].copy_(h[1]);
       return at::equal(z, h) ? net.c->forward(h) : net.c->forward(net.b->forward(z));
     }},
    {"what was made of it before stays without",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6});
       const at::Tensor before = z.exp();
       z[0].copy_(net.a->forward(x)[0]);
       const at::Tensor h = net.b->forward(x);
       return net.c->forward(h * before) + z.sum();
     }},
    {"detach() is no view",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), apart = z.detach();
       apart[0].copy_(net.a->forward(x)[0]);
       return net.c->forward(net.b->forward(x) * z.exp()) + (z.requires_grad() ? 1 : 2);
     }},
    {"unsafe_split() gives no views",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6});
       z.unsafe_split(2)[1].copy_(net.a->forward(x).slice(0, 0, 2));
       return net.c->forward(net.b->forward(x) * z.exp()) + (z.requires_grad() ? 1 : 2);
     }},
    {"without grad mode",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), h = net.a->forward(x);
       {
         const at::NoGradGuard no_grad;
         z[0].copy_(h[0]);
       }
       return net.c->forward(net.b->forward(z)) + (z.requires_grad() ? 1 : 2);
     }},
    {"code asks whether it requires grad",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6});
       z[0].copy_(net.a->forward(x)[0]);
       return net.c->forward(net.b->forward(z.requires_grad() ? z * 2 : z));
     }},
    {"index_put_ of a view",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), h = net.a->forward(x);
       z.view({24}).index_put_({at::arange(6)}, h[0]);
       return net.c->forward(net.b->forward(z));
     }},
    {"masked_fill_ and a foreach",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), w = at::ones({4, 6}), h = net.a->forward(x);
       at::_foreach_add_({z[0], w[0]}, {h[0], x[0]});
       return net.c->forward(net.b->forward(z) * w) + (w.requires_grad() ? 1 : 2);
     }},
    {"chunks that autograd refuses to be written",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6});
       for (const at::Tensor& row : z.unbind(0)) row.detach().copy_(net.a->forward(x)[0]);
       return net.c->forward(net.b->forward(z));
     }},
    {"what gives its argument back",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), same = at::dropout(z, 0.5, false), row = z.contiguous()[1];
       row.copy_(net.a->forward(x)[0]);
       const bool positive = (x.sum() > -1e6).item<bool>();
       return net.c->forward(net.b->forward(same)) + (positive ? 1 : 2);
     }},
    {"a buffer",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x), z = net.buffer.clone();
       z.diagonal().copy_(h.diagonal());
       return net.c->forward(net.b->forward(z));
     }},
    {"twice",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), y = at::zeros({4, 6});
       z[0].copy_(net.a->forward(x)[0]);
       y[1].copy_(net.b->forward(z)[0]);
       return net.c->forward(y + z);
     }},
    {"slices in a list",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), left = z.slice(1, 0, 2), right = z.slice(1, 2, 6);
       z.select(1, 3).copy_(net.a->forward(x).select(1, 0));
       return net.c->forward(net.b->forward(at::cat({right, left}, 1)));
     }},
    {"behind a read",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x), z = at::zeros({4, 6});
       z[0].copy_(h[0]);
       const bool positive = (x.sum() > -1e6).item<bool>();
       return net.c->forward(net.b->forward(z) * (positive ? 2 : 3));
     }},
    {"written behind a read",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor z = at::zeros({4, 6}), row = z[2];
       const bool positive = (x.sum() > -1e6).item<bool>();
       row.copy_(net.a->forward(x)[positive ? 1 : 0]);
       const double scale = x.abs().max().ge(0).item<bool>() ? 1.5 : 2.5;
       return net.c->forward(net.b->forward(z) * scale);
     }},
    {"behind an eager region",
     [](Net& net, const at::Tensor& x) {
       const at::Tensor h = net.a->forward(x), z = at::zeros({4, 6});
       z.slice(0, 1, 3).copy_(h.slice(0, 1, 3));
       const at::Tensor y = eager_region([](const at::Tensor& given) { return given * 2; }, z);
       return net.c->forward(net.b->forward(y) + z);
     }},
};

TEST(ViewFills, AcrossPiecesOfASplit) { rehearse_test::expect_like_eager_in_pieces(kPrograms); }
TEST(ViewFills, InOnePiece) { rehearse_test::expect_like_eager_in_one_piece(kPrograms); }

}  // namespace
}  // namespace rehearse::compiler::view_fills
