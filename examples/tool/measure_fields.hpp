// SPDX-License-Identifier: Apache-2.0
/// @file
/// The measures by name, for whatever goes through all of them.
#pragma once

#include "eval_result.hpp"

#include <array>

namespace kvarts::tool {

struct measure_field {
  char const* name;
  double measures::*value;
};

inline constexpr std::array<measure_field, 5> measure_fields = {
    {{"k_rel_sq_err", &measures::k_rel_sq_err},
     {"v_rel_sq_err", &measures::v_rel_sq_err},
     {"logit_rms_err", &measures::logit_rms_err},
     {"attention_kl", &measures::attention_kl},
     {"output_rel_err", &measures::output_rel_err}}};

}  // namespace kvarts::tool
