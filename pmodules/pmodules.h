/* SPDX-License-Identifier: MIT */
/*
 * Snapshots, for the rooms above: captured from a process or a core, kept in a file, and run through pmodules. The interface for
 * modules themselves is pmodule.h.
 */
#ifndef DP_PMODULES_PMODULES_H
#define DP_PMODULES_PMODULES_H

#include "pmodules/capture/capture.h"
#include "pmodules/file/file.h"
#include "pmodules/file/file_table.h"
#include "pmodules/host/host.h"
#include "pmodules/host/rerun.h"
#include "pmodules/load/load.h"
#include "pmodules/load/ready.h"
#include "pmodules/model/snapshot.h"

#endif
