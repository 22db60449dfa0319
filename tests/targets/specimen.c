/* SPDX-License-Identifier: MIT */
/*
 * specimen: data of the kinds that pmodules walk: a tail queue, a pointer to a pointer to a pointer, an array of structs, a hash
 * table of buckets, a table of connections, requests with and without a name. Prints READY, and waits for
 * SIGTERM.
 */
#include "target.h"

#include <sys/queue.h>

struct inner {
	int c;
	const char *tag;
};
struct node {
	int weight;
	struct inner ***triple;
	STAILQ_ENTRY(node) linkage;
};
struct registry {
	STAILQ_HEAD(, node) list;
	struct inner cells[4];
	uint64_t serial;
};
struct entry {
	const char *key;
	int value;
	struct entry *next;
};
struct table {
	unsigned nbuckets, used;
	struct entry **buckets;
};
struct connection {
	int fd;
	char peer[24];
	const char *payload;
	size_t payload_length;
};
struct request {
	struct connection *from;
	const char *path, *query;
	int status;
};
enum { CONNECTIONS = 3, BUCKETS = 4 };

struct registry registry_g;
struct registry *registry_p = &registry_g;
struct table table_g;
struct connection *connections_g[CONNECTIONS];
uint64_t high_bits_g = UINT64_C(0xfedcba9876543210);
static struct inner inner_of_node = {77, "deep"};
static struct inner *level_one = &inner_of_node, **level_two = &level_one;

static void fill_list(struct node nodes[3])
{
	STAILQ_INIT(&registry_g.list);
	for (int i = 0; i < 3; i++) {
		nodes[i].weight = 10 * (i + 1);
		nodes[i].triple = &level_two;
		STAILQ_INSERT_TAIL(&registry_g.list, &nodes[i], linkage);
	}
	for (int i = 0; i < 4; i++)
		registry_g.cells[i] = (struct inner){100 + i, "cell"};
	registry_g.serial = 4711;
}

static void fill_table(struct entry entries[5])
{
	static const char *const keys[] = {"alpha", "beta", "gamma", "delta", "epsilon"};
	table_g.nbuckets = BUCKETS;
	table_g.buckets = calloc(BUCKETS, sizeof(*table_g.buckets));
	for (unsigned i = 0; i < 5; i++) {
		entries[i] = (struct entry){keys[i], (int)i, table_g.buckets[i % 2]};
		table_g.buckets[i % 2] = &entries[i];
		table_g.used++;
	}
}

static void fill_connections(struct connection at[CONNECTIONS])
{
	for (int i = 0; i < CONNECTIONS; i++) {
		at[i].fd = 20 + i;
		snprintf(at[i].peer, sizeof(at[i].peer), "10.0.0.%d", i + 1);
		at[i].payload = "GET / HTTP/1.1\r\n";
		at[i].payload_length = i == 1 ? 5 : 0;
		connections_g[i] = i == 2 ? NULL : &at[i];
	}
}

TARGET_PROBED int serve(struct request *request, int attempt)
{
	struct registry *registry = registry_p;
	target_ready();
	while (!target_stop)
		pause();
	__asm__ volatile("" ::"r"(request), "r"(attempt), "r"(registry) : "memory");
	return request->status + attempt;
}

TARGET_PROBED int accept_one(struct request *given)
{
	int rc = serve(given, 2);
	__asm__ volatile("" ::"r"(given) : "memory");
	return rc;
}

int main(void)
{
	static struct node nodes[3];
	static struct entry entries[5];
	static struct connection at[CONNECTIONS];
	struct request request = {&at[1], "/index.html", NULL, 404};
	target_stop_on_term();
	fill_list(nodes);
	fill_table(entries);
	fill_connections(at);
	int rc = accept_one(&request);
	printf("RESULT %s\n", rc == 406 ? "OK" : "BAD");
	return rc != 406;
}
