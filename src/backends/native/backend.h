/* The functions of native's table; eager has the same ones but compile. */
#ifndef AIT_SRC_BACKENDS_NATIVE_BACKEND_H
#define AIT_SRC_BACKENDS_NATIVE_BACKEND_H

#include "base/base.h"
#include <ait/backend.h>

extern const ait_backend ait_backend_native;
extern const ait_backend ait_backend_eager;

void nat_probe(ait_probe *out);
ait_status nat_supports(const ait_region *region, ait_support *out);
/* Every optimisation off: op by op, nothing fused, nothing packed ahead, row-major values with a buffer each. */
ait_status nat_compile_eager(const ait_region *region, const ait_compile_options *options, ait_blob *out);
ait_status nat_load(const ait_load_context *context, void **out_loaded);
void nat_unload(void *loaded);

#endif
