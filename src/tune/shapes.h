/* Sizes of dynamic dimensions: which are measured, and which of them get a plan of their own. */
#ifndef AIT_SRC_TUNE_SHAPES_H
#define AIT_SRC_TUNE_SHAPES_H

#include "tune/candidate.h"
#include "tune/stats.h"

enum { AIT_SHAPE_AXES = 16, AIT_SHAPE_WANTED = 16, AIT_SHAPE_POINTS = 24, AIT_SHAPE_MEMBERS = 8, AIT_SHAPE_ROUNDS = 60 };
_Static_assert((int)AIT_SHAPE_AXES <= (int)AIT_PLAN_RANGES_MAX && (int)AIT_SHAPE_POINTS <= (int)AIT_PLAN_BUCKETS_MAX,
               "the file holds them");

/* ---- sizes that the user asked for (shapes.c) ----------------------------------------------------------------------------------------*/
typedef struct ait_shape_request {
  uint32_t symbol, count;
  int64_t values[AIT_SHAPE_WANTED];
} ait_shape_request;
typedef struct ait_shape_requests {
  ait_shape_request items[AIT_SHAPE_AXES];
  uint32_t count, combinations; /* of all values; at most AIT_SHAPE_WANTED */
} ait_shape_requests;
/* texts: "NAME=1,8,64", ended by NULL; NAME is a symbol of the region or INPUT.DIMENSION. Errors: invalid-argument. */
ait_status ait_shape_requests_parse(const ait_region *region, const char *const *texts, ait_shape_requests *out) AIT_MUST_USE;
/* Sets the symbols of combination `index`. */
void ait_shape_requests_at(const ait_shape_requests *requests, uint32_t index, int64_t *symbols);

/* ---- points, boxes -------------------------------------------------------------------------------------------------------------------*/
typedef struct ait_shape_point {
  uint32_t case_index;
  int64_t size[AIT_SHAPE_AXES];
  uint32_t winner;                             /* member; 0: the plan for all sizes */
  ait_stats medians[AIT_SHAPE_MEMBERS];        /* seconds of one call */
  ait_stats against_winner[AIT_SHAPE_MEMBERS]; /* time / that of `winner`, paired by round */
} ait_shape_point;

typedef struct ait_shape_box {
  int64_t min[AIT_SHAPE_AXES], max[AIT_SHAPE_AXES];
  uint32_t winner;
} ait_shape_box;

/* What the measuring child tells: plain data for pipe and record. times[(point * AIT_SHAPE_MEMBERS + member) * AIT_SHAPE_ROUNDS + round] */
typedef struct ait_shape_times {
  uint8_t failed;
  char reason[AIT_REASON_SIZE];
  uint32_t points, members, rounds[AIT_SHAPE_POINTS], dropped[AIT_SHAPE_POINTS];
  double times[AIT_SHAPE_POINTS * AIT_SHAPE_MEMBERS * AIT_SHAPE_ROUNDS];
} ait_shape_times;

typedef struct ait_shapes {
  const ait_region *region;
  uint32_t axis_count, axes[AIT_SHAPE_AXES]; /* symbols of the region that inputs bind */
  uint32_t point_count;
  ait_shape_point points[AIT_SHAPE_POINTS];
  double floor; /* two equal plans differ here by up to this share */
  uint32_t member_count;
  int32_t members[AIT_SHAPE_MEMBERS]; /* candidates; the first is the winner of the contest */
  bool measured;
  char why[AIT_REASON_SIZE]; /* why not */
  ait_shape_times times;
  uint32_t box_count;
  ait_shape_box boxes[AIT_SHAPE_POINTS];
} ait_shapes;

/* The axes, and a point for each size among the samples and among what was asked for. */
ait_status ait_shapes_points(const ait_region *region, const ait_tune_cases *cases, ait_shapes *out) AIT_MUST_USE;
/* Who takes part: the winner, then the fastest of each backend with each number of threads, then who is next. */
void ait_shapes_members(const ait_candidates *list, int32_t winner, ait_shapes *shapes);
/* From times to winners: at each point the plan for all sizes unless another is faster beyond noise. */
void ait_shapes_decide(ait_shapes *shapes);
/* From points to boxes: each size up to half way (geometrically) to the next that was measured; neighbours with one winner are one box. */
void ait_shapes_make_boxes(ait_shapes *shapes);
/* "s0 1 to 8, s1 16" */
void ait_shapes_box_text(const ait_shapes *shapes, const ait_shape_box *box, char *out, size_t size);

/* ---- report (shapes_report.c) --------------------------------------------------------------------------------------------------------*/
/* The member "shapes" of the report, as docs/json.md has it. */
void ait_shapes_put(ait_text *text, const ait_trial_context *context, const ait_candidates *list, const ait_shapes *shapes);

#endif
