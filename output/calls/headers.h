/* SPDX-License-Identifier: MIT */
/* The system's headers that define what system calls take: names.list searches them. */
#ifndef DP_OUTPUT_CALLS_HEADERS_H
#define DP_OUTPUT_CALLS_HEADERS_H

#include <asm/prctl.h>
#include <asm/termbits.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/futex.h>
#include <linux/rseq.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/timerfd.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <time.h>
#include <unistd.h>

/* Only the kernel's own headers have it, which exclude libc's. */
#ifndef SA_RESTORER
#define SA_RESTORER 0x04000000
#endif
/* libc's is 0, because programs of 64 bits need not ask for it; the kernel says it. */
#undef O_LARGEFILE
#define O_LARGEFILE 0100000

#endif
