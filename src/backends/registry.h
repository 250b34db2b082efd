/* Front door of the backends room: which backends there are. libait-rt and libait have the same list. */
#ifndef AIT_SRC_BACKENDS_REGISTRY_H
#define AIT_SRC_BACKENDS_REGISTRY_H

#include <ait/backend.h>

size_t ait_backend_count(void);
const ait_backend *ait_backend_at(size_t index); /* in the order of backends.inc */
const ait_backend *ait_backend_find(const char *name);

#endif
