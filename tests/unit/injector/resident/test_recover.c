/* SPDX-License-Identifier: MIT */
/* The process can overwrite what an earlier tool left in it: anything invalid is refused with a tag. */
#include "helper_probe.h"

#include "agent/sink.h"
#include "injector/resident/resident.h"

#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define SITES   UINT64_C(0x2000)
#define SLOTS   UINT64_C(0x4000)
#define TEXT    (UINT64_C(2) * DP_MANIFEST_MAX)
#define RINGS   (2 * TEXT)
#define DATA    (RINGS + 4 * 16384)
#define PRIVATE dp_page_up(sizeof(struct dp_agent))

/* The group that every child inherits: data, directly after it the private region; and a page of code. */
static uint8_t *data;
static struct dp_control *control;
static struct dp_site_entry *site;
static struct dp_agent *agent;

static void make_group(void)
{
	const int fd = memfd_create(DP_MEMFD_NAME, MFD_CLOEXEC);
	cr_assert(fd >= 0 && !ftruncate(fd, (off_t)(DATA + DP_PAGE)));
	data = mmap(NULL, DATA + PRIVATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	cr_assert(data != MAP_FAILED);
	cr_assert(mmap(data, DATA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, (off_t)DP_PAGE) == data);
	cr_assert(mmap(NULL, DP_PAGE, PROT_READ | PROT_EXEC, MAP_SHARED, fd, 0) != MAP_FAILED);
	close(fd);
	agent = (void *)(data + DATA);
	agent->live = DP_LIVE;
	control = (void *)data;
	site = (void *)(data + SITES);
}

static void whole_group(void)
{
	memset(data, 0, DATA);
	*control = (struct dp_control){
	        .magic = DP_MAGIC,
	        .abi = DP_ABI_VERSION,
	        .nprobes = 2,
	        .nsites = 1,
	        .nslots = 4,
	        .ring_size = 16384,
	        .lost_offset = 0x1000,
	        .sites_offset = SITES,
	        .gates_offset = 0x3000,
	        .slots_offset = SLOTS,
	        .manifest_offset = TEXT,
	        .manifest_size = DP_MANIFEST_MAX,
	        .rings_offset = RINGS,
	        .private_addr = (uint64_t)(uintptr_t)agent,
	        .private_size = PRIVATE,
	        .kept = 1,
	        .overwrite = 1,
	};
	/* start() puts other bytes there: the site counts as changed by another tool, so the group stays. */
	*site = (struct dp_site_entry){
	        .addr = pr_addr(PR_FOO), .len = 5, .old_bytes = {0xb8, 7, 0, 0, 0}, .new_bytes = {6, 7, 8, 9, 10}};
	strcpy((char *)data + TEXT, "{}");
}

static pid_t start(void)
{
	make_group();
	whole_group();
	pid_t pid = tr_spawn(tr_idle);
	static const uint8_t theirs[] = {1, 2, 3, 4, 5};
	char path[64];
	snprintf(path, sizeof(path), "/proc/%d/mem", pid);
	const int mem = open(path, O_RDWR | O_CLOEXEC);
	cr_assert_eq(pwrite(mem, theirs, sizeof(theirs), (off_t)pr_addr(PR_FOO)), (ssize_t)sizeof(theirs));
	close(mem);
	return pid;
}

Test(recover, group_as_it_should_be)
{
	pid_t pid = start();
	struct dp_target *t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_target_nresidents(t), 1);
	cr_assert(dp_resident_retired(dp_target_resident(t, 0), 0), "the site's bytes are not installed");
	cr_assert_not(dp_resident_retired(dp_target_resident(t, 0), 1));
	struct dp_remove_report report;
	tr_ok(dp_resident_remove(dp_target_resident(t, 0), NULL, &report));
	cr_assert_eq(report.left_sites, 1);
	cr_assert_gt(report.left_bytes, 0, "the target of the changed bytes is unknown");
	dp_target_close(t);
	tr_kill(pid);
}

