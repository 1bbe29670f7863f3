// SPDX-License-Identifier: BSD-3-Clause
// Functions on numbers return Python's results, and refuse what Python refuses.
#include "graph/run/python/python_functions.h"

#include <cmath>
#include <limits>
#include <stdexcept>

#include <gtest/gtest.h>

namespace rehearse::graph {
namespace {

c10::IValue call(const char* name, std::vector<c10::IValue> arguments) {
  return find_python_function(name)->call(arguments);
}

TEST(PythonFunctions, RoundAndSignAsPython) {
  for (std::int64_t a = -7; a <= 7; ++a) {
    for (std::int64_t b = -3; b <= 3; ++b) {
      if (b == 0) continue;
      const std::int64_t quotient = call("_operator.floordiv", {a, b}).toInt();
      const std::int64_t rest = call("_operator.mod", {a, b}).toInt();
      EXPECT_EQ(quotient, static_cast<std::int64_t>(std::floor(static_cast<double>(a) / static_cast<double>(b))));
      EXPECT_EQ(quotient * b + rest, a);
      EXPECT_TRUE(rest == 0 || (rest < 0) == (b < 0));
    }
  }
  EXPECT_EQ(call("_operator.truediv", {7, 2}).toDouble(), 3.5);
  EXPECT_EQ(call("_operator.mod", {-7.5, 2}).toDouble(), 0.5);
  EXPECT_EQ(call("_operator.pow", {3, 4}).toInt(), 81);
  EXPECT_EQ(call("_operator.pow", {2, -1}).toDouble(), 0.5);
  EXPECT_EQ(call("math.ceil", {2.1}).toInt(), 3);
  EXPECT_EQ(call("math.trunc", {-2.9}).toInt(), -2);
  EXPECT_EQ(call("torch.sym_max", {2, 3.0}).toDouble(), 3.0);
  EXPECT_EQ(call("torch.sym_min", {2, 3}).toInt(), 2);
  EXPECT_EQ(call("torch.sym_ite", {false, 1, 2}).toInt(), 2);
  EXPECT_TRUE(call("_operator.and_", {true, true}).toBool());
  EXPECT_TRUE(call("_operator.ge", {2.0, 2}).toBool());
  EXPECT_EQ(call("_operator.lshift", {3, 4}).toInt(), 48);
  EXPECT_EQ(call("_operator.rshift", {-5, 1}).toInt(), -3);
}

// CPython 3.11 computed the expected results.
TEST(PythonFunctions, MixedAndLargeNumbersAreThoseOfPython) {
  const std::int64_t odd = (std::int64_t{1} << 53) + 1;
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  const double even = 9007199254740992.0;
  const double beyond = 9223372036854775808.0;
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  EXPECT_FALSE(call("_operator.eq", {odd, even}).toBool());
  EXPECT_TRUE(call("_operator.ne", {even, odd}).toBool());
  EXPECT_TRUE(call("_operator.gt", {odd, even}).toBool());
  EXPECT_TRUE(call("_operator.lt", {even, odd}).toBool());
  EXPECT_TRUE(call("_operator.eq", {odd - 1, even}).toBool());
  EXPECT_FALSE(call("_operator.eq", {max, beyond}).toBool());
  EXPECT_TRUE(call("_operator.lt", {max, beyond}).toBool());
  EXPECT_TRUE(call("_operator.eq", {-max - 1, -beyond}).toBool());
  EXPECT_TRUE(call("_operator.gt", {-max - 1, -infinity}).toBool());
  EXPECT_TRUE(call("_operator.lt", {-3, -2.5}).toBool());
  EXPECT_TRUE(call("_operator.gt", {-2, -2.5}).toBool());
  EXPECT_FALSE(call("_operator.le", {1, nan}).toBool());
  EXPECT_FALSE(call("_operator.ge", {nan, 1}).toBool());
  EXPECT_TRUE(call("_operator.ne", {nan, 1}).toBool());
  EXPECT_EQ(call("torch.sym_max", {odd, even}).toDouble(), even);
  EXPECT_EQ(call("_operator.floordiv", {1.0, 0.1}).toDouble(), 9.0);
  EXPECT_EQ(call("_operator.floordiv", {-5.0, infinity}).toDouble(), -1.0);
  EXPECT_TRUE(std::signbit(call("_operator.floordiv", {0.0, -1.0}).toDouble()));
  EXPECT_TRUE(std::isnan(call("_operator.floordiv", {infinity, 2.0}).toDouble()));
  EXPECT_EQ(call("_operator.mod", {-1.0, infinity}).toDouble(), infinity);
  EXPECT_TRUE(std::signbit(call("_operator.mod", {4.0, -2.0}).toDouble()));
  EXPECT_EQ(call("_operator.truediv", {max, max - 1}).toDouble(), 1.0);
  EXPECT_EQ(call("_operator.truediv", {odd, 2}).toDouble(), 4503599627370496.5);
  EXPECT_EQ(call("_operator.truediv", {9007199254740995, 3}).toDouble(), 3002399751580331.5);
  EXPECT_EQ(call("_operator.truediv", {-max - 1, 3}).toDouble(), -3.0744573456182584e18);
  EXPECT_EQ(call("_operator.truediv", {1, max}).toDouble(), 1.0842021724855044e-19);
  EXPECT_EQ(call("_operator.pow", {0, 0}).toInt(), 1);
  EXPECT_EQ(call("_operator.pow", {-2, -3}).toDouble(), -0.125);
  EXPECT_EQ(call("_operator.pow", {-8.0, 3}).toDouble(), -512.0);
  EXPECT_EQ(call("_operator.pow", {0.0, -infinity}).toDouble(), infinity);
  EXPECT_EQ(call("_operator.pow", {-0.0, -infinity}).toDouble(), infinity);
  EXPECT_EQ(call("_operator.lshift", {-1, 63}).toInt(), -max - 1);
}

TEST(PythonFunctions, ErrorsArePythons) {
  const auto error_of = [](const char* name, std::vector<c10::IValue> arguments) -> std::string {
    try {
      call(name, std::move(arguments));
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_EQ(error_of("_operator.pow", {0, -1}), "0.0 cannot be raised to a negative power");
  EXPECT_EQ(error_of("_operator.pow", {0.0, -0.5}), "0.0 cannot be raised to a negative power");
  EXPECT_EQ(error_of("_operator.pow", {-8, 0.5}), "the result is complex");
  EXPECT_EQ(error_of("_operator.pow", {1e300, 2}), "the result is too large for a float");
  EXPECT_EQ(error_of("_operator.truediv", {1, 0}), "division by zero");
  EXPECT_EQ(error_of("_operator.floordiv", {1.0, 0.0}), "division by zero");
  EXPECT_EQ(error_of("torch.sym_sqrt", {-1}), "there is no square root of a negative number");
}

TEST(PythonFunctions, WhatDoesNotFitIsRefused) {
  const std::int64_t max = std::numeric_limits<std::int64_t>::max();
  EXPECT_THROW(call("_operator.add", {max, 1}), std::invalid_argument);
  EXPECT_THROW(call("_operator.mul", {max, 2}), std::invalid_argument);
  EXPECT_THROW(call("_operator.pow", {10, 19}), std::invalid_argument);
  EXPECT_THROW(call("_operator.neg", {-max - 1}), std::invalid_argument);
  EXPECT_THROW(call("_operator.floordiv", {-max - 1, -1}), std::invalid_argument);
  EXPECT_THROW(call("_operator.lshift", {1, 63}), std::invalid_argument);
  EXPECT_THROW(call("_operator.lshift", {-2, 63}), std::invalid_argument);
  EXPECT_THROW(call("_operator.lshift", {-1, 64}), std::invalid_argument);
  EXPECT_THROW(call("math.floor", {1e300}), std::invalid_argument);
  EXPECT_THROW(call("_operator.mod", {1, 0}), std::invalid_argument);
  EXPECT_THROW(call("_operator.add", {"a", 1}), std::invalid_argument);
  EXPECT_THROW(call("_operator.getitem", {c10::ivalue::Tuple::create({1, 2}), 2}), std::invalid_argument);
  EXPECT_EQ(find_python_function("_operator.concat"), nullptr);
}

}  // namespace
}  // namespace rehearse::graph
