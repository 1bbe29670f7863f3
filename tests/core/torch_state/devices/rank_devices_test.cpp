// SPDX-License-Identifier: BSD-3-Clause
#include <string>
#include <vector>

#include <ATen/Context.h>
#include <c10/core/AutogradState.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "core/torch_state/devices/fake_devices.h"
#include "core/torch_state/hand_fibers.h"

namespace rehearse::torch_state {
namespace {

using Reason = TorchStateError::Reason;

TorchStateOptions on_devices() {
  TorchStateOptions options;
  options.seed = 5;
  options.devices = {fake_device(1), fake_device(2)};
  return options;
}

class RankDevicesTest : public ::testing::Test {
 protected:
  RankDevicesTest() {
    devices.lost.clear();
    devices.current = 0;
  }

  FakeDevices& devices = FakeDevices::instance();
};

TEST_F(RankDevicesTest, Fibers_BeginOnTheirRanksDevice) {
  TorchRankState state(on_devices());
  HandFibers fibers(state, 2);
  fibers.run(0, [&] { EXPECT_EQ(devices.current, 1); });
  fibers.run(1, [&] { EXPECT_EQ(devices.current, 2); });
  EXPECT_EQ(devices.current, 0);

  std::vector<std::byte> helper(state.image_bytes()), here(state.image_bytes());
  state.create_image(helper.data(), 1, 1);
  state.exchange(here.data(), helper.data());
  EXPECT_EQ(devices.current, 2);
  state.end_fiber(1, 1);
  state.exchange(helper.data(), here.data());
  EXPECT_EQ(devices.current, 0);
}

TEST_F(RankDevicesTest, DeviceThatAFiberChose_IsItsOwn) {
  TorchRankState state(on_devices());
  HandFibers fibers(state, 2);
  devices.current = 2;
  fibers.run(0, [&] { devices.current = 0; });
  EXPECT_EQ(devices.current, 2);
  fibers.run(1, [&] { EXPECT_EQ(devices.current, 2); });
  fibers.run(0, [&] { EXPECT_EQ(devices.current, 0); });
}

TEST_F(RankDevicesTest, SwitchWithinADevice_ChangesNothing) {
  auto options = on_devices();
  options.devices = {fake_device(1), fake_device(1)};
  TorchRankState state(options);
  HandFibers fibers(state, 2);
  devices.current = 1;
  devices.changes = 0;
  for (int rank : {0, 1, 0}) fibers.run(rank, [] {});
  EXPECT_EQ(devices.changes, 0);
}

TEST_F(RankDevicesTest, DriverThatFails_DoesNotEndASwitch) {
  TorchRankState state(on_devices());
  HandFibers fibers(state, 2);
  devices.lost = "the device fell off the bus";
  fibers.run(0, [] {});
  devices.lost.clear();
  fibers.run(1, [&] { EXPECT_EQ(devices.current, 2); });
  EXPECT_EQ(devices.current, 0);
}

TEST_F(RankDevicesTest, OwnExchange_IsAskedInPlaceOfLibTorch) {
  static int current;
  current = 7;
  auto options = on_devices();
  options.exchange_device = [](int device) noexcept { return std::exchange(current, device); };
  TorchRankState state(options);
  HandFibers fibers(state, 2);
  fibers.run(1, [&] {
    EXPECT_EQ(current, 2);
    EXPECT_EQ(devices.current, 0);
  });
  EXPECT_EQ(current, 7);
}

TEST_F(RankDevicesTest, NoDevices_AreAskedForNothing) {
  devices.lost = "asked";
  TorchRankState state;
  HandFibers fibers(state, 1);
  fibers.run(0, [&] { EXPECT_EQ(devices.current, 0); });
}

Reason reason_for(TorchStateOptions options, std::string& what) {
  try {
    TorchRankState{std::move(options)};
  } catch (const TorchStateError& error) {
    what = error.what();
    return error.reason();
  }
  ADD_FAILURE() << "was accepted";
  return Reason::unreadable;
}

TEST_F(RankDevicesTest, DeviceThatIsNotThere_IsRefusedWithTheRank) {
  std::string what;
  auto options = on_devices();
  options.devices[1] = fake_device(3);
  EXPECT_EQ(reason_for(options, what), Reason::device_missing);
  EXPECT_EQ(what, "rehearse: the device of rank 1 is fake:3, but there are 3, counted from 0");
  options.devices[1] = {kFakeType};
  EXPECT_EQ(reason_for(options, what), Reason::device_missing);
  EXPECT_EQ(what, "rehearse: the device of rank 1 is fake, but there are 3, counted from 0");
  options.devices[1] = {c10::kMeta, 0};
  EXPECT_EQ(reason_for(options, what), Reason::device_missing);
  EXPECT_EQ(what, "rehearse: the device of rank 1 is meta:0, and that of rank 0 fake:1: give one type");
  const TorchRankState state(on_devices());  // the refusals above must change nothing
}

TEST_F(RankDevicesTest, TypeWithoutALibrary_IsRefusedWithTheWayOut) {
  std::string what;
  auto options = on_devices();
  options.devices = {{c10::kXPU, 0}};
  EXPECT_EQ(reason_for(options, what), Reason::device_missing);
  EXPECT_THAT(what, testing::HasSubstr("devices of type xpu"));
  EXPECT_THAT(what, testing::HasSubstr("dlopen()"));
}

TEST_F(RankDevicesTest, RankWithoutADevice_IsRefused) {
  TorchRankState state(on_devices());
  std::vector<std::byte> image(state.image_bytes());
  EXPECT_THROW(state.create_image(image.data(), 2, 0), std::out_of_range);
}

TEST_F(RankDevicesTest, ThreadsOfAutograd_AreForbiddenInEveryFiberAndNotOnTheHost) {
  const auto threads = [] { return c10::AutogradState::get_tls_state().get_multithreading_enabled(); };
  TorchRankState state({.single_threaded_autograd = true});
  HandFibers fibers(state, 2);
  fibers.run(1, [&] {
    EXPECT_FALSE(threads());
    EXPECT_TRUE(c10::AutogradState::get_tls_state().get_grad_mode());
    // A helper fiber, as the executor makes one for a thread that the rank starts.
    std::vector<std::byte> helper(state.image_bytes()), here(state.image_bytes());
    c10::AutogradState::get_tls_state().set_grad_mode(false);
    state.create_image(helper.data(), 1, 1);
    EXPECT_FALSE(c10::AutogradState::get_tls_state().get_grad_mode());
    state.exchange(here.data(), helper.data());
    EXPECT_FALSE(threads());
    EXPECT_TRUE(c10::AutogradState::get_tls_state().get_grad_mode());
    state.end_fiber(1, 1);
    state.exchange(helper.data(), here.data());
  });
  EXPECT_TRUE(threads());
}

TEST_F(RankDevicesTest, ThreadsOfAutograd_AreAllowedUnlessForbidden) {
  TorchRankState state;
  HandFibers fibers(state, 1);
  fibers.run(0, [] { EXPECT_TRUE(c10::AutogradState::get_tls_state().get_multithreading_enabled()); });
}

const at::Generator& default_of(int device) { return at::globalContext().defaultGenerator(fake_device(device)); }

TEST_F(RankDevicesTest, Generators_BeginWithTheRanksSeed) {
  auto options = on_devices();
  options.same_seed_on_all_ranks = false;
  TorchRankState state(options);
  HandFibers fibers(state, 2);
  for (int rank : {0, 1}) {
    fibers.run(rank, [&] {
      for (int device = 0; device < FakeDevices::kDevices; ++device)
        EXPECT_EQ(default_of(device).current_seed(), state.generator(rank).current_seed());
    });
  }
  EXPECT_NE(state.generator(0).current_seed(), state.generator(1).current_seed());
}

TEST_F(RankDevicesTest, ManualSeedOnOneRank_LeavesOthersAndTheHostAlone) {
  const at::Generator host = default_of(1);
  const std::uint64_t host_seed = host.current_seed();
  {
    TorchRankState state(on_devices());
    HandFibers fibers(state, 2);
    fibers.run(0, [] { at::manual_seed(9); });
    fibers.run(1, [] { EXPECT_EQ(default_of(1).current_seed(), 5u); });
    fibers.run(0, [] {
      for (int device = 0; device < FakeDevices::kDevices; ++device) EXPECT_EQ(default_of(device).current_seed(), 9u);
    });
    EXPECT_EQ(default_of(1), host);
  }
  EXPECT_EQ(default_of(1), host);
  EXPECT_EQ(host.current_seed(), host_seed);
}

TEST_F(RankDevicesTest, Generators_AreThoseOfAllFibersOfTheRankAndNewInTheNextWorld) {
  TorchRankState state(on_devices());
  for (int world = 0; world < 2; ++world) {
    HandFibers fibers(state, 1);
    at::Generator main;
    fibers.run(0, [&] {
      main = default_of(2);
      EXPECT_EQ(main.current_seed(), 5u);
      at::manual_seed(9);
    });
    std::vector<std::byte> helper(state.image_bytes()), here(state.image_bytes());
    state.create_image(helper.data(), 0, 1);
    state.exchange(here.data(), helper.data());
    EXPECT_EQ(default_of(2), main);
    state.end_fiber(0, 1);
    state.exchange(helper.data(), here.data());
  }
}

}  // namespace
}  // namespace rehearse::torch_state
