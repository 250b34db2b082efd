#define AIT_ISA generic
#define VL 4
#include "kernels/isa.h"
#include "axpb_f32.inc"
