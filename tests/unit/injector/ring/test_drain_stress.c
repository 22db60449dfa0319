/* SPDX-License-Identifier: MIT */
#include "helper_lanes.h"
#include "injector/ring/drain.h"
#include "tests/unit/agent/world.h"

#include <criterion/criterion.h>
#include <pthread.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

static struct dp_debug_ctx *w;
static struct dp_drain *d;
static bool by_lanes;

enum { THREADS = 6, HITS = 150000 };

struct producer {
	pthread_t thread;
	uint64_t recorded, nested; /* hits that found room */
	uint64_t seen, nested_seen, last_seq;
	pid_t tid;
};
static struct producer producer[THREADS];
static pthread_barrier_t barrier;
static _Thread_local struct producer *me;
static uint64_t tried, torn, out_of_order, wrong_tid, unknown, ns_fell, last_ns;

struct message {
	uint64_t who, seq, check;
	uint8_t more[];
};

static bool send(unsigned probe, uint64_t seq, size_t more)
{
	uint8_t buf[512];
	struct message *m = (struct message *)(void *)buf;

	m->who = (uint64_t)(me - producer);
	m->seq = seq;
	m->check = ~seq ^ more;
	memset(m->more, (int)seq, more);
	return world_hit(w, probe, buf, sizeof(*m) + more);
}

static void on_signal(int signo)
{
	(void)signo;
	if (!me)
		return;
	__atomic_fetch_add(&tried, 2, __ATOMIC_RELAXED);
	me->nested += send(1, 0, 8) + send(1, 0, 16);
}

static void *produce(void *arg)
{
	me = arg;
	me->tid = gettid();
	pthread_barrier_wait(&barrier);
	for (uint64_t i = 1; i <= HITS; i++) {
		__atomic_fetch_add(&tried, 1, __ATOMIC_RELAXED);
		if (send(0, i, i % 40 * 8))
			me->recorded++;
		else if (i % 16 == 0)
			usleep(100); /* gives the consumer its turn */
		if (i % 256 == 0)
			pthread_kill(producer[i / 256 % THREADS].thread, SIGUSR1);
	}
	pthread_barrier_wait(&barrier);
	signal(SIGUSR1, SIG_IGN);
	return NULL;
}

static void check(const struct dp_hit *hit, void *data)
{
	const struct message *m = (const struct message *)(const void *)hit->payload;
	struct producer *p;
	size_t more = m->seq ? m->seq % 40 * 8 : 0;

	(void)data;
	ns_fell += !by_lanes && hit->ns < last_ns; /* of one lane: drain_by() */
	last_ns = hit->ns;
	if (m->who >= THREADS || hit->len < sizeof(*m) + more) {
		unknown++;
		return;
	}
	p = &producer[m->who];
	wrong_tid += hit->tid != p->tid;
	if (hit->probe == 1) {
		p->nested_seen++;
		return;
	}
	p->seen++;
	out_of_order += m->seq <= p->last_seq;
	p->last_seq = m->seq;
	torn += m->check != (~m->seq ^ more);
	for (size_t i = 0; i < more; i++)
		torn += m->more[i] != (uint8_t)m->seq;
}

static volatile int producing = 1;

static bool all_live(pid_t ns_tid, void *data)
{
	(void)ns_tid;
	(void)data;
	return true;
}

/* `arg`: memory is short, and is freed all the time. */
static void *drain_all(void *arg)
{
	while (producing) {
		cr_assert_null(drain_by(d, by_lanes, false, check, NULL));
		if (arg)
			dp_drain_reap(d, all_live, NULL);
		usleep(200);
	}
	cr_assert_null(drain_by(d, by_lanes, true, check, NULL));
	return NULL;
}

static void be_short(uint64_t memory)
{
	for (uint32_t i = 0; i < w->control->nslots; i++)
		w->slots[i].room = 0;
	w->control->pool = memory;
	w->control->pool_most = 16 * memory;
	dp_drain_give_back(d);
}

static void produce_and_drain(enum dp_identity identity, uint64_t ring_size, uint64_t memory)
{
	pthread_t consumer;

	w = world_create(16, ring_size, identity);
	cr_assert_null(dp_drain_create(w->control, w->size, &d));
	if (memory)
		be_short(memory);
	w->desc[0].reserve = w->desc[1].reserve = 400;
	signal(SIGUSR1, on_signal);
	pthread_barrier_init(&barrier, NULL, THREADS);
	for (int i = 0; i < THREADS; i++)
		pthread_create(&producer[i].thread, NULL, produce, &producer[i]);
	pthread_create(&consumer, NULL, drain_all, memory ? w : NULL);
	for (int i = 0; i < THREADS; i++)
		pthread_join(producer[i].thread, NULL);
	producing = 0;
	pthread_join(consumer, NULL);
}

static void expect_exact_totals(void)
{
	uint64_t recorded = 0, counted = 0;

	for (int i = 0; i < THREADS; i++) {
		cr_expect_eq(producer[i].seen, producer[i].recorded, "thread %d: %lu of %lu", i, producer[i].seen,
		             producer[i].recorded);
		cr_expect_eq(producer[i].nested_seen, producer[i].nested);
		recorded += producer[i].recorded + producer[i].nested;
	}
	for (unsigned i = 0; i < WORLD_PROBES; i++) {
		struct dp_loss loss;

		dp_drain_loss(d, i, &loss);
		counted += loss.full + loss.no_slot + loss.forked + loss.other;
		cr_expect_eq(loss.damaged + loss.abandoned, 0);
	}
	cr_expect_eq(recorded + counted, tried, "%lu recorded, %lu lost, %lu tried", recorded, counted, tried);
	cr_expect_eq(torn | out_of_order | wrong_tid | unknown | ns_fell, 0,
	             "torn %lu, out of order %lu, wrong tid %lu, unknown %lu, time went back %lu", torn, out_of_order, wrong_tid,
	             unknown, ns_fell);
	cr_expect_gt(recorded, THREADS);
	dp_drain_destroy(d);
	world_destroy(w);
}

/* Threads, signals, wraps and sometimes a full ring, with a concurrent consumer. Every hit is delivered or counted. */
BothTest(stress, small_rings)
{
	by_lanes = *lanes;
	produce_and_drain(DP_ID_SELF, 16384, 0);
	expect_exact_totals();
}

BothTest(stress, large_rings)
{
	by_lanes = *lanes;
	produce_and_drain(DP_ID_SELF, 1 << 20, 0);
	expect_exact_totals();
}

BothTest(stress, threads_known_by_id)
{
	by_lanes = *lanes;
	produce_and_drain(DP_ID_TID, 65536, 0);
	expect_exact_totals();
}

/* Rings grow and shrink while their threads hit. */
BothTest(stress, memory_that_goes_back_all_the_time)
{
	by_lanes = *lanes;
	produce_and_drain(DP_ID_SELF, 1 << 20, 60 * DP_ROOM_STEP);
	expect_exact_totals();
}
