#define AIT_ISA generic
#define VL 4
#include "kernels/isa.h"
#include "kernels/template/elementwise_f32.inc"
