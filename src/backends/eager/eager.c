/* The eager backend: native with every optimisation off, as a plain library would run the program. The baseline of every speed-up. */
#include "backends/native/backend.h"
#include "backends/native/instance.h"

static const ait_knob eager_knobs[] = {{0}};

const ait_backend ait_backend_eager = {
    .struct_size = sizeof(ait_backend),
    .abi_version = AIT_BACKEND_ABI,
    .name = "eager",
    .summary = "the baseline: native's kernels operator by operator, nothing fused, nothing packed ahead",
    .knobs = eager_knobs,
    .probe = nat_probe,
    .supports = nat_supports,
    .compile = nat_compile_eager,
    .load = nat_load,
    .instance_create = nat_instance_create,
    .run = nat_instance_run,
    .profile = nat_instance_profile,
    .instance_destroy = nat_instance_destroy,
    .unload = nat_unload,
    .instance_bytes = nat_instance_bytes,
};
