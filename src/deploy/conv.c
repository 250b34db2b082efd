/* Causal depthwise convolutions over the tokens. */
#include "deploy/internal.h"
#include <stdio.h>

ait_status dep_match_conv(dep_work *w, ait_node *n, bool *out_matched) {
  AIT_UNUSED(n);
  *out_matched = false;
  snprintf(w->near, sizeof w->near, "it is not a causal convolution of each channel");
  return AIT_OK;
}
