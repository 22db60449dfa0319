/* SPDX-License-Identifier: MIT */
#include "output/lttng/lttng_session.h"

#include <string.h>

/* LTTng's contexts for user-space events. Perf counters are omitted: they open a descriptor in a thread's first event. */
static const struct {
	const char *name;
	enum lttng_event_context_type type;
} contexts[] = {
        {"vpid", LTTNG_EVENT_CONTEXT_VPID},
        {"vtid", LTTNG_EVENT_CONTEXT_VTID},
        {"procname", LTTNG_EVENT_CONTEXT_PROCNAME},
        {"ip", LTTNG_EVENT_CONTEXT_IP},
        {"pthread_id", LTTNG_EVENT_CONTEXT_PTHREAD_ID},
        {"vuid", LTTNG_EVENT_CONTEXT_VUID},
        {"veuid", LTTNG_EVENT_CONTEXT_VEUID},
        {"vsuid", LTTNG_EVENT_CONTEXT_VSUID},
        {"vgid", LTTNG_EVENT_CONTEXT_VGID},
        {"vegid", LTTNG_EVENT_CONTEXT_VEGID},
        {"vsgid", LTTNG_EVENT_CONTEXT_VSGID},
        {"cgroup_ns", LTTNG_EVENT_CONTEXT_CGROUP_NS},
        {"ipc_ns", LTTNG_EVENT_CONTEXT_IPC_NS},
        {"mnt_ns", LTTNG_EVENT_CONTEXT_MNT_NS},
        {"net_ns", LTTNG_EVENT_CONTEXT_NET_NS},
        {"pid_ns", LTTNG_EVENT_CONTEXT_PID_NS},
        {"time_ns", LTTNG_EVENT_CONTEXT_TIME_NS},
        {"user_ns", LTTNG_EVENT_CONTEXT_USER_NS},
        {"uts_ns", LTTNG_EVENT_CONTEXT_UTS_NS},
};

bool dp_lttng_context_find(const char *name, struct lttng_event_context *ctx, char *provider, char *type, size_t size)
{
	memset(ctx, 0, sizeof(*ctx));
	if (!strncmp(name, "$app.", 5)) {
		const char *colon = strchr(name, ':');
		if (!colon || colon == name + 5 || !colon[1] || strlen(name) >= size)
			return false;
		snprintf(provider, size, "%.*s", (int)(colon - name - 5), name + 5);
		snprintf(type, size, "%s", colon + 1);
		ctx->ctx = LTTNG_EVENT_CONTEXT_APP_CONTEXT;
		ctx->u.app_ctx.provider_name = provider;
		ctx->u.app_ctx.ctx_name = type;
		return true;
	}
	for (size_t i = 0; i < sizeof(contexts) / sizeof(*contexts); i++)
		if (!strcmp(name, contexts[i].name)) {
			ctx->ctx = contexts[i].type;
			return true;
		}
	return false;
}
