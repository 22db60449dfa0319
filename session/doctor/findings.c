/* SPDX-License-Identifier: MIT */
#include "session/doctor/findings.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static void append(struct dp_findings *to, struct dp_finding f)
{
	struct dp_finding *grown = reallocarray(to->item, to->n + 1, sizeof(*grown));
	to->item = grown ? grown : to->item;
	if (grown && f.text) {
		grown[to->n++] = f;
		return;
	}
	to->failed = true;
	free(f.text);
	free(f.remedy);
}

void dp_find(struct dp_findings *to, const char *subject, enum dp_health health, const char *remedy, const char *fmt, ...)
{
	struct dp_finding f = {.subject = subject, .health = health, .remedy = remedy ? strdup(remedy) : NULL};
	va_list args;
	va_start(args, fmt);
	if (vasprintf(&f.text, fmt, args) < 0)
		f.text = NULL;
	va_end(args);
	append(to, f);
}

/* Some remedies only say that the message has it. */
static bool is_of_use(const char *remedy)
{
	return !strstr(remedy, "see the message") && !strstr(remedy, "the message says") && strncmp(remedy, "nothing", 7) != 0;
}

void dp_find_error(struct dp_findings *to, const char *subject, enum dp_health health, struct dp_error *err)
{
	const char *remedy = dp_error_remedy(err);
	append(to, (struct dp_finding){.subject = subject,
	                               .health = health,
	                               .text = dp_error_text(err),
	                               .remedy = is_of_use(remedy) ? strdup(remedy) : NULL,
	                               .tag = dp_tag_name(err->tag)});
	dp_error_destroy(err);
}

void dp_findings_fini(struct dp_findings *findings)
{
	for (size_t i = 0; i < findings->n; i++) {
		free(findings->item[i].text);
		free(findings->item[i].remedy);
	}
	free(findings->item);
	*findings = (struct dp_findings){0};
}
