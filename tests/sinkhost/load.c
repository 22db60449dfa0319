/* SPDX-License-Identifier: MIT */
#include "host.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <signal.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#define ROOM (4u << 20)

struct dp_agent host_agent = {.live = DP_LIVE};
static struct dp_sink *sink;
static const char *so_path;
static sem_t loaded;

static void die(const char *what)
{
	fprintf(stderr, "sinkhost: %s\n", what);
	exit(2);
}

static void own_descriptors(void)
{
	if (syscall(SYS_close_range, 0, ~0u, 2u) != 0)
		_exit(3);
	for (int i = 0; i < 3; i++)
		if (open("/dev/null", O_RDWR) != i)
			_exit(3);
}

static void *loader(void *unused)
{
	sigset_t every;
	(void)unused;
	sigfillset(&every);
	pthread_sigmask(SIG_SETMASK, &every, NULL);
	void *present = dlopen("liblttng-ust.so.1", RTLD_NOW | RTLD_NOLOAD);
	if (present)
		sink->flags |= DP_SINK_UST_PRESENT;
	else
		own_descriptors();
	void *handle = dlopen(so_path, RTLD_NOW);
	void (*start)(struct dp_sink *) = handle ? (void (*)(struct dp_sink *))dlsym(handle, DP_SYM_SINK_START) : NULL;
	if (!start)
		snprintf(sink->error, sizeof(sink->error), "%s", dlerror());
	else
		start(sink);
	sem_post(&loaded);
	if (sink->state == DP_SINK_READY)
		((void (*)(struct dp_sink *))(uintptr_t)sink->dwell)(sink);
	return NULL;
}

struct dp_sink *host_load(const char *path)
{
	pthread_t thread;
	so_path = path;
	sink = mmap(NULL, ROOM, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (sink == MAP_FAILED)
		die("no memory");
	*sink = (struct dp_sink){
	        .magic = DP_SINK_MAGIC, .abi = DP_SINK_ABI, .size = ROOM, .max_events = HOST_EVENTS, .max_fields = HOST_FIELDS};
	sink->events_offset = 4096;
	sink->fields_offset = 4096 + HOST_EVENTS * sizeof(struct dp_sink_event);
	sem_init(&loaded, 0, 0);
	pthread_create(&thread, NULL, loader, NULL);
	sem_wait(&loaded);
	if (sink->state != DP_SINK_READY)
		die(sink->error);
	return sink;
}

static struct dp_sink_event *events(void)
{
	return (struct dp_sink_event *)((uint8_t *)sink + sink->events_offset);
}

void host_begin(void)
{
	sink->nevents = sink->nfields = 0;
}

void host_add(const char *name, bool mask)
{
	struct dp_sink_event *e = &events()[sink->nevents++];
	memset(e, 0, sizeof(*e));
	memcpy(e->name, name, strnlen(name, sizeof(e->name)));
	e->first_field = sink->nfields;
	e->mask = mask;
}

void host_field(const char *name, enum dp_sink_type type, uint32_t size, bool hex)
{
	struct dp_sink_field *f = (struct dp_sink_field *)((uint8_t *)sink + sink->fields_offset) + sink->nfields++;
	memset(f, 0, sizeof(*f));
	memcpy(f->name, name, strnlen(name, sizeof(f->name)));
	f->type = (uint8_t)type;
	f->size = size;
	f->hex = hex;
	events()[sink->nevents - 1].nfields++;
}

void host_release(uint64_t event)
{
	struct dp_sink_event *e = &events()[sink->nevents++];
	memset(e, 0, sizeof(*e));
	e->release = 1;
	e->event = event;
}

const struct dp_sink_event *host_serve(void)
{
	volatile uint32_t *request = &sink->request;
	*request = DP_SINK_ASKED;
	__atomic_store_n((uint32_t *)(uintptr_t)sink->work, DP_SINK_WORK, __ATOMIC_SEQ_CST);
	syscall(SYS_futex, sink->work, FUTEX_WAKE_PRIVATE, 1);
	for (int i = 0; i < 100000 && *request != DP_SINK_SERVED; i++)
		usleep(100);
	if (*request != DP_SINK_SERVED)
		die("the request was not served");
	return events();
}

void host_probe(struct host_event *ret, const struct dp_sink_event *answer, uint64_t site)
{
	memset(ret, 0, sizeof(*ret));
	ret->gate = (const volatile uint32_t *)(uintptr_t)answer->gate;
	ret->desc.agent = (uint64_t)(uintptr_t)&host_agent;
	ret->desc.lost = (uint64_t)(uintptr_t)&ret->lost;
	ret->desc.reserve = DP_RECORD_MAX;
	ret->desc.site = site;
	ret->desc.event = answer->event;
}

void host_prime(void)
{
	((void (*)(void))(uintptr_t)sink->prime)();
}

bool host_hit(const struct host_event *e, const void *payload, size_t size)
{
	struct dp_record *record = host_enter(sink->enter, &e->desc);
	if (!record)
		return false;
	memcpy(record->payload, payload, size);
	host_emit(sink->emit, &e->desc, record, size);
	return true;
}

bool host_hit_capture(const struct host_event *e, const void *payload, size_t size)
{
	struct dp_record *record = host_enter(sink->enter, &e->desc);
	if (!record)
		return false;
	memcpy(record->payload, payload, size);
	struct dp_capture c = {.cursor = record->payload + size, .record = record, .desc = &e->desc};
	((void (*)(struct dp_capture *))(uintptr_t)sink->emit_capture)(&c);
	return true;
}
