/* SPDX-License-Identifier: MIT */
/* Functions of glibc 2.32 that dynprobe uses, for a build with an older one (portable.cmake). */
#ifndef DP_CMAKE_NEWER_H
#define DP_CMAKE_NEWER_H

const char *strerrorname_np(int number);
const char *strerrordesc_np(int number);
const char *sigabbrev_np(int number);
const char *sigdescr_np(int number);

#endif
