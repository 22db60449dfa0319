/* SPDX-License-Identifier: MIT */
/*
 * The interface of probes/, which turns what the user typed into sites (addresses in a target's image) and captures (a field
 * table and the source of each value). It knows files and symbols, but no machine code and no process state.
 */
#ifndef DP_PROBES_PROBES_H
#define DP_PROBES_PROBES_H

#include "probes/expr/scope/scope.h"
#include "probes/hazard/hazard.h"
#include "probes/image/function/describe.h"
#include "probes/image/image.h"
#include "probes/point/places.h"
#include "probes/point/probe.h"
#include "probes/point/resolve.h"
#include "probes/point/select/select.h"
#include "probes/point/spec.h"
#include "probes/record/expr.h"
#include "probes/record/fields.h"
#include "probes/unwind/unwind_compile.h"

#endif