Test(recover, smaller_rooms_of_an_older_tool_are_used_as_they_are)
{
	pid_t pid = start();
	control->manifest_size = DP_MANIFEST_MAX / 4;
	struct dp_target *t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_target_nresidents(t), 1);
	cr_assert_str_eq(dp_resident_manifest(dp_target_resident(t, 0)), "{}");
	tr_ok(dp_resident_set_manifest(dp_target_resident(t, 0), "{\"dynprobe\":1}"));
	cr_assert_eq(control->manifest_offset, TEXT + DP_MANIFEST_MAX / 4);
	cr_assert_str_eq((char *)data + TEXT + DP_MANIFEST_MAX / 4, "{\"dynprobe\":1}");
	dp_target_close(t);
	tr_kill(pid);
}

/* As in a process that was stopped there. */
Test(recover, a_thread_that_keeps_its_ring_must_go_on)
{
	pid_t pid = start();
	struct dp_slot *slot = (void *)(data + SLOTS);
	slot->tid = (uint32_t)pid;
	slot->state = DP_SLOT_USED;
	slot->reclaiming = 1;
	struct dp_target *t = pr_open(pid, PR_GATES);
	struct dp_error *err = dp_resident_serve(dp_target_resident(t, 0));
	cr_assert_not_null(err);
	cr_expect(strstr(err->message, "does not release its ring"), "%s", err->message);
	cr_expect(!strncmp(dp_error_remedy(err), "let the process continue (kill -CONT PID)", 41), "%s", dp_error_remedy(err));
	tr_tag(err, DP_TAG_BUSY);
	dp_target_close(t);
	tr_kill(pid);
}

static void refused(pid_t pid, enum dp_tag tag, const char *what)
{
	struct dp_target *t = NULL;
	struct dp_error *err = dp_target_open(pid, PR_GATES, &t);
	cr_assert_not_null(err, "%s was accepted", what);
	cr_assert(err->tag == tag, "%s: %s, %s", what, dp_tag_name(err->tag), err->message);
	dp_error_destroy(err);
	cr_assert_eq(pr_mappings(pid), 2, "%s: the process was changed", what);
	whole_group();
}

