/* SPDX-License-Identifier: MIT */
/*
 * backtrace.c: a summary of the process as a JSON annotation, and a classifier if all threads sleep. Shows: attach and postattach
 * callbacks, the map, open files, reading memory, JSON.
 */
#include <dynprobe/pmodule.h>

#include <string.h>

static char first[5];

/* The process is held: reads see this moment. */
static void attach(ptrace_backtrace_t *bt)
{
	uint64_t address;
	(void)bt;
	memset(first, 0, sizeof(first));
	if (pmodule_symbol_address("main", NULL, &address))
		pmodule_address_read_raw(address, first, 4);
}

static void postattach(ptrace_backtrace_t *bt)
{
	unsigned threads = 0, asleep = 0, files = 0, maps = 0;
	for (ptrace_thread_t *t = NULL; (t = pmodule_backtrace_next_thread(bt, NULL, t)); threads++)
		asleep += pmodule_thread_state(t) == PMODULE_PROCESS_SLEEPING;
	for (ptrace_pmap_entry_t *e = NULL; (e = pmodule_backtrace_next_pmap(bt, e));)
		maps += pmodule_pmap_permissions(e, PMODULE_PMAP_RD | PMODULE_PMAP_WR);
	while (pmodule_backtrace_file(bt, files, NULL))
		files++;
	if (threads == asleep)
		pmodule_backtrace_add_classifier(bt, "asleep");
	pmodule_backtrace_annotate(bt, PAT_JSON,
	                           "{\"json\": {\"context\": \"Summary\", \"threads\": %u, \"asleep\": %u, \"files\": %u, "
	                           "\"main\": {\"writable maps\": %u, \"first bytes\": \"%02x %02x\"}}}",
	                           threads, asleep, files, maps, (unsigned char)first[0], (unsigned char)first[1]);
}

static bool load(pmodule_t *m)
{
	return pmodule_attach_event_add(m, attach) && pmodule_postattach_event_add(m, postattach);
}

PMODULE_DEFINE("example_backtrace", load, NULL, NULL);
