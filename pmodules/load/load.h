/* SPDX-License-Identifier: MIT */
/* Loads pmodules into a host: .so by dlopen, .lua by lua.h. */
#ifndef DP_PMODULES_LOAD_LOAD_H
#define DP_PMODULES_LOAD_LOAD_H

#include "pmodules/host/host.h"

/* Loads a .lua or .so; calls define and load. DP_TAG_PMODULE names the line and the error. */
struct dp_error *dp_host_load(struct dp_host *h, const char *path) DP_MUST_CHECK;
/* Loads every *.lua and *.so in a directory, in order of name. Failures are logged, and loading continues. */
struct dp_error *dp_host_load_dir(struct dp_host *h, const char *path) DP_MUST_CHECK;
/* The same for the modules installed with dynprobe. */
struct dp_error *dp_host_load_own(struct dp_host *h) DP_MUST_CHECK;
/* Loads one of these, unless a module of that id is loaded. Where it is not installed, nothing happens. */
void dp_host_load_ready(struct dp_host *h, const char *name);
/* Their names, in order, and their files. Nothing is loaded. */
void dp_own_modules_each(void (*each)(const char *path, const char *name, void *data), void *data);

#endif