#define DAMAGE(field, value)                                                                                                     \
	do {                                                                                                                     \
		(field) = (value);                                                                                               \
		refused(pid, DP_TAG_DAMAGED, #field " = " #value);                                                               \
	} while (0)

Test(recover, every_count_and_offset_is_checked)
{
	pid_t pid = start();
	DAMAGE(control->nprobes, UINT32_MAX);
	DAMAGE(control->nprobes, 60000); /* more than there is room for */
	DAMAGE(control->nsites, 7);
	DAMAGE(control->nsites, UINT32_MAX);
	DAMAGE(control->nslots, 0);
	DAMAGE(control->nslots, UINT32_MAX);
	DAMAGE(control->nslots, 5);
	DAMAGE(control->ring_size, 0);
	DAMAGE(control->ring_size, 16384 + 8);
	DAMAGE(control->ring_size, UINT64_C(1) << 63);
	DAMAGE(control->lost_offset, UINT64_MAX - 7);
	DAMAGE(control->lost_offset, 0);
	DAMAGE(control->sites_offset, DATA - 8);
	DAMAGE(control->sites_offset, 3);
	DAMAGE(control->slots_offset, UINT64_MAX - 63);
	DAMAGE(control->rings_offset, DATA - 4 * 16384 + 8);
	DAMAGE(control->cache_offset, DATA - 8);
	DAMAGE(control->gates_offset, 0);
	DAMAGE(control->gates_offset, DATA - 4);
	DAMAGE(control->manifest_offset, 0);
	DAMAGE(control->manifest_offset, TEXT + 8);
	DAMAGE(control->manifest_offset, UINT64_C(0) - DP_MANIFEST_MAX);
	DAMAGE(control->manifest_size, 12);
	DAMAGE(control->manifest_size, DP_PAGE / 2);
	DAMAGE(control->manifest_size, DP_MANIFEST_MAX * UINT64_C(2));
	DAMAGE(control->private_addr, (uint64_t)(uintptr_t)data - DP_PAGE);
	DAMAGE(control->magic, 0);
	control->abi++;
	refused(pid, DP_TAG_LOCKED, "another version");
	tr_kill(pid);
}

Test(recover, every_entry_of_the_site_table_is_checked)
{
	pid_t pid = start();
	DAMAGE(site->len, 0);
	DAMAGE(site->len, 17);
	DAMAGE(site->npairs, DP_SITE_PAIRS + 1);
	DAMAGE(site->state, 4);
	DAMAGE(site->probe, 2);
	DAMAGE(site->stub, 1); /* past its end */
	tr_kill(pid);
}

Test(recover, manifest_without_an_end_is_refused)
{
	pid_t pid = start();
	memset(data + TEXT, 'x', DP_MANIFEST_MAX);
	refused(pid, DP_TAG_DAMAGED, "manifest");
	tr_kill(pid);
}

/* The LTTng sink's mapping looks similar, and stays forever. */
Test(recover, sink_is_left_alone)
{
	pid_t pid = start();
	control->magic = DP_SINK_MAGIC;
	struct dp_target *t = pr_open(pid, PR_GATES);
	cr_assert_eq(dp_target_nresidents(t), 0);
	dp_target_close(t);
	cr_assert_eq(pr_mappings(pid), 2);
	tr_kill(pid);
}

static bool heap_behind;

/* A dynprobe that is itself probed maps its target's data region; after it is nothing, or a mapping of the kernel's choice. */
static void view_only(void)
{
	const int fd = memfd_create(DP_MEMFD_NAME, MFD_CLOEXEC);
	if (ftruncate(fd, (off_t)DATA))
		_exit(1);
	uint8_t *view = mmap(NULL, DATA + PRIVATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (!heap_behind)
		munmap(view + DATA, PRIVATE);
	if (mmap(view, DATA, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) != view)
		_exit(1);
	memcpy(view, data, DATA);
	close(fd);
	for (uint64_t page = 0; page < DATA + PRIVATE; page += DP_PAGE)
		munmap(data + page, DP_PAGE);
	tr_idle();
}

Test(recover, view_of_another_tool_is_left_alone)
{
	const int fd = memfd_create(DP_MEMFD_NAME, MFD_CLOEXEC);
	cr_assert(fd >= 0 && !ftruncate(fd, (off_t)DATA));
	data = mmap(NULL, DATA + PRIVATE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	close(fd);
	agent = (void *)(data + DATA);
	control = (void *)data;
	site = (void *)(data + SITES);
	whole_group();
	for (int i = 0; i < 2; i++) {
		heap_behind = i;
		pid_t pid = tr_spawn(view_only);
		struct dp_target *t = pr_open(pid, PR_GATES);
		cr_assert_eq(dp_target_nresidents(t), 0);
		dp_target_close(t);
		cr_assert_eq(pr_mappings(pid), 1);
		tr_kill(pid);
	}
}

/* Random words: an error or a group, and the target continues. */
Test(recover, random_words_are_survived)
{
	pid_t pid = start();
	srand(11);
	for (int i = 0; i < 400; i++) {
		struct dp_target *t = NULL;
		for (int k = rand() % 4; k >= 0; k--) {
			uint64_t *at = (void *)(rand() % 2 ? data + 8 * (rand() % 26) : (uint8_t *)site + 8 * (rand() % 40));
			const uint64_t some[] = {0,       1,   UINT64_MAX, (uint64_t)rand() << 20, UINT64_C(1) << rand() % 64,
			                         DP_PAGE, DATA};
			*at = rand() % 2 ? some[rand() % 7] : *at ^ UINT64_C(1) << rand() % 64;
		}
		control->kept = 1; /* otherwise the group would be removed */
		control->abi = DP_ABI_VERSION;
		struct dp_error *err = dp_target_open(pid, PR_GATES, &t);
		for (size_t s = 0; !err && s < dp_target_nresidents(t); s++) {
			struct dp_loss loss;
			struct dp_resident *standing = dp_target_resident(t, s);
			dp_resident_loss(standing, 0, &loss);
			dp_resident_enabled(standing, 0);
			dp_error_destroy(dp_resident_serve(standing));
			dp_error_destroy(dp_resident_release(standing));
		}
		dp_error_destroy(err);
		dp_target_close(t);
		cr_assert(tr_state(pid) != '?' && tr_state(pid) != 'Z', "round %d", i);
		if (pr_mappings(pid) != 2) {
			tr_kill(pid);
			pid = start();
		}
		whole_group();
	}
	tr_kill(pid);
}
