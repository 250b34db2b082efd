#define AIT_ISA generic
#define VL 4
#include "kernels/isa.h"
#include "kernels/template/norm_f32.inc"
#include "kernels/template/reduce_f32.inc"
#include "kernels/template/copy.inc"
#include "kernels/template/expert_f32.inc"
#include "kernels/template/rotary_f32.inc"
