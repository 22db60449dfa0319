/* SPDX-License-Identifier: MIT */
#include "injector/tracee/proc/capabilities.h"

#include "injector/tracee/proc/proc.h"

#include <linux/capability.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SHOWN 4

#define NAME(cap) [cap] = #cap
static const char *const names[] = {
        NAME(CAP_CHOWN),
        NAME(CAP_DAC_OVERRIDE),
        NAME(CAP_DAC_READ_SEARCH),
        NAME(CAP_FOWNER),
        NAME(CAP_FSETID),
        NAME(CAP_KILL),
        NAME(CAP_SETGID),
        NAME(CAP_SETUID),
        NAME(CAP_SETPCAP),
        NAME(CAP_LINUX_IMMUTABLE),
        NAME(CAP_NET_BIND_SERVICE),
        NAME(CAP_NET_BROADCAST),
        NAME(CAP_NET_ADMIN),
        NAME(CAP_NET_RAW),
        NAME(CAP_IPC_LOCK),
        NAME(CAP_IPC_OWNER),
        NAME(CAP_SYS_MODULE),
        NAME(CAP_SYS_RAWIO),
        NAME(CAP_SYS_CHROOT),
        NAME(CAP_SYS_PTRACE),
        NAME(CAP_SYS_PACCT),
        NAME(CAP_SYS_ADMIN),
        NAME(CAP_SYS_BOOT),
        NAME(CAP_SYS_NICE),
        NAME(CAP_SYS_RESOURCE),
        NAME(CAP_SYS_TIME),
        NAME(CAP_SYS_TTY_CONFIG),
        NAME(CAP_MKNOD),
        NAME(CAP_LEASE),
        NAME(CAP_AUDIT_WRITE),
        NAME(CAP_AUDIT_CONTROL),
        NAME(CAP_SETFCAP),
        NAME(CAP_MAC_OVERRIDE),
        NAME(CAP_MAC_ADMIN),
        NAME(CAP_SYSLOG),
        NAME(CAP_WAKE_ALARM),
        NAME(CAP_BLOCK_SUSPEND),
        NAME(CAP_AUDIT_READ),
        NAME(CAP_PERFMON),
        NAME(CAP_BPF),
        [40] = "CAP_CHECKPOINT_RESTORE", /* the headers of Linux 5.8 and older lack it */
};
#define COUNT (sizeof(names) / sizeof(*names))

uint64_t dp_capabilities_of(const char *status, const char *line)
{
	const char *at = dp_status_find(status, line);
	return at ? strtoull(at, NULL, 16) : 0;
}

static void put(struct dp_buf *b, unsigned cap, unsigned n)
{
	if (cap < COUNT)
		dp_buf_printf(b, "%s%s", n ? ", " : "", names[cap]);
	else
		dp_buf_printf(b, "%scapability %u", n ? ", " : "", cap);
}

const char *dp_capabilities_text(uint64_t set, char *ret, size_t size)
{
	static const unsigned first[] = {CAP_SYS_PTRACE, CAP_SYS_ADMIN};
	struct dp_buf b = {0};
	unsigned n = 0, more = 0;
	for (size_t i = 0; i < sizeof(first) / sizeof(*first); i++)
		if (set >> first[i] & 1) {
			put(&b, first[i], n++);
			set &= ~(UINT64_C(1) << first[i]);
		}
	for (unsigned cap = 0; cap < 64; cap++) {
		if (!(set >> cap & 1))
			continue;
		if (n < SHOWN)
			put(&b, cap, n++);
		else
			more++;
	}
	if (more)
		dp_buf_printf(&b, " and %u more", more);
	snprintf(ret, size, "%s", n ? dp_buf_str(&b) : "none");
	dp_buf_fini(&b);
	return ret;
}

const char *dp_user_text(long uid, char *ret, size_t n)
{
	const struct passwd *user = getpwuid((uid_t)uid);
	if (user)
		snprintf(ret, n, "%s (uid %ld)", user->pw_name, uid);
	else
		snprintf(ret, n, "uid %ld", uid);
	return ret;
}
