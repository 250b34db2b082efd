#define AIT_ISA generic
#define VL 4
#include "kernels/isa.h"
#include "kernels/template/rows.inc"
#include "kernels/template/depthwise_f32.inc"
#include "kernels/template/pool_f32.inc"
#include "kernels/template/slots_f32.inc"
