// SPDX-License-Identifier: BSD-3-Clause
#pragma once

namespace rehearse::capture {

// Makes operators with the Fake key come to FakeMode::current(). The first call registers, for the life of the process
// (4 to 5 ms: LibTorch computes its dispatch tables anew); later ones do nothing.
void register_fake_fallback();

}  // namespace rehearse::capture
